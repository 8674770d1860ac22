"""Checkpoint files of the log directories: recovery points, log starts, high watermarks (S-FL-3).

A checkpoint is begun on the loop, where the offsets are read, a few hundred logs at a time; it is
encoded, written and synced elsewhere, and takes its name on the loop. What is begun later wins,
whatever its disk does (`storage.replaced_file`), so a file never goes back in time.

A checkpoint may say too much
  An old recovery point, of a deleted log of that name or from before a truncation, does no harm as
  long as there is one segment above it: that one is recovered whole. So such a directory is only
  marked outdated, a task writes its checkpoints soon, and before another segment begins they are
  written at once (`before_new_segment`). A mark is taken off only if it is the one that was there
  when the offsets were read.
  An old log start does harm at once: whoever deletes or empties such a log writes it out at once
  (`write_now`), if the file may name it (`may_name`).
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from random import Random
from typing import Final

from protocol.types import TopicPartition
from storage.checkpoint import encode_offsets
from storage.errors import OutOfResources, is_shortage
from storage.filesystem import FileSystem
from storage.jobs import Steps, perform_all
from storage.log.log import Log
from storage.log_loading import read_offsets
from storage.manager.directories import LogDirectories
from storage.manager.log_table import LogTable
from storage.paths import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    join,
    parent_dir,
)
from storage.replaced_file import ReplacedFile, ReplaceJob

_log = logging.getLogger(__name__)

_LOGS_A_TURN: Final = 500
"""Asked for their offsets before others have their turn: about half a millisecond."""

Offsets = list[tuple[TopicPartition, int]]
Ask = Callable[[Log], int | None]
"""The offset of a log that goes into a file; None: the file need not name it."""


def _recovery_point(log: Log) -> int:
    return log.recovery_point


def _log_start(log: Log) -> int | None:
    """Where it does not follow from the files, or from files that a crash may bring back."""
    start = log.log_start_offset
    if start > log.first_segment_base or (start > 0 and not log.names_are_synced):
        return start
    return None


def _high_watermark(log: Log) -> int:
    return log.high_watermark


RECOVERY_POINTS: Final[Mapping[str, Ask]] = {RECOVERY_POINT_CHECKPOINT: _recovery_point}
LOG_STARTS: Final[Mapping[str, Ask]] = {LOG_START_OFFSET_CHECKPOINT: _log_start}
BOTH: Final[Mapping[str, Ask]] = {**RECOVERY_POINTS, **LOG_STARTS}
HIGH_WATERMARKS: Final[Mapping[str, Ask]] = {HIGH_WATERMARK_CHECKPOINT: _high_watermark}


class Checkpoints:
    """See the module docstring. Disk errors are reported to the directories, never raised; writing
    raises OutOfResources."""

    def __init__(
        self, fs: FileSystem, random: Random, directories: LogDirectories, table: LogTable
    ) -> None:
        self._fs = fs
        self._random = random
        self._directories = directories
        self._table = table
        self._files: dict[str, ReplacedFile] = {}
        self._named: dict[str, set[TopicPartition]] = {}
        """Log directory to the partitions that its recovery point or log start file may name."""
        self._outdated: dict[str, object] = {}
        """Log directory to its mark."""

    # What is on the disk.

    def read(self, name: str) -> dict[TopicPartition, int]:
        """The offsets of that file in all live directories."""
        found: dict[TopicPartition, int] = {}
        for log_dir in list(self._directories.live):
            try:
                found.update(read_offsets(self._fs, log_dir, name))
            except OSError as error:
                self._directories.report_failure(log_dir, error)
        return found

    def may_name(self, log_dir: str, topic_partition: TopicPartition) -> bool:
        """Whether a recovery point or log start of that partition may be on the disk."""
        return topic_partition in self._named.get(log_dir, ())

    # Writing.

    def steps(self, log_dirs: Iterable[str], files: Mapping[str, Ask] = BOTH) -> Steps:
        """Write these files of these directories, one directory after the other."""
        for log_dir in log_dirs:
            if log_dir in self._directories.live:
                yield from self._steps_of(log_dir, files)
        return None

    def _steps_of(self, log_dir: str, files: Mapping[str, Ask]) -> Steps:
        begun: list[tuple[Ask, Offsets, ReplaceJob]] = []
        for name, ask in files.items():
            offsets: Offsets = []
            replacement = self._file(log_dir, name).begin(partial(encode_offsets, offsets))
            begun.append((ask, offsets, ReplaceJob(replacement, partial(self._written, log_dir))))
        named = self._named.setdefault(log_dir, set())
        for count, log in enumerate(self._table.everything(), start=1):
            if self._table.holds(log) and parent_dir(log.dir) == log_dir:
                # Named before it is written: who deletes the topic meanwhile must write it out.
                named.add(log.topic_partition)
                for ask, offsets, _ in begun:
                    offset = ask(log)
                    if offset is not None:
                        offsets.append((log.topic_partition, offset))
            if count % _LOGS_A_TURN == 0:
                yield None
        for _, _, job in begun:
            if log_dir in self._directories.live:
                yield job
        return None

    def _file(self, log_dir: str, name: str) -> ReplacedFile:
        path = join(log_dir, name)
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = ReplacedFile(self._fs, path, self._random)
        return file

    def _written(self, log_dir: str, error: OSError | None) -> None:
        if error is not None and is_shortage(error):
            self._directories.make_room()
            raise OutOfResources(log_dir, error)  # the task runs again
        if error is not None:
            _log.error("Disk error while writing checkpoints in directory %s: %s", log_dir, error)
            self._directories.report_failure(log_dir, error)

    def write_now(self, *log_dirs: str, files: Mapping[str, Ask] = BOTH) -> None:
        """The same here and now; what was begun before and is not written yet is superseded."""
        perform_all(self.steps(log_dirs, files))

    # What the recovery point file says too much.

    def note_outdated(self, log_dir: str) -> None:
        """Its recovery points may be above what is synced, or of a log that is gone."""
        self._outdated[log_dir] = object()

    def before_new_segment(self, log: Log) -> None:
        """An old recovery point would be believed of the segment that is active now."""
        log_dir = parent_dir(log.dir)
        if log_dir in self._outdated:
            self.write_now(log_dir, files=RECOVERY_POINTS)

    def update_outdated(self) -> Steps:
        """Write the checkpoints of directories that are marked, and take the marks off."""
        for log_dir, mark in tuple(self._outdated.items()):
            yield from self.steps((log_dir,))
            if self._outdated.get(log_dir) is mark:
                del self._outdated[log_dir]
        return None
