"""DescribeGroups (key 15): state, protocol and members of groups.

Behaviour (S-GRP-6)
* A group that does not exist is described as Dead.
* Only stable groups are described with subscriptions and protocol, as in Kafka.
* GROUP_AUTHORIZATION_FAILED for a group that the client may not describe, whether it exists or not.

Version notes
* v3+: authorized operations. v4+: instance ids.
* v6: GROUP_ID_NOT_FOUND and a message for a group that does not exist (KIP-1043); older versions
  get no error.
"""

from collections.abc import Sequence
from typing import Final

from broker import many
from broker.api_facts import Api
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.values import DescribedGroup as Described
from broker.coordinator.group.data.values import DescribedMember
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.authorized_operations import authorized_operations
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError, shortened
from protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from protocol.schema.lazy import Lazy

API: Final = Api(
    key=ApiKey.DESCRIBE_GROUPS,
    versions=(0, 6),
    ends_with_client=True,
    # KafkaApis.handleDescribeGroupsRequest
    asks=(Question(ResourceType.GROUP, Operation.DESCRIBE),),
    make=lambda s: DescribeGroupsHandler(s.group_coordinator, allowed=s.allowed),
)

FIRST_VERSION_WITH_NOT_FOUND: Final = 6

FEW: Final = 16
"""Groups that are described at once if they have few members together."""


class DescribeGroupsHandler:
    """Describes groups with state, protocol and members, each from its shard."""

    def __init__(self, groups: GroupCoordinator, *, allowed: Permissions | None = None) -> None:
        self._allowed = allowed
        self._groups = groups

    def __call__(
        self, ctx: RequestContext, request: DescribeGroupsRequest
    ) -> DescribeGroupsResponse:
        """The response; groups that are many, or have many members, are described one at a time,
        while it is encoded."""
        allowed = self._allowed

        def described(group_id: str) -> DescribedGroup:
            if allowed is not None and not allowed(
                ctx, Operation.DESCRIBE, ResourceType.GROUP, group_id
            ):
                return DescribedGroup(
                    group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
                )
            one = self._one(group_id, ctx.api_version)
            if request.include_authorized_operations and one.error_code == ErrorCode.NONE:
                one.authorized_operations = authorized_operations(
                    allowed, ctx, ResourceType.GROUP, group_id
                )
            return one

        if self._are_few(request.groups):
            return DescribeGroupsResponse(groups=[described(one) for one in request.groups])
        ctx.large = True
        return DescribeGroupsResponse(groups=Lazy(request.groups, described))

    def _are_few(self, groups: Sequence[str]) -> bool:
        """Whether the groups, and their members, may be described in one go."""
        return len(groups) <= FEW and sum(map(self._groups.count_members, groups)) <= many.MANY

    def _one(self, group_id: str, version: int) -> DescribedGroup:
        try:
            found = self._groups.describe(group_id)
        except KafkaError as error:
            return DescribedGroup(group_id=group_id, error_code=error.code)
        if found.error is not ErrorCode.GROUP_ID_NOT_FOUND:
            return _described(found)
        if version < FIRST_VERSION_WITH_NOT_FOUND:
            return DescribedGroup(group_id=group_id, group_state=found.state)
        return DescribedGroup(
            group_id=group_id,
            group_state=found.state,
            error_code=found.error,
            error_message=shortened(f"Group {group_id} not found."),
        )

    def error_response(
        self, ctx: RequestContext, request: DescribeGroupsRequest, code: ErrorCode
    ) -> DescribeGroupsResponse:
        """`code` for every group."""
        return DescribeGroupsResponse(
            groups=[
                DescribedGroup(group_id=group_id, error_code=code) for group_id in request.groups
            ]
        )


def _described(found: Described) -> DescribedGroup:
    return DescribedGroup(
        group_id=found.group_id,
        error_code=found.error,
        group_state=found.state,
        protocol_type=found.protocol_type,
        protocol_data=found.protocol_data,
        members=many.results(found.members, _member),
    )


def _member(member: DescribedMember) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata,
        member_assignment=member.assignment,
    )
