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

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.types import ZERO_UUID, TopicPartition, uuid_to_text
from storage.errors import DirectoryLocked, StorageError
from storage.log.log import Log
from storage.log_dir import LogDir, write_partition_metadata
from storage.log_loading import Loading, LoadJob, TopicConfigs, jobs_of
from storage.log_moves import LogMoves
from storage.log_registry import LogManagerStatistics, ManagedDir, OfflineDir
from storage.paths import (
    DirState,
    join,
    parent_dir,
    partition_dir_name,
    state_dir_name,
)
from storage.recovery import LoadOptions, load_log

__all__ = ["LogManager", "LogManagerStatistics", "OfflineDir"]

_log = logging.getLogger(__name__)

_WORTH_THREADS = 32
"""Logs in a directory from which on they are closed in several threads."""


class LogManager(LogMoves):
    """See the module docstring."""

    # Starting.

    def lock_and_check_dirs(self) -> None:
        """Make, lock and list every directory of `log.dirs`; bad ones are offline from the start.

        Raises DirectoryLocked when another broker uses one, StorageError when none is left
        (S-REC-7).
        """
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
                self._dirs[path] = ManagedDir(log_dir)
        if not self._dirs:
            raise StorageError(
                ", ".join(self._all_dirs),
                "none of the specified log dirs can be created or validated: "
                + "; ".join(str(error) for error in self._offline.values()),
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
                if job.is_future:
                    self._adopt_future(job.log)
                else:
                    self._adopt(job.log)
        now = self._clock.wall_ms()
        self._to_delete.extend((now, path) for path in loading.to_delete)
        self._loading = None
        for path, state in self._dirs.items():
            state.loaded = path not in failed
        for path, error in failed.items():
            self.handle_dir_failure(path, error)
        lowered = {
            job.log_dir
            for job in loading.jobs
            if job.log is not None and job.log.recovery_point < job.recovery_point
        }
        for path in lowered:
            # What is appended next must not be taken for synced after another crash.
            self._checkpoint(path, log_starts=False)
        self.adopt_orphans()

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
        log.connect(failed=self._log_failed, rolled=self._log_rolled, rolling=self._log_rolling)
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
        for log in self._with_future_logs():
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
        for log in self._with_future_logs():
            if log.topic_partition.topic == topic:
                log.update_config(config)

    def update_all_configs(self, config_of: Callable[[str], TopicConfig]) -> Iterator[None]:
        """All logs follow what `config_of` says of their topics, one per step."""
        for topic_partition in self._initializing:
            self._initializing[topic_partition] = config_of(topic_partition.topic)
        for log in list(self._with_future_logs()):
            log.update_config(config_of(log.topic_partition.topic))
            yield

    def reconfigure(self, config: BrokerConfig) -> None:
        """The broker's configuration has changed while it runs."""
        self._config = config
        for log in self._with_future_logs():
            log.producers.expiration_ms = config.producer_id_expiration_ms

    def async_delete(self, topic_partition: TopicPartition) -> None:
        """Take the partition out of service; its directory is removed later (S-RET-8).

        The topic may be made again at once. Raises StorageError.
        """
        self.async_delete_all((topic_partition,))

    def async_delete_all(self, partitions: Iterable[TopicPartition]) -> None:
        """`async_delete` for many, with one write of the checkpoints. Raises StorageError.

        An old offset in them would be taken for one of a new log of the same name. So they are
        written at once where there may be an old log start, else by `flush_rolled` (see there).
        """
        touched: set[str] = set()
        due = self._clock.wall_ms() + self._config.log_segment_delete_delay_ms
        for topic_partition in partitions:
            # The copy first: alone it would be taken for a move that has to be finished.
            self.cancel_move(topic_partition)
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
            self._outdated[log_dir] = object()
            if topic_partition in self._dirs[log_dir].checkpointed and log.log_start_offset > 0:
                touched.add(log_dir)
        for log_dir in touched:
            self._checkpoint(log_dir)

    def truncate_to(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Cut logs back, for a follower; unknown partitions are left out. Raises StorageError.

        The checkpoints follow: with an old recovery point in them, what is appended next would be
        taken for synced after a crash; with an old log start above its end, the log for lost.
        """
        self._cut(
            {tp: offset for tp, offset in offsets.items() if tp in self._logs}, Log.truncate_to
        )

    def truncate_fully_and_start_at(self, topic_partition: TopicPartition, offset: int) -> None:
        """Empty a log; its next record gets `offset`. As `truncate_to`."""
        self._cut({topic_partition: offset}, Log.truncate_fully_and_start_at)

    def _cut(
        self, offsets: Mapping[TopicPartition, int], cut: Callable[[Log, int], object]
    ) -> None:
        touched = set()
        for topic_partition, offset in offsets.items():
            log = self._logs[topic_partition]
            log_dir, start, point = parent_dir(log.dir), log.log_start_offset, log.recovery_point
            cut(log, offset)
            if log.recovery_point < point:
                self._outdated[log_dir] = object()
            if log.log_start_offset < start:
                touched.add(log_dir)
        for log_dir in touched:
            self._checkpoint(log_dir)

    # Stopping.

    def shutdown(self, broker_epoch: int = -1) -> None:
        """Sync and close all logs; write checkpoints and clean-stop markers (S-START-5).

        A directory where something failed, or whose logs were never all loaded, gets no marker.
        """
        for log_dir in self.live_dirs:
            state = self._dirs[log_dir]
            try:
                self._close_all(self.logs_in(log_dir))
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
        self._future.clear()

    def _close_all(self, logs: list[Log]) -> None:
        """Sync and close. Many in `num.recovery.threads.per.data.dir` threads: syncs that wait at
        the same time cost the disk little more than one. Raises StorageError.
        """
        threads = self._config.num_recovery_threads_per_data_dir
        if threads == 1 or len(logs) < _WORTH_THREADS:
            for log in logs:
                log.close()
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(Log.close, logs):
                pass

    def _unlock_all(self) -> None:
        for state in self._dirs.values():
            state.log_dir.unlock()
