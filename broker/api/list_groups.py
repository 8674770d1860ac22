"""ListGroups (key 16): the groups that this broker coordinates.

Behaviour (S-GRP-6)
* The list has the groups that the client may describe: all of them, if it may describe the cluster.
* COORDINATOR_LOAD_IN_PROGRESS while any partition is being loaded: the list would be incomplete.

Version notes
* v4+: groups have their state, and a filter of states (KIP-518), whose case does not matter.
* v5: groups have their type, and a filter of types (KIP-848); all are "classic" here.
"""

from typing import Final

from broker import many
from broker.api_facts import Api, CodeAlone
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.values import ListedGroup as Listed
from broker.request import RequestContext
from broker.security.access import CLUSTER_NAME, Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.LIST_GROUPS,
    versions=(0, 5),
    most_elements=1_000,
    ends_with_client=True,
    # KafkaApis.handleListGroupsRequest
    asks=(
        Question(ResourceType.CLUSTER, Operation.DESCRIBE),
        Question(ResourceType.GROUP, Operation.DESCRIBE),
    ),
    make=lambda s: ListGroupsHandler(s.group_coordinator, allowed=s.allowed),
)


class ListGroupsHandler(CodeAlone):
    """Lists the groups of all shards on this broker, filtered by state and type."""

    response = ListGroupsResponse

    def __init__(self, groups: GroupCoordinator, *, allowed: Permissions | None = None) -> None:
        self._allowed = allowed
        self._groups = groups

    async def __call__(self, ctx: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
        """The response."""
        groups = self._groups.list_groups()
        states = {state.lower() for state in request.states_filter}
        types = {group_type.lower() for group_type in request.types_filter}
        allowed = self._allowed
        if allowed is not None and allowed.quietly(
            ctx, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME
        ):
            allowed = None
        found = []
        for group in groups:
            if (
                (not states or group.state.lower() in states)
                and (not types or group.type.lower() in types)
                and (
                    allowed is None
                    or allowed.quietly(ctx, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
                )
            ):
                found.append(group)
            await PAUSE
        if len(found) > many.MANY:
            ctx.large = True
        return ListGroupsResponse(groups=many.results(found, _listed))


def _listed(group: Listed) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        group_state=group.state,
        group_type=group.type,
    )
