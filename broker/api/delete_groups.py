"""DeleteGroups (key 42): remove empty groups with all their offsets.

Behaviour (S-GRP-6)
* GROUP_AUTHORIZATION_FAILED for a group that the client may not delete.
* NON_EMPTY_GROUP while a group has members, GROUP_ID_NOT_FOUND if it does not exist.
* The answer waits until the tombstones of all groups are durable; a group named twice is deleted
  and answered once.

Version notes
* v3: an error message per group. It is null, as in Kafka, which explains only what plug-ins of
  Streams groups could not do.
"""

from collections.abc import Sequence
from typing import Final

from broker import many
from broker.api_facts import Api
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
from broker.world.in_turn import begin
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.DELETE_GROUPS,
    versions=(0, 3),
    # KafkaApis.handleDeleteGroupsRequest
    asks=(Question(ResourceType.GROUP, Operation.DELETE),),
    make=lambda s: DeleteGroupsHandler(s.group_coordinator, allowed=s.allowed),
)


class DeleteGroupsHandler:
    """Has the coordinator delete groups; each has its own result."""

    def __init__(self, groups: GroupCoordinator, *, allowed: Permissions | None = None) -> None:
        self._allowed = allowed
        self._groups = groups

    async def __call__(
        self, ctx: RequestContext, request: DeleteGroupsRequest
    ) -> DeleteGroupsResponse:
        """The response, when the tombstones of all groups are durable."""
        wanted = list(dict.fromkeys(request.groups_names))
        deletions = []
        for group_id in wanted:
            deletions.append(begin(self._delete(ctx, group_id)))
            await PAUSE
        ctx.released = True
        results = {
            group_id: await deleted.parked()
            for group_id, deleted in zip(wanted, deletions, strict=True)
        }
        return _response(wanted, results)

    async def _delete(self, ctx: RequestContext, group_id: str) -> ErrorCode:
        allowed = self._allowed
        if allowed is not None and not allowed(ctx, Operation.DELETE, ResourceType.GROUP, group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        try:
            return await self._groups.delete_group(group_id)
        except KafkaError as error:
            return error.code

    def error_response(
        self, ctx: RequestContext, request: DeleteGroupsRequest, code: ErrorCode
    ) -> DeleteGroupsResponse:
        """`code` for every group."""
        return _response(request.groups_names, dict.fromkeys(request.groups_names, code))


def _response(wanted: Sequence[str], results: dict[str, ErrorCode]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=many.results(
            wanted,
            lambda group_id: DeletableGroupResult(group_id=group_id, error_code=results[group_id]),
        )
    )
