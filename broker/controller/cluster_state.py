"""The controller's memory of the cluster: brokers, topics, leaders, changes under way.

Plain values without I/O; the tree is the truth, and the memory has what the controller has read
from it or written to it (after the write). One event at a time changes the memory. A walk over all
partitions pauses: meanwhile others may read the memory, but nothing changes it.

A partition's and a replica's state say how far the controller came with it; they are not stored
anywhere. The two tables have the legal transitions, as in Kafka.

Sources: `kafka.controller.ControllerContext`, `PartitionState`, `ReplicaState` (3.9).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from broker.cluster.image import BrokerImage
from broker.cluster.leader_and_isr import EPOCH_DURING_DELETE, NO_EPOCH, LeaderAndIsr
from broker.cluster.replica_assignment import ReplicaAssignment
from protocol.types import ZERO_UUID, TopicPartition
from storage.waits import PAUSE


class PartitionStage(Enum):
    """How far the controller came with a partition."""

    NEW = "it has replicas, and no leader was elected yet"
    ONLINE = "it has a leader"
    OFFLINE = "its leader is gone"
    NON_EXISTENT = "not made yet, or deleted"


class ReplicaState(Enum):
    """How far the controller came with one replica of a partition."""

    NEW = "being made"
    ONLINE = "it leads or follows"
    OFFLINE = "its broker is gone, or it was stopped"
    DELETION_STARTED = "its broker was told to delete it"
    DELETION_SUCCESSFUL = "its broker has deleted it"
    DELETION_INELIGIBLE = "it cannot be deleted now"
    NON_EXISTENT = "not made yet, or gone"


_P, _R = PartitionStage, ReplicaState

PARTITION_FROM: Final[Mapping[PartitionStage, frozenset[PartitionStage]]] = {
    _P.NEW: frozenset((_P.NON_EXISTENT,)),
    _P.ONLINE: frozenset((_P.NEW, _P.ONLINE, _P.OFFLINE)),
    _P.OFFLINE: frozenset((_P.NEW, _P.ONLINE, _P.OFFLINE)),
    _P.NON_EXISTENT: frozenset((_P.OFFLINE,)),
}
"""To a state: the states that it may be entered from."""

_SERVING = (_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE)

REPLICA_FROM: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = {
    _R.NEW: frozenset((_R.NON_EXISTENT,)),
    _R.ONLINE: frozenset(_SERVING),
    _R.OFFLINE: frozenset(_SERVING),
    _R.DELETION_STARTED: frozenset((_R.OFFLINE,)),
    _R.DELETION_SUCCESSFUL: frozenset((_R.DELETION_STARTED,)),
    _R.DELETION_INELIGIBLE: frozenset((_R.OFFLINE, _R.DELETION_STARTED)),
    _R.NON_EXISTENT: frozenset((_R.DELETION_SUCCESSFUL,)),
}
"""To a state: the states that it may be entered from."""


class Replica(NamedTuple):
    """A partition on a broker."""

    tp: TopicPartition
    broker_id: int


class LiveBroker(NamedTuple):
    """A registered broker."""

    image: BrokerImage
    epoch: int
    """The number of the change that made its node (czxid): grows with each of its starts."""


@dataclass(slots=True)
class TopicState:
    """One topic. All mappings are by partition number."""

    name: str
    topic_id: bytes = ZERO_UUID
    assignments: dict[int, ReplicaAssignment] = field(default_factory=dict)
    leaderships: dict[int, LeaderAndIsr] = field(default_factory=dict)
    states: dict[int, PartitionStage] = field(default_factory=dict)
    replica_states: dict[int, dict[int, ReplicaState]] = field(default_factory=dict)
    """By partition number and broker id."""

    def partitions(self) -> list[TopicPartition]:
        """All partitions."""
        return [TopicPartition(self.name, index) for index in self.assignments]

    def replicas(self) -> Iterator[Replica]:
        """All replicas."""
        for index, assignment in self.assignments.items():
            tp = TopicPartition(self.name, index)
            for broker_id in assignment.replicas:
                yield Replica(tp, broker_id)


class ControllerState:
    """See the module."""

    def __init__(self) -> None:
        self.epoch = 0
        """The epoch of this controller."""
        self.brokers: dict[int, LiveBroker] = {}
        """The registered ones, those that are shutting down too."""
        self.populated: dict[int, int] = {}
        """By broker: the epoch of the registration that this controller sent a LeaderAndIsr."""
        self.shutting_down: set[int] = set()
        self.offline_dirs: dict[int, set[TopicPartition]] = {}
        """By broker: its replicas in failed log directories."""
        self.topics: dict[str, TopicState] = {}
        self.reassigning: dict[TopicPartition, None] = {}
        """Partitions of which a reassignment is under way, in their order."""
        self.to_delete: dict[str, None] = {}
        """Topics whose deletion a client wants, and is not done."""
        self.deletion_started: set[str] = set()
        """Those of them whose replicas are being deleted: their partitions count as offline no
        more."""
        self.deletion_ineligible: set[str] = set()
        """Those of them that cannot be deleted now: a replica is offline, or being moved."""
        self.offline_partitions = 0
        self.imbalanced_partitions = 0
        """Partitions that lack their preferred leader (`has_preferred_leader`)."""
        self.partitions_with_leadership = 0
        self._names_by_id: dict[bytes, str] = {}

    # ------------------------------------------------------------------ brokers

    def live_brokers(self) -> set[int]:
        """Ids of the brokers that are not shutting down."""
        return self.brokers.keys() - self.shutting_down

    def is_live(self, broker_id: int) -> bool:
        """Whether the broker is registered and not shutting down."""
        return broker_id in self.brokers and broker_id not in self.shutting_down

    def is_online(
        self, broker_id: int, tp: TopicPartition, *, with_shutting_down: bool = False
    ) -> bool:
        """Whether the broker lives and its replica of `tp` is in no failed directory."""
        if broker_id not in self.brokers:
            return False
        if not with_shutting_down and broker_id in self.shutting_down:
            return False
        failed = self.offline_dirs.get(broker_id)
        return failed is None or tp not in failed

    def online(
        self, brokers: Iterable[int], tp: TopicPartition, *, with_shutting_down: bool = False
    ) -> tuple[int, ...]:
        """Those of `brokers` whose replica of `tp` is online, in their order."""
        return tuple(
            broker_id
            for broker_id in brokers
            if self.is_online(broker_id, tp, with_shutting_down=with_shutting_down)
        )

    # ------------------------------------------------------------------ topics

    def add_topic(self, name: str, topic_id: bytes) -> TopicState:
        """Add a topic without partitions, or give one that is known its id."""
        topic = self.topics.get(name)
        if topic is None:
            topic = self.topics[name] = TopicState(name)
        topic.topic_id = topic_id
        if topic_id != ZERO_UUID:
            self._names_by_id[topic_id] = name
        return topic

    def remove_topic(self, name: str) -> None:
        """Forget a topic."""
        topic = self.topics.get(name)
        if topic is not None:
            for tp in topic.partitions():
                self.set_partition_state(tp, PartitionStage.NON_EXISTENT)
                self._count_imbalance(tp, -1)
            self.partitions_with_leadership -= len(topic.leaderships)
            self._names_by_id.pop(topic.topic_id, None)
            del self.topics[name]
            for tp in topic.partitions():
                self.reassigning.pop(tp, None)
                for failed in self.offline_dirs.values():
                    failed.discard(tp)
        self.to_delete.pop(name, None)
        self.deletion_started.discard(name)
        self.deletion_ineligible.discard(name)

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id, or None."""
        return self._names_by_id.get(topic_id)

    def assignment(self, tp: TopicPartition) -> ReplicaAssignment:
        """A partition's replicas; without any if there is no such partition."""
        topic = self.topics.get(tp.topic)
        return _NOWHERE if topic is None else topic.assignments.get(tp.partition, _NOWHERE)

    def set_assignment(self, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Add a partition, or change its replicas. The topic must be known."""
        self._count_imbalance(tp, -1)
        self.topics[tp.topic].assignments[tp.partition] = assignment
        self._count_imbalance(tp, +1)

    def leadership(self, tp: TopicPartition) -> LeaderAndIsr | None:
        """A partition's leader and ISR as last read or written; None while it has no state node."""
        topic = self.topics.get(tp.topic)
        return None if topic is None else topic.leaderships.get(tp.partition)

    def set_leadership(self, tp: TopicPartition, leadership: LeaderAndIsr) -> None:
        """Note a partition's leader and ISR. The topic must be known."""
        self._count_imbalance(tp, -1)
        leaderships = self.topics[tp.topic].leaderships
        self.partitions_with_leadership += tp.partition not in leaderships
        leaderships[tp.partition] = leadership
        self._count_imbalance(tp, +1)

    def leader_epoch(self, tp: TopicPartition) -> int:
        """The epoch for a StopReplica: -2 for a topic to be deleted, -1 while there is none."""
        if tp.topic in self.to_delete:
            return EPOCH_DURING_DELETE
        leadership = self.leadership(tp)
        return NO_EPOCH if leadership is None else leadership.leader_epoch

    # ------------------------------------------------------------------ states

    def partition_state(self, tp: TopicPartition) -> PartitionStage:
        """How far the controller came with the partition."""
        topic = self.topics.get(tp.topic)
        if topic is None:
            return PartitionStage.NON_EXISTENT
        return topic.states.get(tp.partition, PartitionStage.NON_EXISTENT)

    def set_partition_state(self, tp: TopicPartition, state: PartitionStage) -> None:
        """Change it; counts offline ones. A topic that is unknown has no states."""
        topic = self.topics.get(tp.topic)
        if topic is None:
            return
        if tp.topic not in self.deletion_started:
            was = topic.states.get(tp.partition)
            self.offline_partitions += (state is _P.OFFLINE) - (was is _P.OFFLINE)
        topic.states[tp.partition] = state

    def replica_state(self, replica: Replica) -> ReplicaState:
        """How far the controller came with the replica."""
        topic = self.topics.get(replica.tp.topic)
        if topic is None:
            return ReplicaState.NON_EXISTENT
        states = topic.replica_states.get(replica.tp.partition)
        if states is None:
            return ReplicaState.NON_EXISTENT
        return states.get(replica.broker_id, ReplicaState.NON_EXISTENT)

    def set_replica_state(self, replica: Replica, state: ReplicaState) -> None:
        """Change it. A topic that is unknown has no states."""
        topic = self.topics.get(replica.tp.topic)
        if topic is None:
            return
        states = topic.replica_states.setdefault(replica.tp.partition, {})
        if state is ReplicaState.NON_EXISTENT:
            states.pop(replica.broker_id, None)
        else:
            states[replica.broker_id] = state

    def replicas_in(self, topic: str, state: ReplicaState) -> list[Replica]:
        """The topic's replicas in a state."""
        known = self.topics.get(topic)
        if known is None:
            return []
        return [replica for replica in known.replicas() if self.replica_state(replica) is state]

    # ------------------------------------------------------------------ walks

    async def replicas_on(self, brokers: Collection[int]) -> list[Replica]:
        """All replicas on the brokers."""
        found: list[Replica] = []
        for topic in list(self.topics.values()):
            for index, assignment in topic.assignments.items():
                tp = TopicPartition(topic.name, index)
                found += [Replica(tp, one) for one in assignment.replicas if one in brokers]
                await PAUSE
        return found

    async def partitions_where(
        self, wanted: Callable[[TopicState, TopicPartition], bool]
    ) -> list[TopicPartition]:
        """The partitions that `wanted` says yes to."""
        found: list[TopicPartition] = []
        for topic in list(self.topics.values()):
            for index in topic.assignments:
                tp = TopicPartition(topic.name, index)
                if wanted(topic, tp):
                    found.append(tp)
                await PAUSE
        return found

    async def partitions_with_leaders(self) -> list[TopicPartition]:
        """Those with a state node, of topics that are not to be deleted."""
        return await self.partitions_where(
            lambda topic, tp: tp.partition in topic.leaderships and topic.name not in self.to_delete
        )

    async def partitions_with_offline_leader(self) -> list[TopicPartition]:
        """Those whose leader is not online, of topics that are not to be deleted."""

        def is_headless(topic: TopicState, tp: TopicPartition) -> bool:
            leadership = topic.leaderships.get(tp.partition)
            return (
                leadership is not None
                and topic.name not in self.to_delete
                and not self.is_online(leadership.leader, tp)
            )

        return await self.partitions_where(is_headless)

    async def partitions_led_by(self, broker_id: int) -> list[TopicPartition]:
        """Those that the broker leads and that have other replicas, not to be deleted."""

        def is_led(topic: TopicState, tp: TopicPartition) -> bool:
            leadership = topic.leaderships.get(tp.partition)
            return (
                leadership is not None
                and leadership.leader == broker_id
                and topic.name not in self.to_delete
                and len(topic.assignments[tp.partition].replicas) > 1
            )

        return await self.partitions_where(is_led)

    async def partitions_to_elect(self, topic: str | None = None) -> list[TopicPartition]:
        """Partitions that are new or offline, of all topics or one, not to be deleted."""
        wanted = (PartitionStage.NEW, PartitionStage.OFFLINE)

        def is_to_elect(known: TopicState, tp: TopicPartition) -> bool:
            return (
                known.states.get(tp.partition) in wanted
                and known.name not in self.to_delete
                and topic in (None, known.name)
            )

        return await self.partitions_where(is_to_elect)

    # ------------------------------------------------------------------ deletions

    def queue_deletion(self, topics: Iterable[str]) -> None:
        """Note that topics are to be deleted; they count as imbalanced no more."""
        for name in topics:
            if name in self.to_delete:
                continue
            topic = self.topics.get(name)
            if topic is not None:
                for tp in topic.partitions():
                    self._count_imbalance(tp, -1)
            self.to_delete[name] = None

    # ------------------------------------------------------------------ counts

    def _count_imbalance(self, tp: TopicPartition, sign: int) -> None:
        if tp.topic in self.to_delete:
            return
        topic = self.topics.get(tp.topic)
        if topic is None:
            return
        assignment = topic.assignments.get(tp.partition)
        leadership = topic.leaderships.get(tp.partition)
        if (
            assignment is not None
            and leadership is not None
            and not has_preferred_leader(assignment, leadership)
        ):
            self.imbalanced_partitions += sign

    def _check(self) -> None:
        """Invariants, for tests: the counts are what a recount gives, and the indexes agree."""
        offline = imbalanced = led = 0
        for name, topic in self.topics.items():
            assert topic.name == name
            led += len(topic.leaderships)
            for index, assignment in topic.assignments.items():
                assert len(set(assignment.replicas)) == len(assignment.replicas)
                assert set(assignment.adding + assignment.removing) <= set(assignment.replicas)
                leadership = topic.leaderships.get(index)
                if name not in self.deletion_started:
                    offline += topic.states.get(index) is PartitionStage.OFFLINE
                if leadership is not None and name not in self.to_delete:
                    imbalanced += not has_preferred_leader(assignment, leadership)
        assert self.offline_partitions == offline, (self.offline_partitions, offline)
        assert self.imbalanced_partitions == imbalanced, (self.imbalanced_partitions, imbalanced)
        assert self.partitions_with_leadership == led
        ids = {t.topic_id: n for n, t in self.topics.items() if t.topic_id != ZERO_UUID}
        assert self._names_by_id == ids
        assert self.deletion_started <= self.to_delete.keys()
        assert self.shutting_down <= self.brokers.keys()


_NOWHERE: Final = ReplicaAssignment()


def has_preferred_leader(assignment: ReplicaAssignment, leadership: LeaderAndIsr) -> bool:
    """Whether the first replica leads; while it is being added, whether it cannot lead yet."""
    if not assignment.replicas:
        return True
    preferred = assignment.replicas[0]
    if preferred in assignment.adding:
        return preferred not in leadership.isr
    return leadership.leader == preferred
