"""JoinGroup (key 11): become a member of a group, or rejoin it.

Behaviour (S-GRP-1 to S-GRP-3)
* The request is parked until the group's join phase ends; the leader's response lists all members.
* The response has the group's error and the member id: the request's, or a new one.
* INVALID_REQUEST for an instance id or client id that is too long to be part of a member id. (Kafka
  accepts it, and can then answer neither the member nor a client that describes the group.)

Version notes
* v0: the session timeout is the rebalance timeout too.
* v4+: a dynamic member without id gets MEMBER_ID_REQUIRED and an id to join with (KIP-394).
* v5+: static members. v0-6: an empty protocol name stands for null.
* v9: skip_assignment for a static leader that rejoins (KIP-814).
"""

from typing import Final

from broker.api_facts import Api
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.values import JoinReply, JoinRequest
from broker.request import RequestContext
from broker.security.access import READ_GROUP
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

API: Final = Api(
    key=ApiKey.JOIN_GROUP,
    versions=(0, 9),
    most_elements=1_000,
    in_workers=True,
    # KafkaApis.handleJoinGroupRequest
    accesses=(READ_GROUP,),
    make=lambda s: JoinGroupHandler(s.group_coordinator),
)

LONGEST_NAME: Final = 32_767 - len("-") - 36
"""Bytes of an instance id or client id: with "-" and a UUID appended it becomes a member id, which
is a string of at most 32,767 bytes."""
FIRST_VERSION_WITH_REBALANCE_TIMEOUT: Final = 1
FIRST_VERSION_THAT_REQUIRES_MEMBER_ID: Final = 4
FIRST_VERSION_WITH_NULL_PROTOCOL: Final = 7
FIRST_VERSION_WITH_SKIP_ASSIGNMENT: Final = 9


class JoinGroupHandler:
    """Hands a join to the group coordinator, and answers when the group's phase ends."""

    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    async def __call__(self, ctx: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
        """The response, when the phase has ended."""
        version = ctx.api_version
        if len((request.group_instance_id or ctx.client_id or "").encode()) > LONGEST_NAME:
            return self.error_response(ctx, request, ErrorCode.INVALID_REQUEST)
        joined = self._groups.join(
            JoinRequest(
                group_id=request.group_id,
                member_id=request.member_id,
                instance_id=request.group_instance_id,
                client_id=ctx.client_id or "",
                # In Java's form of an InetAddress: group records and DescribeGroups have it.
                client_host=f"/{ctx.connection.peer_host}",
                session_timeout_ms=request.session_timeout_ms,
                rebalance_timeout_ms=(
                    request.rebalance_timeout_ms
                    if version >= FIRST_VERSION_WITH_REBALANCE_TIMEOUT
                    else request.session_timeout_ms
                ),
                protocol_type=request.protocol_type,
                protocols=tuple((one.name, bytes(one.metadata)) for one in request.protocols),
                reason=request.reason,
                require_known_member_id=version >= FIRST_VERSION_THAT_REQUIRES_MEMBER_ID,
                supports_skip_assignment=version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT,
            )
        )
        ctx.released = True
        return _response(await joined.parked(), version)

    def error_response(
        self, ctx: RequestContext, request: JoinGroupRequest, code: ErrorCode
    ) -> JoinGroupResponse:
        """`code`, with the member id of the request."""
        return _response(JoinReply(error=code, member_id=request.member_id), ctx.api_version)


def _response(reply: JoinReply, version: int) -> JoinGroupResponse:
    name = reply.protocol_name
    return JoinGroupResponse(
        error_code=reply.error,
        generation_id=reply.generation,
        protocol_type=reply.protocol_type,
        protocol_name=name if version >= FIRST_VERSION_WITH_NULL_PROTOCOL else name or "",
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata,
            )
            for member in reply.members
        ],
    )
