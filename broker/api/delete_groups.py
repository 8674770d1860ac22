"""DeleteGroups (key 42): remove empty groups with all their offsets.

Versions: 0-3.

Behaviour (S-GRP-6)
* NON_EMPTY_GROUP while a group has members, GROUP_ID_NOT_FOUND if it does not exist.
* The answer waits until the tombstones of all groups are durable; a group named twice is deleted
  and answered once.

Version notes
* v3: an error message per group. It is null, as in Kafka, which explains only what plug-ins of
  Streams groups could not do.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from broker.api import many
from broker.api.answers import ParkedAnswer
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.request import Pending, RequestContext, Work
from broker.world.turns import Turns
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

VERSIONS: Final = (0, 3)

FEW: Final = 32
"""Groups that are deleted in one go: each is a batch in `__consumer_offsets`."""

_Reply = DeleteGroupsResponse | Pending


class DeleteGroupsHandler:
    """Has the coordinator delete groups; each has its own result."""

    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def __call__(self, ctx: RequestContext, request: DeleteGroupsRequest) -> _Reply | Work[_Reply]:
        """The response, or a `Pending` if followers must replicate the tombstones first."""
        wanted = list(dict.fromkeys(request.groups_names))
        results: dict[str, ErrorCode] = {}
        answer = ParkedAnswer(lambda _: _response(wanted, results))

        def settle(group_id: str, code: ErrorCode) -> None:
            results[group_id] = code
            if len(results) == len(wanted):
                answer(None)

        if not wanted:
            return _response(wanted, results)

        def delete(group_id: str) -> None:
            try:
                self._groups.delete_group(group_id, partial(settle, group_id))
            except KafkaError as error:
                settle(group_id, error.code)

        async def delete_in_turns() -> _Reply:
            turns = Turns(items=FEW)
            for group_id in wanted:
                delete(group_id)
                await turns.next()
            return answer.handed_over()

        if len(wanted) > FEW:
            return delete_in_turns()
        for group_id in wanted:
            delete(group_id)
        return answer.handed_over()

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
