"""The life of a coordinator: which partitions of its topic are served, elections, resignations.

    NOT_LOADED --elect--> LOADING --log replayed--> ACTIVE
                             |                        | resign
                             +--unreadable--> FAILED  +------> NOT_LOADED

Rules

* A shard holds what a partition's log says: an election builds it by replaying the log from its
  start.
* While a partition loads, requests for it are refused with COORDINATOR_LOAD_IN_PROGRESS (S-GRP-5);
  one that could not be read is refused with NOT_COORDINATOR until it is elected anew.
* Before `startup` and after `shutdown` requests are refused with COORDINATOR_NOT_AVAILABLE.
* A key belongs to a partition by its hash and by how many partitions the topic has; while there is
  no topic, by how many it would get. In a cluster the topic may come from another broker, so it is
  counted at each question (`topic_size`).
* A partition that is led here already stays as it is when its leader epoch rises: no other broker
  has led it meanwhile, or this one would have resigned.
* An empty partition is active at once. If this broker leads a partition and was not notified yet
  (its topic was created a moment ago), the first request for it elects it.

Generic over the shard and its decisions; used by both coordinators.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from broker.coordinator.hashing import coordinator_partition
from broker.coordinator.partition_writer import PartitionWriter
from broker.coordinator.runtime.decision import Decision
from broker.coordinator.runtime.hooks import CoordinatorHooks
from broker.coordinator.runtime.loading import CoordinatorLoader, LoadStatistics
from broker.coordinator.runtime.shard import Shard
from broker.coordinator.runtime.timers import Timers
from broker.coordinator.runtime.writing import ShardWriter
from broker.world.tasks import Tasks
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.clock import Clock

_MOST_CACHED: Final = 10_000
"""Keys whose partition is remembered: Java's hash of a key is slow to compute in Python."""


