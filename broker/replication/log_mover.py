"""Moves partitions between log directories while they are written to and read.

For every move there is a future log (`storage.manager.log_moves`). One task copies batches, as a
follower appends them, in slices of `SLICE_BYTES`, taking turns between moves. No move blocks the
event loop: threads read, check, write and sync (`broker.replication.slice_copy`, `Log.flush`). Only
this task changes a future log.

When a copy has caught up it is synced. Then, with appends held back, it gets the rest and replaces
the log it was made from. Appends wait for a few milliseconds; reads go on. Coordinators' appends
cannot wait, so their partitions are switched without a checkpoint.

The copy follows the log's start offset, truncations (by leader epoch), high watermark and
configuration. Its producer state and transaction index are built from the batches.

If a disk fails, the moves from and to its directory end. After a damaged batch a move stops until
it is requested again or the broker is restarted. A move survives a restart.

Event loop only. `broker.api.alter_replica_log_dirs` calls it, `broker.server` runs it.
After `kafka.server.ReplicaAlterLogDirsThread`.
"""

import logging
from typing import TYPE_CHECKING, Final

import trio

from broker.cluster.image import INTERNAL_TOPICS
from broker.replication.append_order import appends_held_back
from broker.replication.partition import Partition
from broker.replication.slice_copy import copy_slice
from broker.replication.truncation import truncation_between
from broker.world.driver import Driver
from protocol.errors import ErrorCode, KafkaError
from protocol.records.errors import RecordsError
from protocol.types import TopicPartition
from storage.errors import BeingRepaired, StorageError, storage_error
from storage.log.log import Log
from storage.log.results import FetchIsolation, ReadInfo, StartOffsetReason
from storage.paths import parent_dir
from storage.waits import Work, at_once

if TYPE_CHECKING:
    from broker.replication.replica_manager import ReplicaManager
    from storage.log_manager import LogManager

log = logging.getLogger(__name__)

SLICE_BYTES: Final = 512 * 1024
"""Bytes copied at a time: a few milliseconds in a thread."""

NEARLY_THERE_BYTES: Final = SLICE_BYTES
"""With at most this left to copy, the copy is synced and put in place."""


class _Abandoned(Exception):
    """The partition was closed, or the move cancelled, during a checkpoint."""


