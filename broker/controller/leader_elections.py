"""Partitions change their states: New, Online with an election, Offline, NonExistent.

The transition to Online:

* From New: the first live replica leads, all live ones are in sync; the state node is made. Without
  a live replica the partition stays New, until a broker comes.
* From Online or Offline: an election (`elections`). The state is read from the tree, because the
  leader of an older Kafka changes the ISR there, and written over the version that was read; after
  a conflict both are repeated. If nobody can lead, the partition stays as it is.

The other transitions change only the controller's memory. An illegal one is logged and not made.

Sources: `kafka.controller.PartitionStateMachine` (3.9).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence

from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.controller.cluster_state import PARTITION_FROM, ControllerState, PartitionStage
from broker.controller.controller_tree import ControllerTree
from broker.controller.elections import (
    Elected,
    Strategy,
    leader_for_controlled_shutdown,
    leader_for_offline,
    leader_for_reassignment,
    preferred_leader,
)
from broker.controller.request_batch import RequestBatch
from broker.controller.sending import Sending
from protocol.types import TopicPartition
from storage.waits import PAUSE

log = logging.getLogger(__name__)

UNCLEAN_KEY = "unclean.leader.election.enable"


class ElectionFailed(Exception):
    """Nobody can lead the partition, or the tree refuses what was decided."""


Outcome = LeaderAndIsr | ElectionFailed
"""A partition's new leadership, or why there is none."""


