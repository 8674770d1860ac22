"""Elections on request: of clients, of an old node of the tree, and to balance leaders.

Source: `KafkaController.processReplicaLeaderElection`, `checkAndTriggerAutoLeaderRebalance` (3.9).
"""

import logging
from collections.abc import Callable, Iterable

from broker.cluster.tree_values import PREFERRED_ELECTION
from broker.controller.balance import to_give_back
from broker.controller.cluster_state import ControllerState, PartitionStage
from broker.controller.controller_tree import ControllerTree
from broker.controller.elections import Strategy
from broker.controller.leader_elections import ElectionFailed, Outcome, PartitionStates
from broker.controller.settings import ControllerSettings
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.waits import PAUSE

log = logging.getLogger(__name__)


class AskedElections:
    """See the module."""

    def __init__(
        self,
        state: ControllerState,
        tree: ControllerTree,
        partitions: PartitionStates,
        settings: Callable[[], ControllerSettings],
    ) -> None:
        self._state = state
        self._tree = tree
        self._partitions = partitions
        self._settings = settings

    async def ask(
        self, strategy: Strategy, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect leaders because a client asks for it: PREFERRED, or OFFLINE_UNCLEAN.

        Without `partitions`: all, and those that need no election are left out of the answer.
        """
        state = self._state
        asked = (
            await state.partitions_where(lambda *_: True)
            if partitions is None
            else list(dict.fromkeys(partitions))
        )
        refused: dict[TopicPartition, KafkaError | None] = {}
        wanted: list[TopicPartition] = []
        for tp in asked:
            error = self._why_not_elect(tp, strategy)
            if error is None:
                wanted.append(tp)
            elif partitions is not None or error.code is not ErrorCode.ELECTION_NOT_NEEDED:
                refused[tp] = error
            await PAUSE
        outcomes = await self._partitions.to_online(wanted, strategy)
        code = (
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if strategy is Strategy.PREFERRED
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
        return {tp: self._election_error(tp, outcomes.get(tp), code) for tp in wanted} | refused

    def _election_error(
        self, tp: TopicPartition, outcome: Outcome | None, code: ErrorCode
    ) -> KafkaError | None:
        if isinstance(outcome, ElectionFailed):
            return KafkaError(code, f"Failed to elect leader for partition {tp}: {outcome}")
        if self._state.partition_state(tp) is not PartitionStage.ONLINE:
            return KafkaError(code, f"No leader for partition {tp}: none of its replicas is alive")
        return None

    def _why_not_elect(self, tp: TopicPartition, strategy: Strategy) -> KafkaError | None:
        state = self._state
        assignment = state.assignment(tp)
        if not assignment.replicas:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        if tp.topic in state.to_delete:
            return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
        leadership = state.leadership(tp)
        if leadership is None:
            return None
        if strategy is Strategy.PREFERRED:
            needed = leadership.leader != assignment.replicas[0]
        else:
            needed = not state.is_live(leadership.leader)
        if needed:
            return None
        return KafkaError(
            ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        )

    async def ask_by_tree(self) -> None:
        """Elect what /admin/preferred_replica_election asks for, if it is there, and remove it."""
        partitions = await self._tree.preferred_election()
        if partitions is None:
            return
        try:
            results = await self.ask(Strategy.PREFERRED, partitions)
            log.info("Elections by %s: %s", PREFERRED_ELECTION, results)
        finally:
            await self._tree.store.delete_all([PREFERRED_ELECTION])

    async def balance(self) -> None:
        """Give leadership back to preferred replicas where too few have it."""
        percentage = self._settings().leader_imbalance_per_broker_percentage
        for partitions in await to_give_back(self._state, percentage):
            await self._partitions.to_online(partitions, Strategy.PREFERRED)
