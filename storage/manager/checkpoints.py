"""Checkpoint files of the log directories: recovery points, log starts, high watermarks (S-FL-3).

A checkpoint begins on the loop, where the offsets are read; it is encoded, written and synced in a
thread, and gets its name on the loop. Content that is begun later wins, however slow the disk
(`storage.replaced_file`), so a file never goes back in time. A caller that must not be interrupted
writes `at_once`.

Notes of aborted transactions below the recovery points
  (`storage.aborted_checkpoint`) are written first, from the same moment; if that fails, no recovery
  points are written: a point above that of an older note would make the note untrue.

A checkpoint must not name too high an offset
  A recovery point is believed, even in the middle of a segment (`storage.segment_recovery`). So
  before a truncation cuts anything, the lower point is written. The point of a log that was deleted
  or moved away does no harm until the directory has a new log of that name: a task removes it from
  the file soon, and `before_new_log` does at once. The note of aborted transactions goes with it.
  An old log start does harm at once: whoever deletes or empties such a log removes it from the file
  at once, if the file may name it (`may_name`).
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Final

from protocol.types import TopicPartition
from storage.aborted_checkpoint import encode_aborted
from storage.checkpoint import encode_offsets
from storage.errors import OutOfResources, is_shortage
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log_loading import read_offsets
from storage.manager.directories import LogDirectories
from storage.manager.log_table import LogTable
from storage.paths import (
    ABORTED_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    join,
    parent_dir,
)
from storage.replaced_file import Content, ReplacedFile, Replacement
from storage.waits import PAUSE, at_once

_log = logging.getLogger(__name__)

Offsets = list[tuple[TopicPartition, int]]
Ask = Callable[[Log], int | None]
"""The offset of a log for a checkpoint; None: the file need not name the log."""


def _log_start(log: Log) -> int | None:
    """The log start, unless it is the first segment's base and a crash cannot change that."""
    start = log.log_start_offset
    if start > log.segments.first.base_offset or (
        start > 0 and not log.durability.names_are_synced
    ):
        return start
    return None


RECOVERY_POINTS: Final[Mapping[str, Ask]] = {
    RECOVERY_POINT_CHECKPOINT: lambda log: log.recovery_point
}
LOG_STARTS: Final[Mapping[str, Ask]] = {LOG_START_OFFSET_CHECKPOINT: _log_start}
BOTH: Final[Mapping[str, Ask]] = {**RECOVERY_POINTS, **LOG_STARTS}
HIGH_WATERMARKS: Final[Mapping[str, Ask]] = {
    HIGH_WATERMARK_CHECKPOINT: lambda log: log.high_watermark
}


