"""SyncGroup (key 14): the group's leader sends the assignment, each member gets its part.

Behaviour (S-GRP-1)
* Followers are parked until the leader's assignment is written to `__consumer_offsets`.
* In a stable group the answer is the member's current assignment.
* GROUP_AUTHORIZATION_FAILED for who may not read in the group, if the request is well formed.

Version notes
* v3+: static members.
* v5: INCONSISTENT_GROUP_PROTOCOL unless the request has the group's protocol type and name
  (KIP-559).
"""

from typing import Final

from broker.api_facts import Api, CodeAlone
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.values import SyncReply, SyncRequest
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

API: Final = Api(
    key=ApiKey.SYNC_GROUP,
    versions=(0, 5),
    most_elements=20_000,
    in_workers=True,
    # KafkaApis.handleSyncGroupRequest
    asks=(Question(ResourceType.GROUP, Operation.READ),),
    make=lambda s: SyncGroupHandler(s.group_coordinator, allowed=s.allowed),
)

FIRST_VERSION_WITH_PROTOCOL: Final = 5


class SyncGroupHandler(CodeAlone):
    """Hands an assignment to the group coordinator and waits for the member's part of it."""

    response = SyncGroupResponse

    def __init__(self, groups: GroupCoordinator, *, allowed: Permissions | None = None) -> None:
        self._allowed = allowed
        self._groups = groups

    async def __call__(self, ctx: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
        """The response, when the member has its assignment."""
        if ctx.api_version >= FIRST_VERSION_WITH_PROTOCOL and (
            request.protocol_type is None or request.protocol_name is None
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        allowed = self._allowed
        if allowed is not None and not allowed(
            ctx, Operation.READ, ResourceType.GROUP, request.group_id
        ):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        synced = self._groups.sync(
            SyncRequest(
                group_id=request.group_id,
                member_id=request.member_id,
                instance_id=request.group_instance_id,
                generation=request.generation_id,
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignments=tuple(
                    (one.member_id, bytes(one.assignment)) for one in request.assignments
                ),
            )
        )
        ctx.released = True
        return _response(await synced.parked())


def _response(reply: SyncReply) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=reply.error,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
    )