class LogMover:
    """Copies partitions into other log directories, and replaces the original by the copy."""

    def __init__(
        self, replicas: "ReplicaManager", log_manager: "LogManager", driver: Driver
    ) -> None:
        self._replicas = replicas
        self._logs = log_manager
        self._driver = driver
        self._moving: dict[TopicPartition, Log] = {}
        self._wake = trio.Event()

    # ------------------------------------------------------------------ what is to be moved

    def move(self, tp: TopicPartition, directory: str) -> None:
        """Begin to move `tp` to `directory`; if it lies there now, cancel a move of it.

        Raises KafkaError.
        """
        self._logs.moves.check(tp, directory)
        partition = self._replicas.find(tp)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Partition {tp} is not here.")
        if partition.unavailable == ErrorCode.KAFKA_STORAGE_ERROR:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {tp} is offline.")
        source = self._logs.get_log(tp)
        if partition.is_offline or source is None:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"Partition {tp} is not here.")
        future = self._logs.future_log(tp)
        if future is not None and parent_dir(future.dir) != directory:
            self._moving.pop(tp, None)
            self._logs.moves.cancel(tp)
            future = None
        if parent_dir(source.dir) == directory:
            return
        if future is None:
            future = self._logs.moves.create_future_log(tp, directory)
        self._begin(tp, future)

    def resume(self) -> None:
        """Continue the moves that the last run left unfinished."""
        for future in self._logs.future_logs():
            if self._replicas.find(future.topic_partition) is not None:
                self._begin(future.topic_partition, future)

    def opened(self, partition: Partition) -> None:
        """Continue an unfinished move of a partition that was opened while the broker runs."""
        future = self._logs.future_log(partition.topic_partition)
        if future is not None:
            self._begin(partition.topic_partition, future)

    def _begin(self, tp: TopicPartition, future: Log) -> None:
        if self._moving.get(tp) is not future:
            log.info("Moving %s to %s", tp, parent_dir(future.dir))
            self._moving[tp] = future
        self._wake.set()

    # ------------------------------------------------------------------ copying

    async def run(self) -> None:
        """Copy until cancelled."""
        while True:
            if not self._moving:
                self._wake = trio.Event()
                await self._wake.wait()
            for tp, future in list(self._moving.items()):
                await trio.lowlevel.checkpoint()
                await self._turn(tp, future)

    async def _turn(self, tp: TopicPartition, future: Log) -> None:
        try:
            if await self._driver.run(self._catch_up(tp, future)):
                with trio.CancelScope(shield=True):
                    if await self._driver.run(self._change_places(tp, future)):
                        self._forget(tp, future)
        except _Abandoned:
            self._forget(tp, future)
        except BeingRepaired:
            await self._replicas.wait_repaired()
        except StorageError as error:
            log.error("The move of %s ends with its disk: %s", tp, error)
            self._forget(tp, future)
        except (KafkaError, RecordsError) as error:
            log.error("The move of %s to %s stopped: %s", tp, parent_dir(future.dir), error)
            self._forget(tp, future)

    def _forget(self, tp: TopicPartition, future: Log) -> None:
        if self._moving.get(tp) is future:
            del self._moving[tp]

    async def _catch_up(self, tp: TopicPartition, future: Log) -> bool:
        """Copy one slice; if little is left, sync the copy and return True."""
        partition = self._check(tp, future)
        found = self._next_slice(partition.log, future)
        if found is not None:
            await self._copy(partition, future, found)
            if _far_from_the_end(partition.log, found):
                return False
        await self._flush(tp, future)
        return True

    def _check(self, tp: TopicPartition, future: Log) -> Partition:
        """Return the partition. Raises _Abandoned if the move is no longer wanted."""
        partition = self._replicas.find(tp)
        if partition is None or partition.is_offline or self._logs.future_log(tp) is not future:
            raise _Abandoned
        return partition

    def _next_slice(self, source: Log, future: Log) -> ReadInfo | None:
        """Read the next slice that the copy lacks, at most `SLICE_BYTES`; None if it lacks none."""
        self._follow_ends(source, future)
        future.update_high_watermark(source.high_watermark)
        start = future.log_end_offset
        if start >= source.log_end_offset:
            return None
        most = min(SLICE_BYTES, source.config.segment_bytes)
        found = source.read(start, most, FetchIsolation.LOG_END)
        if not len(found.records):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Nothing to be read at {start}.")
        return found

    def _copy(self, partition: Partition, future: Log, found: ReadInfo) -> Work[None]:
        source, tp = partition.log, partition.topic_partition

        def unreadable(error: OSError) -> None:
            self._logs.report_failure(parent_dir(source.dir), error)
            raise storage_error(source.dir, error) from error

        return copy_slice(
            found.records, future, wanted=lambda: self._check(tp, future), unreadable=unreadable
        )

    async def _flush(self, tp: TopicPartition, future: Log) -> None:
        """Sync all that the copy holds."""
        await future.flush()
        self._check(tp, future)

    def _follow_ends(self, source: Log, future: Log) -> None:
        """Drop from either end of the copy what the source no longer has."""
        found = truncation_between(source, future, replicated=source.log_end_offset)
        if found.starts_anew:
            future.truncate_fully_and_start_at(found.offset)
        elif found.changes_log:
            future.truncate_to(found.offset)
        if source.log_start_offset > future.log_start_offset:
            future.update_high_watermark(source.high_watermark)
            future.maybe_increment_log_start_offset(
                source.log_start_offset, StartOffsetReason.LEADER_OFFSET_INCREMENTED
            )
            future.delete_old_segments()

    # ------------------------------------------------------------------ the end of a move

    async def _change_places(self, tp: TopicPartition, future: Log) -> bool:
        """Finish the move; False if that is not possible now."""
        partition = self._check(tp, future)
        if tp.topic in INTERNAL_TOPICS:
            if partition.appending:
                return False
            at_once(self._put_in_place(partition, future))
        else:
            async with appends_held_back(partition):
                await self._put_in_place(partition, future)
        return True

    async def _put_in_place(self, partition: Partition, future: Log) -> None:
        """Replace the source by the copy, while appends are held back.

        See `storage.manager.log_moves` for the order.
        """
        tp, moves = partition.topic_partition, self._logs.moves
        source = partition.log
        while (found := self._next_slice(source, future)) is not None:
            await self._copy(partition, future, found)
        await self._flush(tp, future)
        moves.retire_source(tp)
        try:
            await moves.sync_name_of(source)
            self._check(tp, future)
            promoted = moves.promote_future(tp)
        except BaseException:
            if not partition.is_offline:
                moves.restore_source(tp)
            raise
        partition.replace_log(promoted)
        await moves.checkpoint(parent_dir(source.dir), parent_dir(promoted.dir))


def _far_from_the_end(source: Log, copied: ReadInfo) -> bool:
    """Whether more than `NEARLY_THERE_BYTES` follow the slice that was copied last."""
    active = source.segments.active
    if copied.segment_base != active.base_offset:
        return True
    return active.size - copied.position - len(copied.records) > NEARLY_THERE_BYTES
