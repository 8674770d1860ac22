"""One partition directory, read only."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from protocol.records.record import Record
from protocol.types import TopicPartition
from storage.epochs import EpochEntry, read_epochs
from storage.filesystem import FileSystem
from storage.log_dir import read_partition_metadata
from storage.os_filesystem import OsFileSystem
from storage.paths import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    DirState,
    file_name,
    join,
    parent_dir,
    parse_partition_dir,
    parse_segment_file,
    snapshot_file,
)
from storage.producers.entry import ProducerStateEntry
from storage.producers.snapshot import read_snapshot
from storage.reader.read_only import ReadOnlyFileSystem
from storage.reader.segment import SegmentView

if TYPE_CHECKING:
    from storage.reader.columns import Columns, RecordChunk


class PartitionView:
    """One partition directory. `fs` is only read (`ReadOnlyFileSystem`)."""

    def __init__(self, directory: str | PurePath, fs: FileSystem | None = None) -> None:
        self._fs = ReadOnlyFileSystem(OsFileSystem() if fs is None else fs)
        self.directory = str(directory).rstrip("/") or "/"

    @classmethod
    def holding(cls, path: str, fs: FileSystem | None = None) -> "PartitionView":
        """The view of the directory that a segment's file lies in."""
        return cls(parent_dir(path), fs)

    @property
    def topic_partition(self) -> TopicPartition | None:
        """The partition by the directory's name; None when that is no partition's."""
        parsed = parse_partition_dir(file_name(self.directory))
        return None if parsed is None else parsed.topic_partition

    @property
    def state(self) -> DirState | None:
        """Live, waiting to be deleted, moving here, stray; None when it is no partition's."""
        parsed = parse_partition_dir(file_name(self.directory))
        return None if parsed is None else parsed.state

    def topic_id(self) -> bytes | None:
        """16 bytes from partition.metadata, None without one. Raises CheckpointError, OSError."""
        return read_partition_metadata(self._fs, self.directory)

    def names(self) -> list[str]:
        """Every file, sorted. Raises OSError."""
        return self._fs.list_dir(self.directory)

    def segments(self) -> list[SegmentView]:
        """The segments, ascending. Raises OSError when the directory cannot be listed."""
        bases = self._offsets(LOG_SUFFIX)
        return [SegmentView(self._fs, self.directory, base) for base in bases]

    def segment(self, base_offset: int, state: str = "") -> SegmentView:
        """The segment that starts there; its files need not all exist."""
        return SegmentView(self._fs, self.directory, base_offset, state)

    def records(self, start_offset: int = 0) -> Iterator[Record]:
        """Every record from `start_offset` on, control records included."""
        segments = self.segments()
        for at, segment in enumerate(segments):
            if at + 1 < len(segments) and segments[at + 1].base_offset <= start_offset:
                continue
            yield from segment.records(start_offset)

    def iter_columns(self) -> "Iterator[RecordChunk]":
        """The records of all segments as numpy columns, some megabytes of log at a time."""
        for segment in self.segments():
            yield from segment.iter_columns()

    def columns(self) -> "Columns":
        """One row per record of the partition: dict of numpy arrays (`columns.RECORD_COLUMNS`)."""
        from storage.reader.columns import RECORD_COLUMNS, concatenate

        return concatenate([chunk.columns for chunk in self.iter_columns()], RECORD_COLUMNS)

    def batch_columns(self) -> "Columns":
        """One row per batch: dict of numpy arrays (`columns.BATCH_COLUMNS`) and `base` (int64), the
        base offset of the segment that `position` counts in."""
        import numpy

        from storage.reader.columns import BATCH_COLUMNS, concatenate

        parts = []
        for segment in self.segments():
            part = segment.batch_columns()
            part["base"] = numpy.full(len(part["position"]), segment.base_offset, "i8")
            parts.append(part)
        return concatenate(parts, {**BATCH_COLUMNS, "base": "i8"})

    def snapshots(self) -> list[int]:
        """Offsets of the producer snapshots."""
        return self._offsets(SNAPSHOT_SUFFIX)

    def producers(self, offset: int, state: str = "") -> list[ProducerStateEntry]:
        """Content of the snapshot at `offset`. Raises CorruptSnapshot, OSError.

        `state` is "" or the file's further suffix: `.deleted`.
        """
        return read_snapshot(self._fs, snapshot_file(self.directory, offset, state))

    def leader_epochs(self) -> list[EpochEntry]:
        """Epochs and where they begin. Raises CheckpointError."""
        path = join(self.directory, LEADER_EPOCH_CHECKPOINT)
        return read_epochs(self._fs, path)

    def _offsets(self, suffix: str) -> list[int]:
        parsed = (parse_segment_file(name) for name in self._fs.list_dir(self.directory))
        return sorted(
            f.base_offset for f in parsed if f is not None and f.suffix == suffix and not f.state
        )
