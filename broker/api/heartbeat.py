"""Heartbeat (key 12): keep a member's session alive; the answer says whether to join again.

Behaviour (S-GRP-2)
* NONE and REBALANCE_IN_PROGRESS renew the session; the latter tells the member to join again.
* UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID: the group went on without the member.
* While the group is being loaded the answer is NONE, because its members are not known yet.

Version notes
* v3+: static members.
"""

from typing import Final

from broker.api_facts import Api
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.request import RequestContext
from broker.security.access import READ_GROUP
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

API: Final = Api(
    key=ApiKey.HEARTBEAT,
    versions=(0, 4),
    in_workers=True,
    # KafkaApis.handleHeartbeatRequest
    accesses=(READ_GROUP,),
    make=lambda s: HeartbeatHandler(s.group_coordinator),
)


class HeartbeatHandler:
    """Hands heartbeats to the group coordinator."""

    def __init__(self, groups: GroupCoordinator) -> None:
        self._heartbeat = groups.heartbeat

    def __call__(self, ctx: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        """The response."""
        response = HeartbeatResponse()
        try:
            response.error_code = self._heartbeat(
                request.group_id,
                request.member_id,
                request.group_instance_id,
                request.generation_id,
            )
        except KafkaError as error:
            response.error_code = error.code
        return response

    def error_response(
        self, ctx: RequestContext, request: HeartbeatRequest, code: ErrorCode
    ) -> HeartbeatResponse:
        """`code`."""
        return HeartbeatResponse(error_code=code)
