"""What has to be done for logs again and again: retention, syncing, deleting, checkpoints.

The middle layer of `LogManager`; see `storage.log_registry`.
"""

import heapq
import logging
from collections.abc import Callable

from protocol.types import TopicPartition
from storage import log_tasks
from storage.checkpoint import OffsetCheckpoint
from storage.errors import StorageError
from storage.log.log import Log
from storage.log.state import LogState
from storage.log_loading import read_offsets
from storage.log_registry import LogRegistry
from storage.log_tasks import FLUSH_ROLLED_PERIOD_MS, Task
from storage.paths import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    join,
    parent_dir,
)

_log = logging.getLogger(__name__)


class LogUpkeep(LogRegistry):
    """The scheduled tasks (checklist B4.5, B4.6), each a plain method."""

    # Tasks.

    def tasks(self) -> list[Task]:
        """What has to be done regularly (S-TIME-1)."""
        config = self._config
        first = config.log_initial_task_delay_ms

        def task(name: str, period: int, run: Callable[[], int | None], *, blocking: bool) -> Task:
            return Task(
                name=name, initial_delay_ms=first, period_ms=period, run=run, blocking=blocking
            )

        return [
            task(
                log_tasks.RETENTION,
                config.log_retention_check_interval_ms,
                self.cleanup_logs,
                blocking=False,
            ),
            task(
                log_tasks.FLUSHER,
                config.log_flush_scheduler_interval_ms,
                self.flush_dirty_logs,
                blocking=True,
            ),
            task(
                log_tasks.RECOVERY_POINT_CHECKPOINT,
                config.log_flush_offset_checkpoint_interval_ms,
                self.checkpoint_recovery_points,
                blocking=True,
            ),
            task(
                log_tasks.LOG_START_CHECKPOINT,
                config.log_flush_start_offset_checkpoint_interval_ms,
                self.checkpoint_log_start_offsets,
                blocking=True,
            ),
            task(
                log_tasks.DELETE_LOGS,
                config.log_segment_delete_delay_ms,
                self.delete_logs,
                blocking=True,
            ),
            task(
                log_tasks.PRODUCER_EXPIRATION,
                config.producer_id_expiration_check_interval_ms,
                self.remove_expired_producers,
                blocking=False,
            ),
            Task(
                name=log_tasks.FLUSH_ROLLED,
                initial_delay_ms=FLUSH_ROLLED_PERIOD_MS,
                period_ms=FLUSH_ROLLED_PERIOD_MS,
                run=self.flush_rolled,
                blocking=True,
            ),
        ]

    def cleanup_logs(self) -> None:
        """Apply retention to every log that is not compacted (S-RET-1)."""
        for log in self.all_logs():
            if log.config.compact:
                continue
            try:
                log.delete_old_segments()
            except StorageError as error:
                _log.error("Error while deleting segments for %s: %s", log.topic_partition, error)
            self._collect(log)

    def _collect(self, log: Log) -> None:
        for pending in log.take_pending_deletions():
            heapq.heappush(self._to_unlink, (pending.due_ms, pending.path))

    def flush_dirty_logs(self) -> None:
        """Sync every log whose last sync is `flush.ms` ago (S-FL-1)."""
        now = self._clock.wall_ms()
        for log in self._with_future_logs():
            if now - log.last_flush_ms >= log.config.flush_ms:
                self._flush(log, None)

    def flush_rolled(self) -> None:
        """Sync what lies below the segments that were started since the last call (S-ROLL-4)."""
        while self._rolled:
            log, offset = self._rolled.popleft()
            self._flush(log, offset)
        for log_dir, mark in tuple(self._outdated.items()):
            self._checkpoint(log_dir)
            if self._outdated.get(log_dir) is mark:
                del self._outdated[log_dir]

    def _flush(self, log: LogState, offset: int | None) -> None:
        try:
            log.flush(offset)
        except StorageError as error:
            _log.error("Error flushing %s: %s", log.topic_partition, error)

    def _log_rolled(self, log: LogState, offset: int) -> None:
        self._rolled.append((log, offset))

    def _log_rolling(self, log: LogState) -> None:
        log_dir = parent_dir(log.dir)
        if log_dir in self._outdated:
            # An old recovery point, of a deleted log of this name or from before a truncation, does
            # no harm as long as there is one segment above it: that one is recovered whole.
            self._checkpoint(log_dir, log_starts=False)

    def remove_expired_producers(self) -> None:
        """Forget producers that were silent for `producer.id.expiration.ms` (S-IDEM-2)."""
        now = self._clock.wall_ms()
        for log in self.all_logs():
            log.producers.remove_expired(now)

    def delete_logs(self) -> int:
        """Remove what is due: partition directories and segment files; ms until the next is due."""
        for log in self._with_future_logs():
            self._collect(log)
        now = self._clock.wall_ms()
        while self._to_delete and self._to_delete[0][0] <= now:
            _, directory = self._to_delete.popleft()
            self._remove(directory, lambda path: self._fs.remove_tree(path))
        while self._to_unlink and self._to_unlink[0][0] <= now:
            _, path = heapq.heappop(self._to_unlink)
            self._remove(path, lambda path: self._fs.unlink(path, missing_ok=True))
        delay = max(self._config.log_segment_delete_delay_ms, 1)
        if self._to_delete:
            delay = min(delay, self._to_delete[0][0] - now)
        if self._to_unlink:
            delay = min(delay, self._to_unlink[0][0] - now)
        return max(delay, 1)

    def _remove(self, path: str, action: Callable[[str], None]) -> None:
        try:
            action(path)
        except FileNotFoundError:
            # The partition directory was renamed or removed with the file in it.
            return
        except OSError as error:
            owner = next((d for d in self._all_dirs if path.startswith(d + "/")), "")
            _log.error("Exception while deleting %s: %s", path, error)
            self.report_failure(owner, error)
        else:
            _log.debug("Deleted %s", path)

    # Checkpoints.

    def checkpoint_recovery_points(self) -> None:
        """Write down what is synced, per directory (S-FL-3)."""
        for log_dir in self.live_dirs:
            self._checkpoint(log_dir, log_starts=False)

    def checkpoint_log_start_offsets(self) -> None:
        """Write down log starts that do not follow from the files (S-FL-3)."""
        for log_dir in self.live_dirs:
            self._checkpoint(log_dir, recovery_points=False)

    def _checkpoint(
        self, log_dir: str, *, recovery_points: bool = True, log_starts: bool = True
    ) -> None:
        with self._checkpointing:
            error = self._write_checkpoints(log_dir, recovery_points, log_starts)
        if error is not None:
            _log.error("Disk error while writing checkpoints in directory %s: %s", log_dir, error)
            self.report_failure(log_dir, error)

    def _write_checkpoints(
        self, log_dir: str, recovery_points: bool, log_starts: bool
    ) -> OSError | None:
        state = self._dirs.get(log_dir)
        if state is None:
            return None
        logs = self.logs_in(log_dir)
        # Named in advance: a topic that is deleted while this is written must be written out again.
        state.checkpointed = state.checkpointed | {log.topic_partition for log in logs}
        try:
            if recovery_points:
                points = {log.topic_partition: log.recovery_point for log in logs}
                self._checkpoint_file(log_dir, RECOVERY_POINT_CHECKPOINT).write(points)
            if log_starts:
                starts = {
                    log.topic_partition: log.log_start_offset
                    for log in logs
                    if log.log_start_offset > log.first_segment_base
                    or (log.log_start_offset > 0 and not log.names_are_synced)
                }
                self._checkpoint_file(log_dir, LOG_START_OFFSET_CHECKPOINT).write(starts)
        except OSError as error:
            return error
        return None

    def _checkpoint_file(self, log_dir: str, name: str) -> OffsetCheckpoint:
        return OffsetCheckpoint(self._fs, join(log_dir, name))

    def high_watermark_checkpoint(self, log_dir: str) -> OffsetCheckpoint:
        """Where the replication layer keeps the high watermarks of a directory."""
        return self._checkpoint_file(log_dir, HIGH_WATERMARK_CHECKPOINT)

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        """High watermarks as they were written last, of all live directories."""
        marks: dict[TopicPartition, int] = {}
        for log_dir in self.live_dirs:
            try:
                marks.update(read_offsets(self._fs, log_dir, HIGH_WATERMARK_CHECKPOINT))
            except OSError as error:
                self.report_failure(log_dir, error)
        return marks

    def write_high_watermarks(self) -> None:
        """Write down the high watermark of every log. May run in a thread."""
        for log_dir in self.live_dirs:
            marks = {log.topic_partition: log.high_watermark for log in self.logs_in(log_dir)}
            try:
                self.high_watermark_checkpoint(log_dir).write(marks)
            except OSError as error:
                _log.error("Error while writing to checkpoint file in %s: %s", log_dir, error)
                self.report_failure(log_dir, error)
