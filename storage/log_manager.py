"""All logs of a broker: opened, found, made, deleted, looked after (Kafka's `LogManager`).

The manager consists of parts, each with its own state (`storage.manager`), and decides only what
concerns several of them:

    LogDirectories   which directories of `log.dirs` are in service     LogTable     the logs
    LogLoader        opening all logs at start                          LogMaker     new logs
    LogConfigs       configurations that change                         LogMoves     to other dirs
    Flusher          syncing after a roll and by `flush.ms`             Checkpoints  offset files
    BackgroundSync   syncing of the ends of logs
    Deletions        directories and files to be removed                Upkeep       expiry by age
    Closing          an orderly stop                                    Repairs      indexes
    LogCleanerManager  which log is compacted next (`storage.cleaner`)

New logs go to the live directory with the fewest logs. A topic is deleted by renaming its partition
directories; a task removes them later (S-RET-8). When a directory goes offline, so do its logs.

Everything here belongs to the thread that owns the logs. Work that may wait for the disk is an
`async def` (`storage.waits`): `tasks`, `shutdown`.

`broker.server` makes one, runs its tasks and hands it to `broker.components`.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage import log_tasks
from storage.cleaner.checkpoints import CleanerCheckpoints
from storage.cleaner.manager import LogCleanerManager
from storage.clock import Clock
from storage.distribution import FOLD, Distribution, DistributionSnapshot
from storage.errors import OutOfResources, StorageError
from storage.log.log import Log
from storage.log_loading import LoadJob, TopicConfigs
from storage.manager.background_sync import BackgroundSync
from storage.manager.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, Checkpoints
from storage.manager.closing import Closing
from storage.manager.deletions import Deletions
from storage.manager.directories import LogDirectories
from storage.manager.flusher import Flusher
from storage.manager.loading import LogLoader
from storage.manager.log_configs import LogConfigs
from storage.manager.log_maker import LogMaker
from storage.manager.log_moves import LogMoves
from storage.manager.log_table import LogTable
from storage.manager.repairs import Repairs
from storage.manager.upkeep import Upkeep
from storage.open_files import OpenFiles
from storage.paths import (
    HIGH_WATERMARK_CHECKPOINT,
    DirState,
    join,
    parent_dir,
    partition_dir_name,
)
from storage.task import Task
from storage.waits import Work, at_once

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagerStatistics:
    """Gauges (`kafka.log:type=LogManager,name=…`)."""

    live_dirs: tuple[str, ...]
    offline_dirs: tuple[str, ...]
    logs: int
    logs_to_load: int
    """During start-up: partition directories that are not open yet."""
    damaged_indexes: Mapping[str, int]
    """Indexes that were found damaged since the start, by kind."""
    open_segments: int = 0
    """Segments that have files open."""
    closed_segments: int = 0
    """How often a segment had to close its files so that another could open its own."""
    flushes: DistributionSnapshot
    """How long syncs of logs took (Kafka's LogFlushRateAndTimeMs)."""


class LogManager:
    """All logs of a broker, and the coordinator of the parts that look after them."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        directories: LogDirectories,
        *,
        random: Random,
        open_files: OpenFiles | None = None,
    ) -> None:
        """Before logs are loaded, `directories` must be locked.

        Load jobs use `random` as well, in their threads. `open_files` bounds how many segments have
        their files open; None means no bound.
        """
        self.open_files = open_files
        self._config = config
        self._fs = fs = directories.fs
        self.directories = directories
        directories.listeners.append(self._directory_offline)
        if open_files is not None:
            directories.make_room = open_files.make_room
        directories.cordoned = frozenset(config.cordoned_log_dirs)
        self._table = table = LogTable(self._connect)
        self._configs = LogConfigs(table)
        self._checkpoints = checkpoints = Checkpoints(fs, random, directories, table)
        self._clock = clock
        self._flushes = Distribution()
        self._flusher = flusher = Flusher(table, clock)
        self._background_sync = BackgroundSync(table, clock, checkpoints, flusher)
        self.repairs = Repairs()
        """Damaged indexes."""
        self._deletions = deletions = Deletions(
            fs, clock, directories, table, delay_ms=config.log_segment_delete_delay_ms
        )
        self._upkeep = Upkeep(table, deletions, clock)
        cleaned = CleanerCheckpoints(fs, random, directories, table)
        self.cleaner = cleaner = LogCleanerManager(table, clock, cleaned)
        """Which log is compacted next, and which may not be."""
        cleaner.is_enabled = config.log_cleaner_enable and config.log_cleaner_threads > 0
        self._maker = maker = LogMaker(
            fs,
            clock,
            random,
            directories,
            table,
            producer_expiration_ms=config.producer_id_expiration_ms,
            before_new=self._before_new_log,
        )
        self.moves = LogMoves(
            fs, directories, table, maker, flusher, deletions, checkpoints, cleaner
        )
        """Partitions on their way to another directory."""
        self._loader = LogLoader(
            fs, clock, random, directories, table, self._configs, deletions, checkpoints, self.moves
        )
        self._closing = Closing(fs, random, directories, table, checkpoints)

    def _connect(self, log: Log) -> None:
        log.connect(
            failed=self.directories.report_failure_in,
            rolled=self._flusher.note_rolled,
            lowered=self._checkpoints.write_lowered,
            truncated=self._truncated,
            openings=self.open_files,
            in_doubt=self.repairs.note,
            damaged=self.repairs.count,
            flushed=self._note_flush,
        )

    def _note_flush(self, took_s: float) -> None:
        self._flushes.note(took_s)
        if len(self._flushes.waiting) >= FOLD:
            self._flushes.fold(self._clock.monotonic())

    def _before_new_log(self, log_dir: str, topic_partition: TopicPartition) -> None:
        """Remove from the checkpoints what they say of an earlier log of the same name."""
        self._checkpoints.before_new_log(log_dir, topic_partition)
        self.cleaner.checkpoints.before_new_log(log_dir, topic_partition)

    # Queries.

    @property
    def live_dirs(self) -> tuple[str, ...]:
        """Log directories in service, in the order of `log.dirs`."""
        return tuple(self.directories.live)

    @property
    def offline_dirs(self) -> tuple[str, ...]:
        """Log directories that failed."""
        return tuple(self.directories.offline)

    @property
    def cordoned_dirs(self) -> frozenset[str]:
        """Log directories that get no new partitions (`cordoned.log.dirs`)."""
        return self.directories.cordoned

    @property
    def takes_new_logs(self) -> bool:
        """Whether any directory in service is not cordoned."""
        return bool(self.directories.uncordoned)

    def get_log(self, topic_partition: TopicPartition) -> Log | None:
        """The partition's log, if it is on a live directory."""
        return self._table.logs.get(topic_partition)

    def all_logs(self) -> list[Log]:
        """Every log in service."""
        return list(self._table.logs.values())

    def future_log(self, topic_partition: TopicPartition) -> Log | None:
        """The copy of a partition that is being moved."""
        return self._table.future.get(topic_partition)

    def future_logs(self) -> list[Log]:
        """All copies of partitions that are being moved."""
        return list(self._table.future.values())

    def dir_of(self, topic_partition: TopicPartition) -> str | None:
        """The log directory that holds the partition."""
        log = self.get_log(topic_partition)
        return None if log is None else parent_dir(log.dir)

    def latest_epoch(self, topic_partition: TopicPartition) -> int | None:
        """The last leader epoch in the partition's log; None when it is empty or not here."""
        log = self.get_log(topic_partition)
        return None if log is None else log.leader_epochs.latest_epoch

    def statistics(self) -> LogManagerStatistics:
        """For metrics."""
        return LogManagerStatistics(
            live_dirs=self.live_dirs,
            offline_dirs=self.offline_dirs,
            logs=len(self._table.logs),
            logs_to_load=self._loader.left,
            open_segments=0 if self.open_files is None else len(self.open_files),
            closed_segments=0 if self.open_files is None else self.open_files.closed,
            damaged_indexes=self.repairs.found,
            flushes=self._flushes.snapshot(self._clock.monotonic()),
        )

    # Starting.

    def load_jobs(self, topic_configs: TopicConfigs) -> list[LoadJob]:
        """One job per log to open. Removes the clean-shutdown markers first (S-REC-1)."""
        expiration_ms = self._config.producer_id_expiration_ms
        return self._loader.start(topic_configs, producer_expiration_ms=expiration_ms).jobs

    async def checkpoint_loading(self) -> None:
        """Write the recovery points that the load jobs have reached, so that a crash does not undo
        all of their work."""
        await self._loader.checkpoint()

    def finish_loading(self) -> None:
        """Take over what the jobs found. Raises StorageError when a partition is found twice."""
        self._loader.finish()
        self.cleaner.checkpoints.load()

    def load_logs(
        self, topic_configs: TopicConfigs, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Open all logs here and now; `progress(done, all)` is called after each."""
        jobs = self.load_jobs(topic_configs)
        for done, job in enumerate(jobs, start=1):
            job.complete(job.run())
            if progress is not None:
                progress(done, len(jobs))
        self.finish_loading()

    def startup(self, topic_configs: TopicConfigs) -> None:
        """Lock and check the directories and load all logs; for tests and benchmarks."""
        self.directories.lock_and_check()
        self.load_logs(topic_configs)

    # Topics come, change and go.

    async def prepare(self, wanted: Iterable[tuple[TopicPartition, bytes]]) -> None:
        """Make the directories and files of new logs in threads, as that may take milliseconds.

        `wanted`: partitions with their topics' ids. `get_or_create_log` then opens them; what could
        not be made is left to it. Afterwards call `discard_prepared`.
        """
        await self._maker.prepare(wanted)

    async def discard_prepared(self) -> None:
        """Remove the directories that were prepared and that no log was opened in."""
        await self._maker.discard_prepared()

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: TopicConfig,
        is_new: bool = False,
    ) -> Log:
        """The partition's log, made if missing, on the live directory with the fewest logs.

        `is_new`: the caller knows that the log exists nowhere. Otherwise no log is made while a
        directory is offline, because that one may hold it. Raises StorageError,
        INCONSISTENT_TOPIC_ID.
        """
        return self._maker.get_or_create(topic_partition, topic_id, config, is_new=is_new)

    def update_topic_config(self, topic: str, config: TopicConfig) -> None:
        """Use `config` for the topic's logs from now on, those that are being opened included."""
        self._configs.update_topic(topic, config)

    async def update_all_configs(self, config_of: Callable[[str], TopicConfig]) -> None:
        """Give every log the configuration that `config_of` returns for its topic."""
        await self._configs.update_all(config_of)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take over a broker configuration that has changed at run time."""
        self._config = config
        self.directories.cordoned = frozenset(config.cordoned_log_dirs)
        self.cleaner.is_enabled = config.log_cleaner_enable and config.log_cleaner_threads > 0
        self._deletions.delay_ms = config.log_segment_delete_delay_ms
        self._maker.producer_expiration_ms = config.producer_id_expiration_ms
        for log in self._table.everything():
            log.producers.expiration_ms = config.producer_id_expiration_ms

    def async_delete(self, topic_partition: TopicPartition) -> None:
        """Take the partition out of service; its directory is removed later (S-RET-8).

        The topic may be made again at once. Raises StorageError.
        """
        self.async_delete_all((topic_partition,))

    def async_delete_all(self, partitions: Iterable[TopicPartition]) -> None:
        """`async_delete` for many, with one write of the checkpoints. Raises StorageError.

        An old offset in a checkpoint would count for a new log of the same name: see
        `storage.manager.checkpoints`.
        """
        touched: dict[str, None] = {}
        for topic_partition in partitions:
            # The copy first: a start that finds it alone takes it for a move to be finished.
            self.moves.cancel(topic_partition)
            log = self._table.logs.pop(topic_partition, None)
            if log is None:
                self._expect_not_offline(topic_partition)
                continue
            self._delete(log)
            log_dir = parent_dir(log.dir)
            self._checkpoints.note_gone(log_dir, topic_partition)
            self.cleaner.gone(log_dir, topic_partition)
            if log.log_start_offset > 0 and self._checkpoints.may_name(log_dir, topic_partition):
                touched[log_dir] = None
        at_once(self._checkpoints.write(touched))

    def _delete(self, log: Log) -> None:
        name = self._maker.unique_name(log.topic_partition, DirState.DELETE)
        target = join(parent_dir(log.dir), name)
        log.take_out_of_service()
        with self.directories.writing(log.dir):
            self._fs.rename(log.dir, target)
        _log.info(
            "Log for partition %s is renamed to %s and is scheduled for deletion",
            log.topic_partition,
            target,
        )
        self._flusher.forget(log)
        self._deletions.add_log(target)

    def _expect_not_offline(self, topic_partition: TopicPartition) -> None:
        if self.directories.offline:
            raise StorageError(
                partition_dir_name(topic_partition),
                f"Failed to delete log for {topic_partition} because it may be in one of "
                f"the offline directories {', '.join(self.directories.offline)}",
            )

    def _truncated(self, log: Log, start: int) -> None:
        """Note that a follower's log was cut, whose log start was `start`.

        Its cleaning ends, because the child may miss files. Offsets above the cut must not stay in
        checkpoints: the cleaner would skip the next records there, and a log start above the end
        would make the log look lost. (Lower recovery points were written before the cut.)
        """
        log_dir = parent_dir(log.dir)
        with suppress(OutOfResources):  # the tasks write the files soon
            if self._table.logs.get(log.topic_partition) is log and self.cleaner.truncated(log):
                at_once(self.cleaner.checkpoints.write(log_dir))
            if log.log_start_offset < start:
                at_once(self._checkpoints.write((log_dir,), LOG_STARTS))

    # Disks fail.

    def report_failure(self, log_dir: str, error: OSError) -> None:
        """Note a disk error in `log_dir`; the first one takes the directory offline, deferred."""
        self.directories.report_failure(log_dir, error)

    def _directory_offline(self, log_dir: str) -> None:
        lost = self._table.take_offline(log_dir, self.directories.offline[log_dir])
        self.cleaner.directory_failed(log_dir, lost)

    # Periodic work.

    def tasks(self) -> list[Task]:
        """The periodic tasks (S-TIME-1)."""
        config = self._config

        def task(name: str, period_ms: int, run: Callable[[], Work[int | None]]) -> Task:
            first = config.log_initial_task_delay_ms
            return Task(name=name, initial_delay_ms=first, period_ms=period_ms, run=run)

        return [
            task(
                log_tasks.RETENTION,
                config.log_retention_check_interval_ms,
                lambda: self._upkeep.apply_retention(lambda log: not log.config.compact),
            ),
            task(
                log_tasks.FLUSHER, config.log_flush_scheduler_interval_ms, self._flusher.flush_due
            ),
            task(
                log_tasks.RECOVERY_POINT_CHECKPOINT,
                config.log_flush_offset_checkpoint_interval_ms,
                lambda: self._checkpoints.write(self.live_dirs, RECOVERY_POINTS),
            ),
            task(
                log_tasks.LOG_START_CHECKPOINT,
                config.log_flush_start_offset_checkpoint_interval_ms,
                lambda: self._checkpoints.write(self.live_dirs, LOG_STARTS),
            ),
            task(
                log_tasks.DELETE_LOGS,
                config.log_segment_delete_delay_ms,
                self._deletions.remove_due,
            ),
            task(
                log_tasks.PRODUCER_EXPIRATION,
                config.producer_id_expiration_check_interval_ms,
                self._upkeep.remove_expired_producers,
            ),
            Task(
                name=log_tasks.FLUSH_ROLLED,
                initial_delay_ms=log_tasks.FLUSH_ROLLED_PERIOD_MS,
                period_ms=log_tasks.FLUSH_ROLLED_PERIOD_MS,
                run=self._flush_rolled,
            ),
            Task(
                name=log_tasks.REPAIR_INDEXES,
                initial_delay_ms=log_tasks.REPAIR_INDEXES_PERIOD_MS,
                period_ms=log_tasks.REPAIR_INDEXES_PERIOD_MS,
                run=self.repairs.repair,
                hurry=self.repairs.hurry,
            ),
        ]

    async def _flush_rolled(self) -> None:
        await self._flusher.flush_rolled()
        await self._background_sync.sync()
        await self._checkpoints.update_outdated()
        await self.cleaner.checkpoints.write_changed()

    async def apply_retention_to_compacted(self) -> None:
        """Apply retention to compacted logs, for the cleaner threads: delete segments below the log
        start and, with `delete` in the policy, those that are too old or too many."""
        await self._upkeep.apply_retention(self.cleaner.is_candidate)

    # High watermarks, which the replication layer keeps.

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermarks in the checkpoints of all live directories."""
        return self._checkpoints.read(HIGH_WATERMARK_CHECKPOINT)

    async def checkpoint_high_watermarks(self) -> None:
        """Write down the high watermark of every log."""
        await self._checkpoints.write(self.live_dirs, HIGH_WATERMARKS)

    # Stopping.

    async def shutdown(self, broker_epoch: int = -1, *, unlock: bool = True) -> None:
        """Sync and close all logs; write checkpoints and clean-stop markers (S-START-5).

        Nobody may use the logs any more. A directory that failed gets no marker, nor one whose
        start after an unclean stop did not finish loading. `unlock`: release the locks, too.
        """
        await self.cleaner.checkpoints.write_changed()
        await self._closing.close(broker_epoch)
        if unlock:
            self.directories.unlock_all()