class LoadState(Enum):
    """State of a partition that this broker leads."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


S = TypeVar("S", bound=Shard[Any])
D = TypeVar("D", bound=Decision[Any])


class _Served(Generic[S]):
    __slots__ = ("epoch", "shard", "state")

    def __init__(self, shard: S, epoch: int) -> None:
        self.shard = shard
        self.epoch = epoch
        self.state = LoadState.LOADING


class CoordinatorRuntime(Generic[S, D]):
    """The partitions of one coordinator's topic."""

    def __init__(
        self,
        topic: str,
        writer: PartitionWriter,
        clock: Clock,
        timers: Timers,
        hooks: CoordinatorHooks[S, D],
        *,
        partition_count: int,
        slice_bytes: int,
        topic_size: Callable[[], int | None] | None = None,
    ) -> None:
        """`partition_count` is what a topic made now would have. `topic_size`, in a cluster: how
        many partitions the topic has; None if there is none."""
        self._topic = topic
        self._writer = writer
        self._new_shard = hooks.new_shard
        self._on_active = hooks.on_active
        self._on_closed = hooks.on_closed
        self._is_open = False
        self._count_of_new_topic = self._partition_count = partition_count
        self._topic_size = topic_size
        self._partition_of: dict[str, int] = {}
        """A cache of `partition_for`."""
        self._served: dict[int, _Served[S]] = {}
        self.tasks = Tasks()
        """Loads, and other work on shards that no request waits for."""
        self._loader = CoordinatorLoader[S](
            topic,
            writer,
            clock,
            self.tasks,
            is_wanted=self.is_current,
            loaded=self._activate,
            failed=self._fail,
            slice_bytes=slice_bytes,
        )
        self.carry_out = ShardWriter(topic, writer, clock, timers, hooks, self.is_current).carry_out
        """(shard, decision): carry out what the shard has decided; see there."""

    # ---- life

    def startup(
        self, partitions: Iterable[tuple[int, int]] = (), *, partition_count: int | None = None
    ) -> None:
        """Begin to serve the `partitions` of the topic that are led here: (index, leader epoch).

        `partition_count` is that of the existing topic, None if there is none: a key keeps its
        partition when the configured number changes.
        """
        self._is_open = True
        if partition_count is not None:
            self._count_partitions(partition_count)
        for partition, leader_epoch in partitions:
            self.elect(partition, leader_epoch)

    def shutdown(self) -> None:
        """Stop serving."""
        self._is_open = False
        self._resign_all(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # ---- lookup

    def shard_of(self, key: str) -> S:
        """Return the active shard of a key. Raises KafkaError with the client's code."""
        if not self._is_open:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self.shard(self.partition_for(key))

    def partition_for(self, key: str) -> int:
        """Return the partition of the topic that a key belongs to."""
        if self._topic_size is not None:
            size = self._topic_size() or self._count_of_new_topic
            if size != self._partition_count:
                self._count_partitions(size)
        partition = self._partition_of.get(key)
        if partition is None:
            partition = coordinator_partition(key, self._partition_count)
            if len(self._partition_of) > _MOST_CACHED:
                self._partition_of.clear()
            self._partition_of[key] = partition
        return partition

    def _count_partitions(self, count: int) -> None:
        self._partition_count = count
        self._partition_of.clear()

    def shard(self, partition: int) -> S:
        """Return the active shard of a partition. Raises KafkaError with the client's code."""
        served = self._served.get(partition)
        if served is None:
            epoch = self._writer.leader_epoch(TopicPartition(self._topic, partition))
            if epoch is None:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            self.elect(partition, epoch)
            served = self._served[partition]
        if served.state is LoadState.ACTIVE:
            return served.shard
        if served.state is LoadState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def epoch(self, partition: int) -> int:
        """Return the leader epoch in which a served partition was elected."""
        return self._served[partition].epoch

    def active(self) -> Iterator[S]:
        """Yield all active shards."""
        for served in list(self._served.values()):
            if served.state is LoadState.ACTIVE:
                yield served.shard

    def all_shards(self) -> Iterator[S]:
        """Return the shards, for lists. Raises KafkaError while any of them is being loaded."""
        if not self._is_open:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return self.active()

    def is_current(self, shard: S) -> bool:
        """Whether this is still the shard of its partition: neither resigned nor replaced."""
        served = self._served.get(shard.partition)
        return served is not None and served.shard is shard

    def served(self, partition: int) -> S | None:
        """Return the shard of a partition if it is active, else None."""
        served = self._served.get(partition)
        return served.shard if served is not None and served.state is LoadState.ACTIVE else None

    def is_loading_partition(self, partition: int) -> bool:
        """Whether this partition is being loaded."""
        served = self._served.get(partition)
        return served is not None and served.state is LoadState.LOADING

    @property
    def is_loading(self) -> bool:
        """Whether any partition is being loaded."""
        return any(served.state is LoadState.LOADING for served in self._served.values())

    # ---- leadership

    def elect(self, partition: int, leader_epoch: int) -> None:
        """This broker leads the partition from now on: load it, unless it leads it already."""
        current = self._served.get(partition)
        if current is not None and current.state is not LoadState.FAILED:
            current.epoch = max(current.epoch, leader_epoch)
            return
        served = _Served(self._new_shard(partition), leader_epoch)
        self._served[partition] = served
        self._loader.load(served.shard)

    def resign(self, partition: int) -> None:
        """Another broker leads it now, or it was deleted."""
        served = self._served.pop(partition, None)
        if served is not None and served.state is LoadState.ACTIVE:
            self._on_closed(served.shard, ErrorCode.NOT_COORDINATOR)

    def topic_deleted(self) -> None:
        """The topic was deleted.

        A new topic of the same name begins again with leader epoch 0, so all state must go, or it
        would be taken for the new topic's.
        """
        self._resign_all(ErrorCode.NOT_COORDINATOR)
        self._count_partitions(self._count_of_new_topic)

    def _resign_all(self, code: ErrorCode) -> None:
        shards = list(self.active())
        self._served.clear()
        self.tasks.waiting.clear()
        for shard in shards:
            self._on_closed(shard, code)

    def _activate(self, shard: S) -> None:
        self._served[shard.partition].state = LoadState.ACTIVE
        self._on_active(shard)

    def _fail(self, shard: S) -> None:
        self._served[shard.partition].state = LoadState.FAILED

    def statistics(self) -> LoadStatistics:
        """A snapshot."""
        states = {state.value: 0 for state in LoadState}
        for served in self._served.values():
            states[served.state.value] += 1
        return self._loader.statistics(states)
