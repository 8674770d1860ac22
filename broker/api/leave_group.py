"""LeaveGroup (key 13): remove members at once instead of waiting for their sessions to expire.

Behaviour (S-GRP-3)
* One result per member; an unknown member does not affect the others.
* An administrator removes a static member by its instance id, with an empty member id.

Version notes
* v0-2: one member, whose error is the response's.
* v3+: many, with instance ids. v5: reasons, which are logged.
"""

import logging
from typing import Final

from broker.api_facts import Api, CodeAlone
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.values import LeaveReply, LeavingMember
from broker.request import RequestContext
from broker.security.access import READ_GROUP
from protocol.api_keys import ApiKey
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

log = logging.getLogger(__name__)

API: Final = Api(
    key=ApiKey.LEAVE_GROUP,
    versions=(0, 5),
    most_elements=5_000,
    # KafkaApis.handleLeaveGroupRequest
    accesses=(READ_GROUP,),
    make=lambda s: LeaveGroupHandler(s.group_coordinator),
)

FIRST_VERSION_WITH_MEMBERS: Final = 3

LOGGED: Final = 10
"""Members of one request whose reasons are logged."""


class LeaveGroupHandler(CodeAlone):
    """Has the group coordinator remove members; each has its own result."""

    response = LeaveGroupResponse

    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def __call__(self, ctx: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """The response, at once."""
        if ctx.api_version >= FIRST_VERSION_WITH_MEMBERS:
            leaving = tuple(
                LeavingMember(
                    member_id=one.member_id, instance_id=one.group_instance_id, reason=one.reason
                )
                for one in request.members
            )
        else:
            leaving = (LeavingMember(member_id=request.member_id),)
        for one in leaving[:LOGGED]:
            if one.reason:
                log.info("%s leaves group %s: %s", one.member_id, request.group_id, one.reason)
        reply = self._groups.leave(request.group_id, leaving)
        return _response(reply, ctx.api_version)


def _response(reply: LeaveReply, version: int) -> LeaveGroupResponse:
    if version < FIRST_VERSION_WITH_MEMBERS:
        return LeaveGroupResponse(error_code=reply.error or reply.members[0].error)
    return LeaveGroupResponse(
        error_code=reply.error,
        members=[
            MemberResponse(
                member_id=one.member_id,
                group_instance_id=one.instance_id,
                error_code=one.error,
            )
            for one in reply.members
        ],
    )
