"""Opens logs as a start would, without changing any file.

Repairs that a start would make are made in memory (`storage.check.rehearsal`), so the directory of
a running or killed broker can be opened like any other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage.check.plan import load
from storage.check.rehearsal import RehearsalFileSystem
from storage.clock import Clock
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log_loading import METADATA_TOPIC, LoadJob
from storage.paths import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    DirState,
    file_name,
    parent_dir,
    parse_partition_dir,
)
from storage.producers.state import DEFAULT_EXPIRATION_MS
from storage.reader import LogDirView, PartitionView

_LOOK_AT: Final = 4096
"""Bytes of zeros that are read to know them for allocated space, which may be a gigabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedLog:
    """One partition's log, with facts from its log directory."""

    log: Log
    fs: FileSystem
    """The file system of the log, which keeps all changes in memory."""
    first_dirty_offset: int | None
    """From the cleaner's checkpoint; None: it was never cleaned."""
    allocated: int
    """Bytes of zeros behind the last batch of the active segment, as `preallocate` makes them."""


def partitions_of(path: str, fs: FileSystem) -> list[PartitionView]:
    """The live partitions of a log directory, or the one that `path` is. Raises OSError.

    A directory without a record file is none, whatever its name.
    """
    views = [PartitionView(path, fs)]
    if parse_partition_dir(file_name(path)) is None:
        views = [view for view in LogDirView(path, fs).partitions() if _is_live(view)]
    return [view for view in views if view.segments()]


def _is_live(view: PartitionView) -> bool:
    tp = view.topic_partition
    return view.state is DirState.LIVE and tp is not None and tp.topic != METADATA_TOPIC


def _allocated(view: PartitionView, log: Log) -> int:
    active = log.segments.active
    try:
        return view.segment(active.base_offset).zeros_behind(active.size, look_at=_LOOK_AT)
    except FileNotFoundError:  # a start would make it
        return 0


class LogOpener:
    """Opens the partitions of log directories."""

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        random: Random,
        config_of: Callable[[str], TopicConfig],
    ) -> None:
        """`config_of`: topic name to its configuration."""
        self._fs = fs
        self._clock = clock
        self._random = random
        self._config_of = config_of
        self._offsets: dict[tuple[str, str], dict[TopicPartition, int]] = {}

    def open(self, view: PartitionView) -> OpenedLog:
        """Open a partition. Raises OSError when a start could not open it, CheckpointError."""
        tp = view.topic_partition
        assert tp is not None
        scratch = RehearsalFileSystem(self._fs)
        log_dir = parent_dir(view.directory)
        log = load(
            LoadJob(
                log_dir=log_dir,
                directory=view.directory,
                topic_partition=tp,
                config=self._config_of(tp.topic),
                clean=LogDirView(log_dir, self._fs).was_cleanly_shut_down,
                recovery_point=self._offset(log_dir, RECOVERY_POINT_CHECKPOINT, tp) or 0,
                log_start_offset=self._offset(log_dir, LOG_START_OFFSET_CHECKPOINT, tp) or 0,
                fs=scratch,
                clock=self._clock,
                random=self._random,
                producer_expiration_ms=DEFAULT_EXPIRATION_MS,
            )
        )
        watermark = self._offset(log_dir, HIGH_WATERMARK_CHECKPOINT, tp)
        end = log.log_end_offset
        log.update_high_watermark(end if watermark is None else min(watermark, end))
        return OpenedLog(
            log=log,
            fs=scratch,
            first_dirty_offset=self._offset(log_dir, CLEANER_CHECKPOINT, tp),
            allocated=_allocated(view, log),
        )

    def _offset(self, log_dir: str, name: str, tp: TopicPartition) -> int | None:
        key = log_dir, name
        if key not in self._offsets:
            self._offsets[key] = LogDirView(log_dir, self._fs).offsets(name)
        return self._offsets[key].get(tp)
