"""How far each log was cleaned: `cleaner-offset-checkpoint` of every log directory (S-CMP-14).

The file is Kafka's, and either broker continues where the other has stopped. In memory there is one
offset per partition and log directory; a change marks the directory, and its file is written soon
after (`write_changed`): if a crash loses a raised offset, that part is cleaned once more. An offset
that is too high, however, would make the cleaner skip dirty records below it. So a lowered one is
written before it can do harm: `write` follows a truncation at once, and `before_new_log` removes a
deleted log's offset before there is another log of that name.

Offsets of partitions that are not in the directory are dropped at the next write: Kafka leaves one
behind when it dies in the middle of a deletion or a move.
"""

import logging
from functools import partial
from random import Random

from protocol.types import TopicPartition
from storage.checkpoint import encode_offsets
from storage.errors import OutOfResources, is_shortage
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log_loading import read_offsets
from storage.manager.directories import LogDirectories
from storage.manager.log_table import LogTable
from storage.paths import CLEANER_CHECKPOINT, join, parent_dir
from storage.replaced_file import ReplacedFile
from storage.waits import PAUSE, at_once

_log = logging.getLogger(__name__)


class CleanerCheckpoints:
    """The offsets where cleanings ended. Disk errors are reported to the directories, never raised;
    writing raises OutOfResources."""

    def __init__(
        self, fs: FileSystem, random: Random, directories: LogDirectories, table: LogTable
    ) -> None:
        self._fs = fs
        self._random = random
        self._directories = directories
        self._table = table
        self._offsets: dict[str, dict[TopicPartition, int]] = {}
        self._gone: dict[str, dict[TopicPartition, object]] = {}
        """Partitions that left a directory and that its file may still name. Each removal has a
        value of its own, so that a file begun before a later removal does not clear that one."""
        self._changed: dict[str, object] = {}
        """Directories whose file is outdated, likewise with unique values."""
        self._files: dict[str, ReplacedFile] = {}

    # ---- offsets

    def load(self) -> None:
        """Read the files of all directories, once their logs are open.

        Offsets above a log's end are dropped: the crash that cut the log took cleaned records, and
        later appends there are dirty. Offsets of logs that are not in the directory are dropped.
        """
        for log_dir in list(self._directories.live):
            try:
                found = read_offsets(self._fs, log_dir, CLEANER_CHECKPOINT)
            except OSError as error:
                self._directories.report_failure(log_dir, error)
                continue
            self._offsets[log_dir] = {
                tp: offset
                for tp, offset in found.items()
                if self._lies_in(tp, log_dir) and self._is_reached(tp, offset)
            }
            if len(self._offsets[log_dir]) < len(found):
                self._note_changed(log_dir)

    def _lies_in(self, partition: TopicPartition, log_dir: str) -> bool:
        log = self._table.logs.get(partition)
        return log is not None and parent_dir(log.dir) == log_dir

    def _is_reached(self, partition: TopicPartition, offset: int) -> bool:
        end = self._table.logs[partition].log_end_offset
        if offset <= end:
            return True
        _log.warning(
            "The last checkpoint dirty offset for partition %s is %d, which is larger than the log "
            "end offset %d. Resetting to the log start offset.",
            partition,
            offset,
            end,
        )
        return False

    def get(self, log: Log) -> int | None:
        """The offset where the log's last cleaning ended; None: it was never cleaned."""
        return self._offsets.get(parent_dir(log.dir), {}).get(log.topic_partition)

    def set(self, log: Log, offset: int) -> None:
        """Set the offset below which the log is clean."""
        log_dir = parent_dir(log.dir)
        offsets = self._offsets.setdefault(log_dir, {})
        if offsets.get(log.topic_partition) != offset:
            offsets[log.topic_partition] = offset
            self._note_changed(log_dir)

    def truncate(self, log: Log, offset: int) -> bool:
        """Lower the log's offset to `offset`; True when it was higher."""
        known = self.get(log)
        if known is None or known <= offset:
            return False
        self.set(log, offset)
        return True

    def remove(self, log_dir: str, partition: TopicPartition) -> int | None:
        """Remove a partition that left the directory; returns its offset."""
        known = self._offsets.get(log_dir, {}).pop(partition, None)
        if known is not None:
            self._gone.setdefault(log_dir, {})[partition] = object()
            self._note_changed(log_dir)
        return known

    def drop_dir(self, log_dir: str) -> None:
        """Forget a directory that has failed."""
        self._offsets.pop(log_dir, None)
        self._changed.pop(log_dir, None)
        self._gone.pop(log_dir, None)

    # ---- writing

    def _note_changed(self, log_dir: str) -> None:
        self._changed[log_dir] = object()

    async def write_changed(self) -> None:
        """Write the files of directories whose offsets have changed."""
        for log_dir in list(self._changed):
            await self.write(log_dir)
            await PAUSE

    def before_new_log(self, log_dir: str, partition: TopicPartition) -> None:
        """Remove the offset of an earlier log of that name from the file, if need be."""
        if partition in self._gone.get(log_dir, ()):
            at_once(self.write(log_dir))

    async def write(self, log_dir: str) -> None:
        """Write one directory's file if it has changed; what is written later supersedes it."""
        mark = self._changed.get(log_dir)
        if mark is None or log_dir not in self._directories.live:
            return
        gone = dict(self._gone.get(log_dir, {}))
        named: list[tuple[TopicPartition, int]] = []
        for partition, offset in list(self._offsets.get(log_dir, {}).items()):
            if self._lies_in(partition, log_dir):
                named.append((partition, offset))
            await PAUSE
        if self._changed.get(log_dir) is not mark:
            return
        try:
            # Begun here, without a pause in between, so no later content is older.
            await self._file(log_dir).begin(partial(encode_offsets, named)).finish()
        except OSError as error:
            self._failed(log_dir, error)
            return
        if self._changed.get(log_dir) is mark:
            del self._changed[log_dir]
        marks = self._gone.get(log_dir, {})
        for partition, one in gone.items():
            if marks.get(partition) is one:
                del marks[partition]

    def _failed(self, log_dir: str, error: OSError) -> None:
        if is_shortage(error):
            self._directories.make_room()
            raise OutOfResources(log_dir, error)  # the task runs again
        _log.error(
            "Failed to access checkpoint file %s in dir %s: %s", CLEANER_CHECKPOINT, log_dir, error
        )
        self._directories.report_failure(log_dir, error)

    def _file(self, log_dir: str) -> ReplacedFile:
        file = self._files.get(log_dir)
        if file is None:
            path = join(log_dir, CLEANER_CHECKPOINT)
            file = self._files[log_dir] = ReplacedFile(self._fs, path, self._random)
        return file
