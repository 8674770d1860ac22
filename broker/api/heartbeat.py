"""Heartbeat (key 12): a member is alive; it learns whether it has to join again.

Versions: 0-4.

Behaviour (S-GRP-2)
* NONE renews the session; so does REBALANCE_IN_PROGRESS, which says: join again.
* UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID: the member has been left behind.
* While the group is being loaded the answer is NONE: nobody can know better.

Version notes
* v3+: static members.
"""

from typing import Final

from broker.coordinator.group.coordinator import GroupCoordinator
from broker.request import RequestContext
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

VERSIONS: Final = (0, 4)


class HeartbeatHandler:
    """Hands a sign of life to the group coordinator."""

    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def __call__(self, ctx: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        """The response, at once."""
        response = HeartbeatResponse()
        try:
            response.error_code = self._groups.heartbeat(
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
