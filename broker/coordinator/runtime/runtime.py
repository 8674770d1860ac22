"""The partitions of a coordinator's topic: which are served, elections and resignations.

    NOT_LOADED --elect--> LOADING --log replayed--> ACTIVE
                             |                        | resign
                             +--unreadable--> FAILED  +------> NOT_LOADED

Rules

* A shard holds what a partition's log says: an election builds it by replaying the log from its
  start.
* While a partition loads, requests for it are refused with COORDINATOR_LOAD_IN_PROGRESS (S-GRP-5);
  one that could not be read is refused with NOT_COORDINATOR until it is elected anew.
* An empty partition is active at once. If this broker leads a partition and was not notified yet
  (its topic was created a moment ago), the first request for it elects it.

Generic over the shard and its decisions; used by both coordinators.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Generic, TypeVar

from broker.coordinator.partition_writer import PartitionWriter
from broker.coordinator.runtime.decision import Decision
from broker.coordinator.runtime.loading import LoadStatistics, LogLoader
from broker.coordinator.runtime.shard import Shard
from broker.coordinator.runtime.timers import Timers
from broker.coordinator.runtime.writing import Conduct, ShardWriter
from broker.coordinator.tasks import Tasks
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.clock import Clock


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
        conduct: Conduct[S, D],
        *,
        new_shard: Callable[[int], S],
        on_active: Callable[[S], None],
        slice_bytes: int,
    ) -> None:
        self._topic = topic
        self._writer = writer
        self._new_shard = new_shard
        self._on_active = on_active
        self._served: dict[int, _Served[S]] = {}
        self.tasks = Tasks()
        """Loads, and other work on shards that no request waits for."""
        self._loader = LogLoader[S](
            topic,
            writer,
            clock,
            self.tasks,
            is_wanted=self.is_current,
            loaded=self._activate,
            failed=self._fail,
            slice_bytes=slice_bytes,
        )
        self.carry_out = ShardWriter(
            topic, writer, clock, timers, conduct, self.is_current
        ).carry_out
        """(shard, decision): carry out what the shard has decided."""

    # ---- lookup

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

    def elect(self, partition: int, leader_epoch: int) -> S | None:
        """This broker leads the partition: load it. Return the active shard it replaces, if any."""
        current = self._served.get(partition)
        if (
            current is not None
            and current.epoch >= leader_epoch
            and current.state is not LoadState.FAILED
        ):
            return None
        served = _Served(self._new_shard(partition), leader_epoch)
        self._served[partition] = served
        self._loader.load(served.shard)
        if current is None or current.state is not LoadState.ACTIVE:
            return None
        return current.shard

    def resign(self, partition: int) -> S | None:
        """Another broker leads it now, or it was deleted: return its active shard, if any."""
        served = self._served.pop(partition, None)
        if served is None or served.state is not LoadState.ACTIVE:
            return None
        return served.shard

    def resign_all(self) -> list[S]:
        """The topic was deleted, or the broker stops: return the shards that were active.

        A new topic of the same name begins again with leader epoch 0, so all state must go, or it
        would be taken for the new topic's.
        """
        shards = list(self.active())
        self._served.clear()
        self.tasks.waiting.clear()
        return shards

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
