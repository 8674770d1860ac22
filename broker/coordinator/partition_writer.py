"""The log as a coordinator sees it: one batch in, told when it is safe; bytes out, for loading.

A coordinator knows neither `Partition` nor `Log`. `PartitionWriter` is all it uses, and what its
tests fake; `ReplicaPartitionWriter` is the broker's own, over `ReplicaManager`.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import trio

from broker.replication.partition import Partition
from broker.replication.purgatory import DelayedOperation
from broker.replication.replica_manager import ReplicaManager
from broker.world.workers import Workers
from protocol.errors import ErrorCode, KafkaError
from protocol.records.errors import CorruptBatch, InvalidRecord, UnsupportedCompression
from protocol.types import TopicPartition
from storage.errors import BeingRepaired
from storage.log.results import AppendInfo, AppendOrigin, FetchIsolation

ALL_IN_SYNC = -1

WriteDone = Callable[[ErrorCode, int], None]
"""(NONE and the offset of the batch's first record, or an error and -1), called once."""


class PartitionWriter(Protocol):
    """What a coordinator needs of its partition's log."""

    def leader_epoch(self, tp: TopicPartition) -> int | None:
        """The epoch in which this broker leads `tp`; None when it does not."""
        ...

    def bounds(self, tp: TopicPartition) -> tuple[int, int]:
        """(log start offset, log end offset). Raises KafkaError."""
        ...

    def append(self, tp: TopicPartition, batch: bytes, done: WriteDone) -> None:
        """Append one batch; `done` when all in-sync replicas have it, or when it failed.

        Calls are served in order; `done` may run before this returns.
        """
        ...

    async def read(self, tp: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """Batches from the one that holds `offset`; the last may be cut, the first is whole."""
        ...

    def uncompacted(self, tp: TopicPartition) -> AbstractContextManager[None]:
        """Inside, no cleaning of the log begins, and one that is in work changes nothing more.

        Who reads all of it must find each tombstone, marker and last value of a key, or whatever
        is older than that; `delete.retention.ms` promises it to whoever takes less time.
        """
        ...


class _DelayedWrite(DelayedOperation):
    """A coordinator's batch that waits for its followers."""

    __slots__ = ("_code", "_done", "_first_offset", "_partition", "_required")

    def __init__(
        self, partition: Partition, first_offset: int, required: int, done: WriteDone
    ) -> None:
        super().__init__()
        self._partition = partition
        self._first_offset = first_offset
        self._required = required
        self._done = done
        self._code = ErrorCode.NONE

    def try_complete(self, key: Hashable | None = None) -> bool:
        """Replicated, or the partition is led elsewhere now."""
        settled, self._code = self._partition.reached(self._required)
        return self.force_complete() if settled else False

    def on_expire(self) -> None:
        """offsets.commit.timeout.ms is over."""
        self._code = ErrorCode.REQUEST_TIMED_OUT

    def on_complete(self) -> None:
        """Tell the coordinator."""
        self._done(self._code, -1 if self._code else self._first_offset)


def when_replicated(
    replicas: ReplicaManager,
    partition: Partition,
    info: AppendInfo,
    timeout_s: float,
    done: WriteDone,
) -> None:
    """Call `done` when all in-sync replicas have what was appended: at once if we are alone."""
    if partition.alone:
        done(ErrorCode.NONE, info.first_offset)
        return
    waiting = _DelayedWrite(partition, info.first_offset, info.last_offset + 1, done)
    replicas.purgatories.produce.try_complete_else_watch(
        waiting, [partition.topic_partition], timeout_s
    )


class ReplicaPartitionWriter:
    """`PartitionWriter` over this broker's replicas."""

    def __init__(self, replicas: ReplicaManager, workers: Workers, *, timeout_ms: int) -> None:
        self._replicas = replicas
        self._workers = workers
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

    def append(self, tp: TopicPartition, batch: bytes, done: WriteDone) -> None:
        """See `PartitionWriter`."""
        try:
            info = self._replicas.append(
                tp, batch, required_acks=ALL_IN_SYNC, origin=AppendOrigin.COORDINATOR
            )
            partition = self._replicas.partition(tp)
        except KafkaError as error:
            done(error.code, -1)
            return
        except (CorruptBatch, InvalidRecord, UnsupportedCompression):
            # Our own batch was refused: not the client's fault, and nothing was written.
            done(ErrorCode.UNKNOWN_SERVER_ERROR, -1)
            raise
        when_replicated(self._replicas, partition, info, self._timeout_s, done)

    async def read(self, tp: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """See `PartitionWriter`; the disk is read by a worker."""
        while True:
            try:
                found = self._replicas.partition(tp).read(offset, max_bytes, FetchIsolation.LOG_END)
                break
            except BeingRepaired:
                await self._replicas.wait_repaired()
        records = found.records
        if isinstance(records, bytes):
            await trio.lowlevel.checkpoint()
            return records
        return await self._workers.in_thread(records.read)

    @contextmanager
    def uncompacted(self, tp: TopicPartition) -> Iterator[None]:
        """See `PartitionWriter`."""
        cleaner = self._replicas.log_manager.cleaner
        cleaner.pause(tp)
        try:
            yield
        finally:
            cleaner.resume(tp)