class Checkpoints:
    """Writes the checkpoint files of all log directories.

    Disk errors are reported to the directories, never raised; writing raises OutOfResources.
    """

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
        self._gone: dict[str, dict[TopicPartition, object]] = {}
        """Log directory to partitions that are gone from it, but which its recovery point file or
        the notes beside it may name. The value is unique per removal, so that a file begun before
        a later removal does not clear that one."""

    # Reading.

    def read(self, name: str) -> dict[TopicPartition, int]:
        """The offsets in the checkpoint `name` of all live directories."""
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

    def note_named(self, log_dir: str, partitions: Iterable[TopicPartition]) -> None:
        """Note the partitions that a start found in the files of `log_dir`."""
        self._named.setdefault(log_dir, set()).update(partitions)

    # Writing.

    async def write(self, log_dirs: Iterable[str], files: Mapping[str, Ask] = BOTH) -> None:
        """Write these files of these directories, one directory after the other."""
        for log_dir in log_dirs:
            if log_dir in self._directories.live:
                await self._write(log_dir, files)

    async def _write(self, log_dir: str, files: Mapping[str, Ask]) -> None:
        offsets: dict[str, Offsets] = {name: [] for name in files}
        lines: list[str] = []
        begun = self._begin(log_dir, offsets, lines)
        gone = self._gone_from(log_dir, files)
        named = self._named.setdefault(log_dir, set())
        for log in self._table.everything():
            if self._table.holds(log) and parent_dir(log.dir) == log_dir:
                # Noted before the write: if the topic is deleted meanwhile, the file is rewritten.
                named.add(log.topic_partition)
                for name, ask in files.items():
                    offset = ask(log)
                    if offset is not None:
                        offsets[name].append((log.topic_partition, offset))
                if RECOVERY_POINT_CHECKPOINT in files:
                    lines.append(log.aborted_sums.line(log.topic_id))
            await PAUSE
        await self._finish(log_dir, begun, gone)

    async def write_loading(
        self, log_dir: str, points: Mapping[TopicPartition, int], lines: Iterable[str]
    ) -> None:
        """Write these recovery points of logs that are not loaded yet.

        `lines`: the logs' lines of `storage.aborted_checkpoint`.
        """
        offsets = {RECOVERY_POINT_CHECKPOINT: list(points.items())}
        begun = self._begin(log_dir, offsets, list(lines))
        await self._finish(log_dir, begun, self._gone_from(log_dir, offsets))

    def _begin(
        self, log_dir: str, offsets: Mapping[str, Offsets], lines: list[str]
    ) -> Sequence[Replacement]:
        """Begin all files; `offsets` and `lines` may be filled until `_finish`."""
        contents: dict[str, Content] = {}
        if RECOVERY_POINT_CHECKPOINT in offsets:
            contents[ABORTED_CHECKPOINT] = partial(encode_aborted, lines)
        for name, some in offsets.items():
            contents[name] = partial(encode_offsets, some)
        return [self._file(log_dir, name).begin(content) for name, content in contents.items()]

    def _gone_from(self, log_dir: str, files: Iterable[str]) -> dict[TopicPartition, object]:
        """The partitions that are named no more once these files are written."""
        return dict(self._gone.get(log_dir, {})) if RECOVERY_POINT_CHECKPOINT in files else {}

    async def _finish(
        self, log_dir: str, begun: Sequence[Replacement], gone: Mapping[TopicPartition, object]
    ) -> None:
        """Write the files in order, up to the first that fails."""
        for replacement in begun:
            if log_dir not in self._directories.live:
                return
            try:
                await replacement.finish()
            except OSError as error:
                self._failed(log_dir, error)
                return
            await PAUSE
        marks = self._gone.get(log_dir, {})
        for topic_partition, mark in gone.items():
            if marks.get(topic_partition) is mark:
                del marks[topic_partition]

    def _failed(self, log_dir: str, error: OSError) -> None:
        if is_shortage(error):
            self._directories.make_room()
            raise OutOfResources(log_dir, error)  # the task runs again
        _log.error("Disk error while writing checkpoints in directory %s: %s", log_dir, error)
        self._directories.report_failure(log_dir, error)

    def _file(self, log_dir: str, name: str) -> ReplacedFile:
        path = join(log_dir, name)
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = ReplacedFile(self._fs, path, self._random)
        return file

    # Partitions that are gone, and lower recovery points.

    def note_gone(self, log_dir: str, topic_partition: TopicPartition) -> None:
        """Note that the partition left `log_dir`, whose recovery point file may still name it."""
        self._gone.setdefault(log_dir, {})[topic_partition] = object()

    def before_new_log(self, log_dir: str, topic_partition: TopicPartition) -> None:
        """Remove the recovery point of an earlier log of that name from the file, if need be."""
        if topic_partition in self._gone.get(log_dir, ()):
            at_once(self.write((log_dir,), RECOVERY_POINTS))

    def write_lowered(self, log: Log) -> None:
        """Write the lower recovery point of `log` before anything is cut off."""
        at_once(self.write((parent_dir(log.dir),), RECOVERY_POINTS))

    async def update_outdated(self) -> None:
        """Write the checkpoints of directories whose files may name partitions that are gone."""
        await self.write([log_dir for log_dir, gone in self._gone.items() if gone])
