"""All logs of a broker: opened, found, made, deleted, looked after (Kafka's `LogManager`).

Log directories
  A directory of `log.dirs` is live or offline. The first disk error of any log in it takes the
  whole directory offline: its logs are let go, the others serve on, and `on_offline` is told; when
  the last one went, the broker has to stop (`OfflineDir.last`). Nothing brings a directory back but
  a restart.

New logs go to the live directory with the fewest logs. Topics are deleted by renaming the partition
directory; `delete_logs` removes it later (S-RET-8).

Threads
  The manager belongs to the thread that owns the logs. Loading jobs and tasks marked `blocking` may
  run in others: they read offsets and sync files, and report disk errors through `report_failure`,
  which hands the consequence to the owner (`defer`).

`broker.server` makes one; `broker.replication` and `broker.background` call it.
"""

import heapq
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.types import ZERO_UUID, TopicPartition, uuid_to_text
from storage import log_tasks
from storage.checkpoint import OffsetCheckpoint
from storage.clock import Clock
from storage.errors import DirectoryLocked, StorageError
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log.state import LogState
from storage.log_dir import LogDir, write_partition_metadata
from storage.log_loading import Loading, LoadJob, TopicConfigs, jobs_of, read_offsets
from storage.log_tasks import FLUSH_ROLLED_PERIOD_MS, Task
from storage.paths import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    DirState,
    join,
    parent_dir,
    partition_dir_name,
    state_dir_name,
)
from storage.recovery import LoadOptions, load_log

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineDir:
    """A log directory that failed."""

    path: str
    error: OSError
    partitions: tuple[TopicPartition, ...]
    """Whose logs were in it."""
    last: bool
    """No live directory is left: the broker cannot go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagerStatistics:
    """Gauges (`kafka.log:type=LogManager,name=…`)."""

    live_dirs: tuple[str, ...]
    offline_dirs: tuple[str, ...]
    logs: int
    logs_to_be_deleted: int
    logs_to_load: int
    """Partition directories that are not open yet, during start-up."""


@dataclass(slots=True)
class _Dir:
    """State of one directory of `log.dirs`."""

    log_dir: LogDir
    was_clean: bool = False
    loaded: bool = False
    """All its logs were opened, so a clean stop may be promised."""
    checkpointed: frozenset[TopicPartition] = frozenset()
    """Partitions named by the recovery point or log start checkpoint on the disk."""


def _at_once(action: Callable[[], None]) -> None:
    action()


class LogManager:
    """See the module docstring."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        fs: FileSystem,
        *,
        on_offline: Callable[[OfflineDir], None],
        defer: Callable[[Callable[[], None]], None] = _at_once,
        random: Random | None = None,
    ) -> None:
        """`defer` runs an action on the owner's thread soon; it may be called from any thread."""
        self._config = config
        self._clock = clock
        self._fs = fs
        self._on_offline = on_offline
        self._defer = defer
        self._random = random or Random()
        self._all_dirs = tuple(config.log_dirs)
        self._dirs: dict[str, _Dir] = {}
        self._offline: dict[str, OSError] = {}
        self._reported: set[str] = set()
        self._logs: dict[TopicPartition, Log] = {}
        self._initializing: dict[TopicPartition, TopicConfig | None] = {}
        self._to_delete: deque[tuple[int, str]] = deque()
        self._to_unlink: list[tuple[int, str]] = []
        self._rolled: deque[tuple[LogState, int]] = deque()
        self._loading: Loading | None = None

    # What there is.

    @property
    def live_dirs(self) -> tuple[str, ...]:
        """Log directories in service, in the order of `log.dirs`."""
        return tuple(self._dirs)

    @property
    def offline_dirs(self) -> tuple[str, ...]:
        """Log directories that failed."""
        return tuple(self._offline)

    def get_log(self, topic_partition: TopicPartition) -> Log | None:
        """The partition's log, if it is on a live directory."""
        return self._logs.get(topic_partition)

    def all_logs(self) -> list[Log]:
        """Every log in service."""
        return list(self._logs.values())

    def dir_of(self, topic_partition: TopicPartition) -> str | None:
        """The log directory that holds the partition."""
        log = self._logs.get(topic_partition)
        return None if log is None else parent_dir(log.dir)

    def latest_epoch(self, topic_partition: TopicPartition) -> int | None:
        """The last leader epoch in the partition's log; None when it is empty or not here."""
        log = self._logs.get(topic_partition)
        return None if log is None else log.leader_epochs.latest_epoch

    def logs_in(self, log_dir: str) -> list[Log]:
        """Logs of one log directory."""
        return [log for log in self.all_logs() if parent_dir(log.dir) == log_dir]

    def statistics(self) -> LogManagerStatistics:
        """For metrics."""
        pending = self._loading.jobs if self._loading is not None else ()
        return LogManagerStatistics(
            live_dirs=self.live_dirs,
            offline_dirs=self.offline_dirs,
            logs=len(self._logs),
            logs_to_be_deleted=len(self._to_delete),
            logs_to_load=sum(job.log is None and job.error is None for job in pending),
        )

    # Starting.

    def lock_and_check_dirs(self) -> None:
        """Make, lock and list every directory of `log.dirs`; bad ones are offline from the start.

        Raises DirectoryLocked when another broker uses one, ValueError when one is named twice,
        StorageError when none is left (S-REC-7).
        """
        if len(set(self._all_dirs)) != len(self._all_dirs):
            raise ValueError(f"Duplicate log directory found: {', '.join(self._all_dirs)}")
        for path in self._all_dirs:
            log_dir = LogDir(self._fs, path)
            try:
                if not self._fs.exists(path):
                    _log.info("Log directory %s not found, creating it.", path)
                    self._fs.make_dirs(path)
                self._fs.list_dir(path)
                log_dir.lock()
            except OSError as error:
                _log.error("Failed to create or validate data directory %s: %s", path, error)
                self._offline[path] = error
            except DirectoryLocked:
                self._unlock_all()
                raise
            else:
                self._dirs[path] = _Dir(log_dir)
        if not self._dirs:
            raise StorageError(
                ", ".join(self._all_dirs),
                "none of the specified log dirs can be created or validated",
            )

    def start_loading(self, topic_configs: TopicConfigs) -> Loading:
        """What has to be opened. Takes the clean-shutdown markers away first (S-REC-1)."""
        everything = Loading()
        for path, state in self._dirs.items():
            try:
                state.was_clean = state.log_dir.take_clean_shutdown_marker()
                found = jobs_of(
                    self._fs,
                    self._clock,
                    path,
                    topic_configs,
                    clean=state.was_clean,
                    producer_expiration_ms=self._config.producer_id_expiration_ms,
                )
            except OSError as error:
                everything.failed[path] = error
                continue
            _log.info(
                "%s %d logs in %s",
                "Skipping recovery of" if state.was_clean else "Recovering",
                len(found.jobs),
                path,
            )
            everything.jobs += found.jobs
            everything.to_delete += found.to_delete
            self._initializing.update((job.topic_partition, None) for job in found.jobs)
        self._loading = everything
        return everything

    def load_jobs(self, topic_configs: TopicConfigs) -> list[LoadJob]:
        """As `start_loading`, for callers that need the jobs only."""
        return self.start_loading(topic_configs).jobs

    def finish_loading(self) -> None:
        """Take over what the jobs found. Raises StorageError when a partition is found twice."""
        loading = self._loading
        if loading is None:
            return
        failed = dict(loading.failed)
        for job in loading.jobs:
            if job.error is not None:
                _log.error("Error while loading log dir %s: %s", job.directory, job.error)
                failed.setdefault(job.log_dir, job.error)
        for job in loading.jobs:
            self.finished_initializing(job.topic_partition, job.log)
            if job.log is not None and job.log_dir not in failed:
                self._adopt(job.log)
        now = self._clock.wall_ms()
        self._to_delete.extend((now, path) for path in loading.to_delete)
        self._loading = None
        for path, state in self._dirs.items():
            state.loaded = path not in failed
        for path, error in failed.items():
            self.handle_dir_failure(path, error)

    def load_logs(
        self, topic_configs: TopicConfigs, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Open everything here and now; `progress` is told (done, all) after each log."""
        jobs = self.start_loading(topic_configs).jobs
        for done, job in enumerate(jobs, start=1):
            job.run()
            if progress is not None:
                progress(done, len(jobs))
        self.finish_loading()

    def startup(self, topic_configs: TopicConfigs) -> None:
        """Lock, check and load; what tests and tools need in one call."""
        self.lock_and_check_dirs()
        self.load_logs(topic_configs)

    def _adopt(self, log: Log) -> None:
        previous = self._logs.get(log.topic_partition)
        if previous is not None:
            raise StorageError(
                log.dir,
                f"Duplicate log directories for {log.topic_partition} are found in both {log.dir} "
                f"and {previous.dir}. Recover broker from this failure by manually deleting one of "
                "the two directories for this partition.",
            )
        log.connect(failed=self._log_failed, rolled=self._log_rolled)
        self._logs[log.topic_partition] = log

    # Topics come, change and go.

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: TopicConfig,
        is_new: bool = False,
    ) -> Log:
        """The partition's log, made if need be on the live directory with the fewest logs.

        With `is_new` the caller knows that it exists nowhere; without, a directory that is offline
        may hold it, so then nothing is made. Raises StorageError, INCONSISTENT_TOPIC_ID.
        """
        log = self._logs.get(topic_partition)
        if log is None:
            if self._offline and not is_new:
                raise StorageError(
                    partition_dir_name(topic_partition),
                    f"Can not create log for {topic_partition} because log directories "
                    f"{', '.join(self._offline)} are offline",
                )
            log = self._create(topic_partition, topic_id, config)
            self._adopt(log)
        elif topic_id != ZERO_UUID:
            if log.topic_id == ZERO_UUID:
                self._give_topic_id(log, topic_id)
            elif log.topic_id != topic_id:
                raise KafkaError(
                    ErrorCode.INCONSISTENT_TOPIC_ID,
                    f"Tried to assign topic ID {uuid_to_text(topic_id)} to log for topic partition "
                    f"{topic_partition}, but log already contained topic ID "
                    f"{uuid_to_text(log.topic_id)}",
                )
        return log

    def _create(self, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig) -> Log:
        for log_dir in self._emptiest_first():
            directory = join(log_dir, partition_dir_name(topic_partition))
            try:
                self._fs.make_dirs(directory)
                if topic_id != ZERO_UUID:
                    write_partition_metadata(self._fs, directory, topic_id, sync=False)
                options = LoadOptions(
                    config=config,
                    clean=False,  # should there be files, they are not taken on trust
                    topic_id=topic_id,
                    producer_expiration_ms=self._config.producer_id_expiration_ms,
                )
                log = load_log(self._fs, self._clock, directory, topic_partition, options)
            except OSError as error:
                self.report_failure(log_dir, error)
                continue
            _log.info("Created log for partition %s in %s", topic_partition, directory)
            return log
        raise StorageError(
            partition_dir_name(topic_partition),
            f"No log directories available. Tried {', '.join(self._all_dirs)}",
        )

    def _give_topic_id(self, log: Log, topic_id: bytes) -> None:
        try:
            write_partition_metadata(self._fs, log.dir, topic_id, sync=False)
        except OSError as error:
            self._log_failed(log.dir, error)
            raise StorageError(log.dir, error) from error
        log.topic_id = topic_id

    def _emptiest_first(self) -> list[str]:
        """Live directories, the one with the fewest logs first; ties in the order of `log.dirs`."""
        if len(self._dirs) == 1:
            return list(self._dirs)
        counts = dict.fromkeys(self._dirs, 0)
        for log in self._logs.values():
            counts[parent_dir(log.dir)] += 1
        return sorted(counts, key=counts.__getitem__)

    def initializing(self, topic_partition: TopicPartition) -> None:
        """The caller is about to read the topic's configuration and make its log (S-CFG-5)."""
        self._initializing.setdefault(topic_partition, None)

    def finished_initializing(self, topic_partition: TopicPartition, log: Log | None) -> None:
        """The log is there (or not): a configuration that changed meanwhile wins (KAFKA-8813)."""
        changed = self._initializing.pop(topic_partition, None)
        if changed is not None and log is not None:
            log.update_config(changed)

    def update_topic_config(self, topic: str, config: TopicConfig) -> None:
        """The topic's logs follow these rules from now on, those that are being opened as well."""
        for topic_partition in self._initializing:
            if topic_partition.topic == topic:
                self._initializing[topic_partition] = config
        for topic_partition, log in self._logs.items():
            if topic_partition.topic == topic:
                log.update_config(config)

    def async_delete(self, topic_partition: TopicPartition) -> None:
        """Take the partition out of service; its directory is removed later (S-RET-8).

        The topic may be made again at once. Raises StorageError.
        """
        self.async_delete_all((topic_partition,))

    def async_delete_all(self, partitions: Iterable[TopicPartition]) -> None:
        """`async_delete` for many, with one write of the checkpoints. Raises StorageError.

        The checkpoints are written at once: an old offset in them would be taken for one of a new
        log of the same name.
        """
        touched: set[str] = set()
        due = self._clock.wall_ms() + self._config.log_segment_delete_delay_ms
        for topic_partition in partitions:
            log = self._logs.pop(topic_partition, None)
            if log is None:
                if self._offline:
                    raise StorageError(
                        partition_dir_name(topic_partition),
                        f"Failed to delete log for {topic_partition} because it may be in one of "
                        f"the offline directories {', '.join(self._offline)}",
                    )
                continue
            log_dir = parent_dir(log.dir)
            unique = f"{self._random.getrandbits(128):032x}"
            target = join(log_dir, state_dir_name(topic_partition, DirState.DELETE, unique))
            try:
                log.take_out_of_service()
                self._fs.rename(log.dir, target)
            except OSError as error:
                self._log_failed(log.dir, error)
                raise StorageError(log.dir, error) from error
            _log.info(
                "Log for partition %s is renamed to %s and is scheduled for deletion",
                topic_partition,
                target,
            )
            self._to_delete.append((due, target))
            if topic_partition in self._dirs[log_dir].checkpointed:
                touched.add(log_dir)
        for log_dir in touched:
            self._checkpoint(log_dir)

    def truncate_to(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Cut logs back, for a follower; unknown partitions are left out. Raises StorageError.

        The checkpoint follows at once: with an old recovery point in it, what is appended next would
        be taken for synced after a crash.
        """
        self._cut({tp: offset for tp, offset in offsets.items() if tp in self._logs}, Log.truncate_to)

    def truncate_fully_and_start_at(self, topic_partition: TopicPartition, offset: int) -> None:
        """Empty a log; its next record gets `offset`. As `truncate_to`."""
        self._cut({topic_partition: offset}, Log.truncate_fully_and_start_at)

    def _cut(
        self, offsets: Mapping[TopicPartition, int], cut: Callable[[Log, int], object]
    ) -> None:
        touched = set()
        for topic_partition, offset in offsets.items():
            log = self._logs[topic_partition]
            before = log.recovery_point
            cut(log, offset)
            if log.recovery_point < before:
                touched.add(parent_dir(log.dir))
        for log_dir in touched:
            self._checkpoint(log_dir)

    # Disks fail.

    def _log_failed(self, directory: str, error: OSError) -> None:
        self.report_failure(parent_dir(directory), error)

    def report_failure(self, log_dir: str, error: OSError) -> None:
        """A disk error in `log_dir`, seen by any thread; the first one counts."""
        if log_dir in self._reported:
            return
        self._reported.add(log_dir)
        self._defer(lambda: self.handle_dir_failure(log_dir, error))

    def handle_dir_failure(self, log_dir: str, error: OSError) -> None:
        """Take a directory and its logs out of service and tell `on_offline`; once."""
        self._reported.add(log_dir)
        state = self._dirs.pop(log_dir, None)
        if state is None:
            return
        _log.error("Stopping serving logs in dir %s: %s", log_dir, error)
        self._offline[log_dir] = error
        lost = [tp for tp, log in self._logs.items() if parent_dir(log.dir) == log_dir]
        for topic_partition in lost:
            self._logs.pop(topic_partition).take_offline(error)
        state.log_dir.unlock()
        if not self._dirs:
            _log.critical("All log dirs in %s have failed", ", ".join(self._all_dirs))
        self._on_offline(
            OfflineDir(path=log_dir, error=error, partitions=tuple(lost), last=not self._dirs)
        )

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
        for log in self.all_logs():
            if now - log.last_flush_ms >= log.config.flush_ms:
                self._flush(log, None)

    def flush_rolled(self) -> None:
        """Sync what lies below the segments that were started since the last call (S-ROLL-4)."""
        while self._rolled:
            log, offset = self._rolled.popleft()
            self._flush(log, offset)

    def _flush(self, log: LogState, offset: int | None) -> None:
        try:
            log.flush(offset)
        except StorageError as error:
            _log.error("Error flushing %s: %s", log.topic_partition, error)

    def _log_rolled(self, log: LogState, offset: int) -> None:
        self._rolled.append((log, offset))

    def remove_expired_producers(self) -> None:
        """Forget producers that were silent for `producer.id.expiration.ms` (S-IDEM-2)."""
        now = self._clock.wall_ms()
        for log in self.all_logs():
            log.producers.remove_expired(now)

    def delete_logs(self) -> int:
        """Remove what is due: partition directories and segment files; ms until the next is due."""
        for log in self.all_logs():
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
        state = self._dirs.get(log_dir)
        if state is None:
            return
        logs = self.logs_in(log_dir)
        # Named in advance: a topic that is deleted while this is written must be written out again.
        state.checkpointed = state.checkpointed | {log.topic_partition for log in logs}
        try:
            if recovery_points:
                for log in logs:
                    log.leader_epochs.flush()
                points = {log.topic_partition: log.recovery_point for log in logs}
                self._checkpoint_file(log_dir, RECOVERY_POINT_CHECKPOINT).write(points)
            if log_starts:
                starts = {
                    log.topic_partition: log.log_start_offset
                    for log in logs
                    if log.log_start_offset > log.first_segment_base
                }
                self._checkpoint_file(log_dir, LOG_START_OFFSET_CHECKPOINT).write(starts)
        except OSError as error:
            _log.error("Disk error while writing checkpoints in directory %s: %s", log_dir, error)
            self.report_failure(log_dir, error)

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

    # Stopping.

    def shutdown(self, broker_epoch: int = -1) -> None:
        """Sync and close all logs; write checkpoints and clean-stop markers (S-START-5).

        A directory where something failed, or whose logs were never all loaded, gets no marker.
        """
        for log_dir in self.live_dirs:
            state = self._dirs[log_dir]
            try:
                for log in self.logs_in(log_dir):
                    log.flush()
                    log.close()
            except StorageError as error:
                _log.error("Error while closing logs in %s: %s", log_dir, error)
                continue
            self._checkpoint(log_dir)
            if log_dir not in self._dirs or not (state.loaded or state.was_clean):
                continue
            try:
                state.log_dir.write_clean_shutdown_marker(broker_epoch)
            except OSError as error:
                _log.error("No clean shutdown marker in %s: %s", log_dir, error)
        self._unlock_all()
        self._logs.clear()

    def _unlock_all(self) -> None:
        for state in self._dirs.values():
            state.log_dir.unlock()