class PartitionStates:
    """See the module."""

    def __init__(
        self,
        state: ControllerState,
        tree: ControllerTree,
        sending: Sending,
        unclean_by_default: Callable[[], bool],
    ) -> None:
        """`unclean_by_default`: `unclean.leader.election.enable` of this broker."""
        self._state = state
        self._tree = tree
        self._sending = sending
        self._unclean_by_default = unclean_by_default
        self.unclean = 0
        """Unclean elections of this term."""

    async def start(self) -> None:
        """Find out the states at the beginning of a term, and elect where there is no leader."""
        for topic in list(self._state.topics.values()):
            for tp in topic.partitions():
                self._state.set_partition_state(tp, self._first_state(tp))
                await PAUSE
        await self.elect_where_needed()

    def _first_state(self, tp: TopicPartition) -> PartitionStage:
        leadership = self._state.leadership(tp)
        if leadership is None:
            return PartitionStage.NEW
        if self._state.is_online(leadership.leader, tp):
            return PartitionStage.ONLINE
        return PartitionStage.OFFLINE

    async def elect_where_needed(self, topic: str | None = None) -> dict[TopicPartition, Outcome]:
        """Elect leaders of all partitions that are new or offline, or of a topic's."""
        partitions = await self._state.partitions_to_elect(topic)
        return await self.to_online(partitions, Strategy.OFFLINE)

    async def move(self, partitions: Iterable[TopicPartition], target: PartitionStage) -> None:
        """Move partitions to a state other than Online."""
        for tp in await self._legal(partitions, target):
            self._state.set_partition_state(tp, target)
            await PAUSE

    async def to_online(
        self, partitions: Sequence[TopicPartition], strategy: Strategy
    ) -> dict[TopicPartition, Outcome]:
        """Have leaders for the partitions, and tell the brokers.

        Returns the outcomes of elections; not of partitions that were new, nor of those that could
        not become Online from their state.
        """
        legal = await self._legal(partitions, PartitionStage.ONLINE)
        batch = self._sending.batch()
        new: list[TopicPartition] = []
        others: list[TopicPartition] = []
        for tp in legal:
            is_new = self._state.partition_state(tp) is PartitionStage.NEW
            (new if is_new else others).append(tp)
            await PAUSE
        await self._initialize(new, batch)
        outcomes = await self._elect(others, strategy, batch)
        await self._sending.send(batch)
        return outcomes

    async def _legal(
        self, partitions: Iterable[TopicPartition], target: PartitionStage
    ) -> list[TopicPartition]:
        legal = []
        for tp in partitions:
            state = self._state.partition_state(tp)
            if state in PARTITION_FROM[target]:
                legal.append(tp)
            else:
                log.error("%s cannot become %s: it is %s", tp, target.name, state.name)
            await PAUSE
        return legal

    # ------------------------------------------------------------------ new partitions

    async def _initialize(self, partitions: Sequence[TopicPartition], batch: RequestBatch) -> None:
        state = self._state
        first: dict[TopicPartition, LeaderAndIsr] = {}
        for tp in partitions:
            replicas = state.assignment(tp).replicas
            live = state.online(replicas, tp)
            if live:
                first[tp] = LeaderAndIsr(live[0], live, controller_epoch=state.epoch)
            else:
                log.error("%s stays without a leader: none of %s is alive", tp, replicas)
            await PAUSE
        written = await self._tree.create_states(first)
        for tp, leadership in written.done.items():
            state.set_leadership(tp, leadership)
            batch.add_leadership(leadership.isr, tp, is_new=True)
            state.set_partition_state(tp, PartitionStage.ONLINE)
            await PAUSE
        for tp, error in written.failed.items():
            log.error("The first state of %s could not be written: %s", tp, error)

    # ------------------------------------------------------------------ elections

    async def _elect(
        self, partitions: Sequence[TopicPartition], strategy: Strategy, batch: RequestBatch
    ) -> dict[TopicPartition, Outcome]:
        outcomes: dict[TopicPartition, Outcome] = {}
        remaining = partitions
        while remaining:
            remaining = await self._elect_once(remaining, strategy, batch, outcomes)
        for tp, outcome in outcomes.items():
            if isinstance(outcome, ElectionFailed):
                log.error("No leader was elected for %s: %s", tp, outcome)
            await PAUSE
        return outcomes

    async def _elect_once(
        self,
        partitions: Sequence[TopicPartition],
        strategy: Strategy,
        batch: RequestBatch,
        outcomes: dict[TopicPartition, Outcome],
    ) -> list[TopicPartition]:
        """Elect, and add to `outcomes`; return the partitions to try again."""
        state = self._state
        current = await self._tree.states(partitions)
        unclean = await self._unclean_topics(current, strategy)
        elected: dict[TopicPartition, Elected] = {}
        wanted: dict[TopicPartition, LeaderAndIsr] = {}
        for tp in partitions:
            found = current.get(tp)
            if found is None:
                outcomes[tp] = ElectionFailed("the partition has no state in the metadata tree")
            elif found.controller_epoch > state.epoch:
                outcomes[tp] = ElectionFailed(
                    "its state was written by a later controller, "
                    f"of the epoch {found.controller_epoch}"
                )
            else:
                one = self._decide(tp, found, strategy, unclean)
                if one.leadership is None:
                    outcomes[tp] = ElectionFailed(f"nobody can be elected {strategy.value}")
                else:
                    elected[tp] = one
                    wanted[tp] = one.leadership._replace(controller_epoch=state.epoch)
            await PAUSE
        written = await self._tree.update_states(wanted)
        for tp, leadership in written.done.items():
            state.set_leadership(tp, leadership)
            self.unclean += elected[tp].unclean
            batch.add_leadership(elected[tp].recipients, tp, is_new=False)
            state.set_partition_state(tp, PartitionStage.ONLINE)
            outcomes[tp] = leadership
            await PAUSE
        for tp, error in written.failed.items():
            outcomes[tp] = ElectionFailed(str(error))
        return written.conflicting

    async def _unclean_topics(
        self, current: dict[TopicPartition, LeaderAndIsr], strategy: Strategy
    ) -> Collection[str]:
        """The topics that allow an unclean election, of those that need one."""
        if strategy is not Strategy.OFFLINE:
            return ()
        topics: dict[str, None] = {}
        for tp, leadership in current.items():
            if not self._state.online(leadership.isr, tp):
                topics[tp.topic] = None
            await PAUSE
        default = "true" if self._unclean_by_default() else "false"
        configs = await self._tree.topic_configs(topics)
        return {name for name, own in configs.items() if own.get(UNCLEAN_KEY, default) == "true"}

    def _decide(
        self,
        tp: TopicPartition,
        current: LeaderAndIsr,
        strategy: Strategy,
        unclean: Collection[str],
    ) -> Elected:
        state = self._state
        assignment = state.assignment(tp)
        replicas = assignment.replicas
        match strategy:
            case Strategy.OFFLINE | Strategy.OFFLINE_UNCLEAN:
                return leader_for_offline(
                    replicas,
                    current,
                    state.online((*replicas, *current.isr), tp),
                    unclean_allowed=strategy is Strategy.OFFLINE_UNCLEAN or tp.topic in unclean,
                )
            case Strategy.REASSIGNMENT:
                target = assignment.target
                return leader_for_reassignment(target, current, state.online(target, tp))
            case Strategy.PREFERRED:
                return preferred_leader(replicas, current, state.online(replicas, tp))
            case Strategy.CONTROLLED_SHUTDOWN:
                alive = state.online(replicas, tp, with_shutting_down=True)
                return leader_for_controlled_shutdown(replicas, current, alive, state.shutting_down)
