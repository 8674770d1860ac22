"""ListGroups (key 16): the groups that this broker coordinates.

Versions: 0-5.

Behaviour (S-GRP-6)
* COORDINATOR_LOAD_IN_PROGRESS while any partition is being loaded: the list would be incomplete.

Version notes
* v4+: groups have their state, and a filter of states (KIP-518), whose case does not matter.
* v5: groups have their type, and a filter of types (KIP-848); all are "classic" here.
"""

from collections.abc import Iterator
from typing import Final

from broker.api import many
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.values import ListedGroup as Listed
from broker.request import LargeReply, RequestContext, Work
from broker.world.turns import Turns
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

VERSIONS: Final = (0, 5)

_Reply = ListGroupsResponse | LargeReply


class ListGroupsHandler:
    """Lists the groups of all shards on this broker, filtered by state and type."""

    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def __call__(self, ctx: RequestContext, request: ListGroupsRequest) -> _Reply | Work[_Reply]:
        """The response, or a coroutine that goes through many groups in turns."""
        try:
            groups = self._groups.list_groups()
        except KafkaError as error:
            return self.error_response(ctx, request, error.code)
        states = {state.lower() for state in request.states_filter}
        types = {group_type.lower() for group_type in request.types_filter}
        wanted = (
            group
            for group in groups
            if (not states or group.state.lower() in states)
            and (not types or group.type.lower() in types)
        )
        if self._groups.group_count() > many.MANY:
            return self._in_turns(wanted)
        return ListGroupsResponse(groups=[_listed(group) for group in wanted])

    async def _in_turns(self, wanted: Iterator[Listed]) -> _Reply:
        turns = Turns()
        found = []
        for group in wanted:
            found.append(group)
            await turns.next()
        return many.reply(ListGroupsResponse(groups=many.results(found, _listed)), len(found))

    def error_response(
        self, ctx: RequestContext, request: ListGroupsRequest, code: ErrorCode
    ) -> ListGroupsResponse:
        """`code` and no groups."""
        return ListGroupsResponse(error_code=code)


def _listed(group: Listed) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        group_state=group.state,
        group_type=group.type,
    )
