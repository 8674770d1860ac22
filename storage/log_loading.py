"""Loading all logs at start: one job per partition directory, for several threads (S-REC-8).

    for job in manager.load_jobs(topic_config):
        outcome = job.run()             # in one of num.recovery.threads.per.data.dir threads a dir
        job.complete(outcome)           # on the loop
    manager.finish_loading()

A job touches its own partition directory and nothing else, and keeps its outcome until
`finish_loading` takes it over. `synced_to` is the recovery point it has reached: a long start
writes these points down every so often (`LogManager.checkpoint_loading`) and syncs logs that took
long to recover (`sync_above_s`), so that after a crash the next start does not begin anew. A disk
error is an outcome, too: `finish_loading` then takes the log directory offline, and the others
serve on (S-REC-7).

`storage.manager.loading`, `storage.check` and `storage.explain` make jobs.
"""

import logging
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from config.topic_config import TopicConfig
from protocol.types import ZERO_UUID, TopicPartition
from storage.aborted_checkpoint import NOTHING_NOTED, NotedAborted, read_aborted
from storage.checkpoint import OffsetCheckpoint
from storage.clock import Clock
from storage.errors import CheckpointError, StorageError
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log_dir import read_partition_metadata
from storage.paths import (
    LOG_START_OFFSET_CHECKPOINT,
    MAX_PARTITION,
    RECOVERY_POINT_CHECKPOINT,
    DirState,
    is_temporary,
    join,
    parse_partition_dir,
)
from storage.recovery import LoadOptions, load_log

_log = logging.getLogger(__name__)

METADATA_TOPIC = "__cluster_metadata"
"""KRaft's own log: not a topic of clients; left alone."""

_NUMBERED = re.compile(r".*-\d+(\.|$)")
"""Names that may be meant for a partition's directory; `lost+found` and its kind are not."""

TopicConfigs = Callable[[str], TopicConfig]
"""Topic name -> its configuration."""


@dataclass(slots=True, kw_only=True)
class LoadJob:
    """One partition directory to open."""

    log_dir: str
    directory: str
    topic_partition: TopicPartition
    config: TopicConfig
    clean: bool
    recovery_point: int
    log_start_offset: int
    fs: FileSystem
    clock: Clock
    random: Random
    producer_expiration_ms: int
    aborted: NotedAborted = NOTHING_NOTED
    """The checksums that its transaction indexes must have."""
    is_future: bool = False
    """The directory is the copy of a log that was being moved here."""
    sync_above_s: float = math.inf
    """Sync the log if its recovery takes at least so many seconds; set before `run`."""
    synced_to: int = 0
    """The recovery point that a checkpoint may name now; set by `run`, in its thread."""
    line: str = ""
    """The log's line of `storage.aborted_checkpoint` for `synced_to`, "" for none; set by `run`, in
    its thread. Once `log` is set, its own line counts instead."""
    log: Log | None = None
    error: OSError | None = None

    def run(self) -> Log | OSError:
        """Open the log; blocks for longer the more there is to recover. Returns disk errors.

        In any thread.
        """
        try:
            options = LoadOptions(
                config=self.config,
                clean=self.clean,
                recovery_point=self.recovery_point,
                log_start_offset=self.log_start_offset,
                topic_id=read_topic_id(self.fs, self.directory),
                producer_expiration_ms=self.producer_expiration_ms,
                sync_above_s=self.sync_above_s,
                synced=self._synced,
                aborted=self.aborted,
            )
            return load_log(
                self.fs, self.clock, self.directory, self.topic_partition, options, self.random
            )
        except OSError as error:
            return error
        except StorageError as error:
            return error.cause if isinstance(error.cause, OSError) else OSError(str(error))

    def _synced(self, offset: int, line: str) -> None:
        # The line first: one of a higher offset than the recovery point is still believed
        # (`storage.aborted_checkpoint`), one of a lower offset is not.
        self.line = line
        self.synced_to = offset

    def complete(self, outcome: Log | OSError, /) -> None:
        """Keep the outcome for `finish_loading`."""
        if isinstance(outcome, OSError):
            self.error = outcome
        else:
            self.log = outcome
            self.synced_to = outcome.recovery_point

    @property
    def is_done(self) -> bool:
        """Whether the job has an outcome."""
        return self.log is not None or self.error is not None


