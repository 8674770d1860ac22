"""The log as a coordinator sees it: append a batch, wait until it is replicated; read to load.

A coordinator knows neither `Partition` nor `Log`, only `PartitionWriter`, which its tests fake;
`ReplicaPartitionWriter` implements it over `ReplicaManager`.
"""

from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

from broker.replication.partition import ALL_IN_SYNC, Partition
from broker.replication.purgatory import DelayedOperation
from broker.replication.replica_manager import ReplicaManager
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.errors import BeingRepaired
from storage.log.results import AppendInfo, AppendOrigin, FetchIsolation
from storage.waits import Signal, call, fired

_ALONE: Final = fired(ErrorCode.NONE)
"""The end of a batch that no other replica must have."""


class PartitionWriter(Protocol):
    """The logs of a coordinator's topic, as the coordinator needs them."""

    def leader_epoch(self, tp: TopicPartition) -> int | None:
        """Return the epoch in which this broker leads `tp`; None when it does not."""
        ...

    def bounds(self, tp: TopicPartition) -> tuple[int, int]:
        """Return (log start offset, log end offset). Raises KafkaError."""
        ...

    def append(self, tp: TopicPartition, batch: bytes) -> tuple[int, Signal[ErrorCode]]:
        """Append one batch; return the offset of its first record, and the signal of its end.

        The signal brings NONE when all in-sync replicas have the batch, or an error. Raises
        KafkaError.
        """
        ...

    async def read(self, tp: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """Return batches from the one that holds `offset`: the first whole, the last perhaps cut.

        Raises KafkaError.
        """
        ...

    def uncompacted(self, tp: TopicPartition) -> AbstractContextManager[None]:
        """Keep the cleaner from the log: no cleaning begins, and one in work changes nothing more.

        A reader of the whole log must see each tombstone, marker and last value of a key if it saw
        an older record of it; `delete.retention.ms` ensures that only for a reader that is faster.
        """
        ...


class _DelayedWrite(DelayedOperation):
    """A coordinator's batch that waits for the followers; `outcome` is an ErrorCode."""

    __slots__ = ("_partition", "_required")

    def __init__(self, partition: Partition, required: int) -> None:
        super().__init__()
        self._partition = partition
        self._required = required

    def is_complete(self, key: Hashable | None = None) -> bool:
        """Return whether the batch is replicated, or another broker leads the partition."""
        settled, self.outcome = self._partition.reached(self._required)
        return settled

    def on_expire(self) -> None:
        """The writer's timeout is over: REQUEST_TIMED_OUT."""
        self.outcome = ErrorCode.REQUEST_TIMED_OUT


def replicated(
    replicas: ReplicaManager, partition: Partition, info: AppendInfo, timeout_s: float
) -> Signal[ErrorCode]:
    """Return the signal of NONE, when all in-sync replicas have the append, or an error."""
    if partition.alone:
        return _ALONE
    write = _DelayedWrite(partition, info.last_offset + 1)
    if not write.try_complete():
        replicas.purgatories.produce.watch(write, [partition.topic_partition], timeout_s)
    return write.over


class ReplicaPartitionWriter:
    """`PartitionWriter` over this broker's replicas."""

    def __init__(self, replicas: ReplicaManager, *, timeout_ms: int) -> None:
        self._replicas = replicas
        self._timeout_s = timeout_ms / 1000

    def leader_epoch(self, tp: TopicPartition) -> int | None:
        """See `PartitionWriter`."""
        try:
            return self._replicas.partition(tp).leader_epoch
        except KafkaError:
            return None

    def bounds(self, tp: TopicPartition) -> tuple[int, int]:
        """See `PartitionWriter`."""
        log = self._replicas.partition(tp).log
        return log.log_start_offset, log.log_end_offset

    def append(self, tp: TopicPartition, batch: bytes) -> tuple[int, Signal[ErrorCode]]:
        """See `PartitionWriter`."""
        info = self._replicas.append(
            tp, batch, required_acks=ALL_IN_SYNC, origin=AppendOrigin.COORDINATOR
        )
        partition = self._replicas.partition(tp)
        return info.first_offset, replicated(self._replicas, partition, info, self._timeout_s)

    async def read(self, tp: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """See `PartitionWriter`; a thread reads the disk."""
        while True:
            try:
                found = self._replicas.partition(tp).read(offset, max_bytes, FetchIsolation.LOG_END)
                break
            except BeingRepaired:
                await self._replicas.wait_repaired()
        records = found.records
        return records if isinstance(records, bytes) else await call(records.read)

    @contextmanager
    def uncompacted(self, tp: TopicPartition) -> Iterator[None]:
        """See `PartitionWriter`."""
        cleaner = self._replicas.log_manager.cleaner
        cleaner.pause(tp)
        try:
            yield
        finally:
            cleaner.resume(tp)
