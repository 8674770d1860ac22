"""Opening all logs at start: makes the jobs (`storage.log_loading`) and takes over their logs."""

import logging
from random import Random

from protocol.types import TopicPartition
from storage.clock import Clock
from storage.filesystem import FileSystem
from storage.log_loading import Loading, TopicConfigs, jobs_of
from storage.manager.checkpoints import RECOVERY_POINTS, Checkpoints
from storage.manager.deletions import Deletions
from storage.manager.directories import LogDirectories
from storage.manager.log_configs import LogConfigs
from storage.manager.log_moves import LogMoves
from storage.manager.log_table import LogTable
from storage.waits import at_once

_log = logging.getLogger(__name__)


class LogLoader:
    """Opens all logs. Between `start` and `finish` the caller runs the jobs, in threads or not."""

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        random: Random,
        directories: LogDirectories,
        table: LogTable,
        configs: LogConfigs,
        deletions: Deletions,
        checkpoints: Checkpoints,
        moves: LogMoves,
    ) -> None:
        self._fs = fs
        self._clock = clock
        self._random = random
        self._directories = directories
        self._table = table
        self._configs = configs
        self._deletions = deletions
        self._checkpoints = checkpoints
        self._moves = moves
        self._loading: Loading | None = None

    @property
    def left(self) -> int:
        """Partition directories that are not open yet."""
        if self._loading is None:
            return 0
        return sum(not job.is_done for job in self._loading.jobs)

    def start(self, topic_configs: TopicConfigs, *, producer_expiration_ms: int) -> Loading:
        """Return the jobs, after removing the clean-shutdown markers (S-REC-1)."""
        everything = Loading()
        for path, state in self._directories.live.items():
            try:
                state.was_clean = state.log_dir.take_clean_shutdown_marker()
                found = jobs_of(
                    self._fs,
                    self._clock,
                    self._random,
                    path,
                    topic_configs,
                    clean=state.was_clean,
                    producer_expiration_ms=producer_expiration_ms,
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
            self._checkpoints.note_named(path, found.named.get(path, ()))
            for topic_partition in found.gone.get(path, ()):
                self._checkpoints.note_gone(path, topic_partition)
            everything.jobs += found.jobs
            everything.to_delete += found.to_delete
            for job in found.jobs:
                self._configs.initializing(job.topic_partition)
        self._loading = everything
        return everything

    async def checkpoint(self) -> None:
        """Write the recovery points that the jobs have reached."""
        points: dict[str, dict[TopicPartition, int]] = {}
        lines: dict[str, list[str]] = {}
        for job in () if self._loading is None else self._loading.jobs:
            points.setdefault(job.log_dir, {})[job.topic_partition] = job.synced_to
            # Read after the offset, so that the line's recovery point is not below it.
            line = job.line if job.log is None else job.log.aborted_sums.line(job.log.topic_id)
            lines.setdefault(job.log_dir, []).append(line)
        for log_dir, offsets in points.items():
            await self._checkpoints.write_loading(log_dir, offsets, filter(None, lines[log_dir]))

    def finish(self) -> None:
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
            self._configs.finished_initializing(job.topic_partition, job.log)
            if job.log is not None and job.log_dir not in failed:
                if job.is_future:
                    self._table.adopt_future(job.log)
                else:
                    self._table.adopt(job.log)
        self._deletions.add_leftovers(loading.to_delete)
        self._loading = None
        for path, state in self._directories.live.items():
            state.loaded = path not in failed
        for path, error in failed.items():
            self._directories.take_offline(path, error)
        lowered = {
            job.log_dir: None
            for job in loading.jobs
            if job.log is not None and job.log.recovery_point < job.recovery_point
        }
        # After another crash the next appends must not look synced.
        at_once(self._checkpoints.write(lowered, RECOVERY_POINTS))
        self._moves.adopt_orphans()