@dataclass(slots=True)
class Loading:
    """All that has to be opened at start."""

    jobs: list[LoadJob] = field(default_factory=list)
    to_delete: list[str] = field(default_factory=list)
    """Partition directories that were renamed `-delete` before this start (S-RET-8)."""
    failed: dict[str, OSError] = field(default_factory=dict)
    """Log directories that could not even be listed."""
    gone: dict[str, list[TopicPartition]] = field(default_factory=dict)
    """Log directory to partitions that its checkpoints name and that have no directory in it."""
    named: dict[str, set[TopicPartition]] = field(default_factory=dict)
    """Log directory to the partitions whose log starts or recovery points are in its files."""


def read_topic_id(fs: FileSystem, directory: str) -> bytes:
    """The id in `partition.metadata`; zeros if the file is missing or malformed."""
    try:
        return read_partition_metadata(fs, directory) or ZERO_UUID
    except CheckpointError as error:
        _log.warning("Ignoring the topic id: %s", error)
        return ZERO_UUID


def read_offsets(fs: FileSystem, log_dir: str, name: str) -> Mapping[TopicPartition, int]:
    """A checkpoint's offsets; empty when it is damaged, which costs a longer recovery (S-FL-3)."""
    try:
        return OffsetCheckpoint(fs, join(log_dir, name)).read()
    except CheckpointError as error:
        _log.warning("Error occurred while reading %s, resetting its offsets: %s", name, error)
        return {}


def _read_aborted(fs: FileSystem, log_dir: str) -> Mapping[TopicPartition, NotedAborted]:
    try:
        return read_aborted(fs, log_dir)
    except CheckpointError as error:
        _log.warning("The aborted transactions in %s will be read again: %s", log_dir, error)
        return {}


def jobs_of(
    fs: FileSystem,
    clock: Clock,
    random: Random,
    log_dir: str,
    topic_configs: TopicConfigs,
    *,
    clean: bool,
    producer_expiration_ms: int,
) -> Loading:
    """The jobs of one log directory; also removes temporary files there. Raises OSError."""
    recovery_points = read_offsets(fs, log_dir, RECOVERY_POINT_CHECKPOINT)
    log_starts = read_offsets(fs, log_dir, LOG_START_OFFSET_CHECKPOINT)
    aborted = _read_aborted(fs, log_dir)
    loading = Loading()
    configs: dict[str, TopicConfig] = {}
    for name in fs.list_dir(log_dir):
        parsed = parse_partition_dir(name)
        path = join(log_dir, name)
        if is_temporary(name):
            fs.unlink(path, missing_ok=True)
            continue
        if parsed is None:
            if _NUMBERED.match(name) and fs.is_dir(path):
                _log.warning(
                    "Leaving %s alone: a partition's directory is named topic-number, up to %d",
                    path,
                    MAX_PARTITION,
                )
            continue
        if parsed.topic_partition.topic == METADATA_TOPIC or not fs.is_dir(path):
            continue
        if parsed.state is DirState.DELETE:
            loading.to_delete.append(path)
        elif parsed.state is DirState.STRAY:
            _log.warning("Leaving %s alone: it is no live partition", path)
        else:
            tp = parsed.topic_partition
            if tp.topic not in configs:
                configs[tp.topic] = topic_configs(tp.topic)
            loading.jobs.append(
                LoadJob(
                    log_dir=log_dir,
                    directory=path,
                    topic_partition=tp,
                    config=configs[tp.topic],
                    clean=clean,
                    recovery_point=recovery_points.get(tp, 0),
                    synced_to=recovery_points.get(tp, 0),
                    log_start_offset=log_starts.get(tp, 0),
                    fs=fs,
                    clock=clock,
                    random=random,
                    producer_expiration_ms=producer_expiration_ms,
                    aborted=(noted := aborted.get(tp, NOTHING_NOTED)),
                    line=noted.line,
                    is_future=parsed.state is DirState.FUTURE,
                )
            )
    there = {job.topic_partition for job in loading.jobs}
    loading.named[log_dir] = {*recovery_points, *log_starts}
    loading.gone[log_dir] = [tp for tp in {**recovery_points, **aborted} if tp not in there]
    return loading
