"""A follower's changes of its log: appends copied from the leader, truncations, the leader's marks.

Every change holds the partition's lock, because the partition may become a leader meanwhile. It is
made only while the partition still follows in the epoch in which the records were requested
(`Superseded` otherwise). A small append is made at once; for a big one threads compute the
checksums and write, so that neither a megabyte nor a dirty-page stall holds the loop.

A batch of a later epoch than the follower's is left out, with all after it: between two looks at
its log its leader may have lost leadership to the writer of that batch, and truncation by epochs
only finds divergence in epochs in which the follower took part (KAFKA-18723).

Called by `broker.replication.fetching`. After `ReplicaFetcherThread.processPartitionData`,
`truncate` and `Partition.appendRecordsToFollowerOrFutureReplica`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.replication.append_order import appends_held_back
from broker.replication.partition import Partition
from broker.replication.truncation import Truncation
from storage.epochs import UNDEFINED_EPOCH
from storage.log.following import FollowerBatches, UnexpectedAppendOffset
from storage.log.log import Log
from storage.log.results import AppendInfo, StartOffsetReason
from storage.waits import call

if TYPE_CHECKING:
    from storage.log.appending import PendingAppend

THREADED_COPY_BYTES: Final = 256 * 1024
"""From so many bytes on threads check and write: they may be thousands of small batches."""


class Superseded(Exception):
    """The partition no longer follows in this epoch, so the fetched records are of no use."""


class Moved(Exception):
    """The log does not end where the records begin; the follower must look where it ends."""


def expect_following(partition: Partition, leader_epoch: int) -> None:
    """Raises Superseded."""
    if not partition.is_following or partition.leader_epoch != leader_epoch:
        raise Superseded


async def append_copied(
    partition: Partition, records: memoryview | bytes, *, leader_epoch: int, offset: int
) -> AppendInfo | None:
    """Append what was fetched at `offset`; None if that holds no whole batch.

    Raises Superseded, Moved, RecordsError (damaged batches), KafkaError (StorageError among them).
    """
    threaded = len(records) >= THREADED_COPY_BYTES
    async with appends_held_back(partition):
        expect_following(partition, leader_epoch)
        if partition.log.log_end_offset != offset:
            raise Moved
        name = str(partition.topic_partition)
        if threaded:
            batches = await call(FollowerBatches, records, name)
            expect_following(partition, leader_epoch)
        else:
            batches = FollowerBatches(records, name)
        batches = _of_epoch(batches, leader_epoch, name)
        log = partition.log
        pending = _begin(log, batches)
        if threaded:
            await call(pending.write)
        else:
            pending.write()
        if partition.is_offline:
            # Its disk failed or it was deleted meanwhile: its files must not be touched.
            raise Superseded
        info = log.appender.complete_append(pending)
        if not info.valid_bytes:
            return None
        partition.appended_bytes += info.valid_bytes
        partition.statistics.replication_bytes_in += info.valid_bytes
        if partition.broker_id in partition.state.image.adding_replicas:
            partition.statistics.reassignment_bytes_in += info.valid_bytes
        return info


def _of_epoch(batches: FollowerBatches, leader_epoch: int, name: str) -> FollowerBatches:
    """The batches up to the first of a later epoch."""
    size = 0
    for header in batches.headers:
        if header.partition_leader_epoch > leader_epoch:
            return FollowerBatches(memoryview(batches.data)[:size], name)
        size += header.size
    return batches


def _begin(log: Log, batches: FollowerBatches) -> "PendingAppend":
    appender = log.appender
    try:
        return appender.begin_append_as_follower(batches)
    except UnexpectedAppendOffset as error:
        end = log.log_end_offset
        if log.log_start_offset != end or not error.first_offset < end <= error.last_offset:
            raise
        # An empty log that starts within a batch: the leader's records below were deleted, but a
        # batch comes whole. The log begins with it; the leader's log start is taken over next.
        log.truncate_fully_and_start_at(error.first_offset)
        return appender.begin_append_as_follower(batches)


def take_marks(partition: Partition, *, high_watermark: int, log_start: int) -> bool:
    """Take over the leader's high watermark and log start; return whether the former moved.

    The high watermark is kept within the log; it may go back. Raises StorageError.
    """
    log = partition.log
    moved = log.update_high_watermark(high_watermark)
    if log_start > log.log_start_offset:
        log.maybe_increment_log_start_offset(
            min(log_start, log.high_watermark), StartOffsetReason.LEADER_OFFSET_INCREMENTED
        )
    return moved


async def truncate(
    partition: Partition, decide: Callable[[Log], Truncation], leader_epoch: int
) -> Truncation:
    """Drop what `decide` says of the log, which nothing else changes meanwhile; return that.

    Raises Superseded, RecordsError if damage hides the place, KafkaError (StorageError among them).
    """
    async with appends_held_back(partition):
        expect_following(partition, leader_epoch)
        log = partition.log
        truncation = decide(log)
        if truncation.starts_anew:
            log.truncate_fully_and_start_at(truncation.offset)
        else:
            # Even if no record goes: this broker may have led and written nothing, and then the
            # epoch noted at the log's end would be taken for that of its last record.
            log.truncate_to(truncation.offset)
        return truncation


async def beginning(partition: Partition, leader_epoch: int) -> tuple[int, int]:
    """Return where a follower's first fetch begins: (log end, epoch of the last record or -1).

    With epochs the leader tells whether that record is its own (`steps`, B). A log without epochs
    has only that below the high watermark which is surely the leader's; the rest is dropped.
    Raises Superseded, RecordsError if damage hides that place, KafkaError.
    """
    async with appends_held_back(partition):
        expect_following(partition, leader_epoch)
        log = partition.log
        latest = log.leader_epochs.latest_epoch
        if latest is None and log.high_watermark < log.log_end_offset:
            log.truncate_to(log.high_watermark)
        return log.log_end_offset, UNDEFINED_EPOCH if latest is None else latest
