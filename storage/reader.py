"""A read-only view of a partition directory, without a broker: segments, batches, records, indexes.

Nothing is opened for writing, repaired or locked, so a directory that a broker is using may be looked at;
what is not whole yet is where the view ends (`SegmentView.ended`). Damage is told as values (`Batch.valid`,
`ended`), not raised, so that all that is good can be read.

The one module of storage that command-line tools and the pipeline use.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from protocol.records.batch import BatchHeader, verify_crc
from protocol.records.record import Record, iter_records
from protocol.types import TopicPartition
from storage.epochs import EpochEntry, LeaderEpochCache
from storage.errors import CheckpointError, CorruptIndex, CorruptSnapshot
from storage.filesystem import FileSystem
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from storage.index.transaction_index import AbortedTxn, TransactionIndex
from storage.log.scan import Ended, Walk
from storage.os_filesystem import OsFileSystem
from storage.paths import (
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
    index_file,
    join,
    log_file,
    parent_dir,
    parse_partition_dir,
    parse_segment_file,
    snapshot_file,
    time_index_file,
    txn_index_file,
)
from storage.producers.entry import ProducerStateEntry
from storage.producers.snapshot import read_snapshot

__all__ = [
    "INDEX_SUFFIX",
    "LEADER_EPOCH_CHECKPOINT",
    "LOG_SUFFIX",
    "SNAPSHOT_SUFFIX",
    "TIME_INDEX_SUFFIX",
    "TXN_INDEX_SUFFIX",
    "AbortedTxn",
    "Batch",
    "CheckpointError",
    "CorruptIndex",
    "CorruptSnapshot",
    "EpochEntry",
    "PartitionView",
    "ProducerStateEntry",
    "SegmentView",
    "parse_segment_file",
]


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch where it lies. Its bytes belong to a chunk that stays in memory as long as this does."""

    position: int
    """Of its first byte in the record file."""
    header: BatchHeader
    chunk: memoryview
    at: int
    """Where it starts in `chunk`."""

    @property
    def data(self) -> memoryview:
        """The batch, whole."""
        return self.chunk[self.at : self.at + self.header.size]

    @property
    def valid(self) -> bool:
        """Whether the checksum is right."""
        return verify_crc(self.chunk, self.at, self.header)

    def records(self) -> Iterator[Record]:
        """Its records, decompressed. Raises the records errors for a batch that cannot be read."""
        return iter_records(self.chunk, self.at)


class SegmentView:
    """One segment's files."""

    def __init__(self, fs: FileSystem, directory: str, base_offset: int, state: str = "") -> None:
        self._fs = fs
        self._where = (directory, base_offset, state)
        self.base_offset = base_offset
        self.ended: Ended | None = None
        """Why the last walk over the batches stopped."""
        self.valid_bytes = 0
        """How far it came."""

    @property
    def path(self) -> str:
        """Of the record file."""
        return log_file(*self._where)

    @property
    def size(self) -> int:
        """Bytes of the record file."""
        return self._fs.size(self.path)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Batches from byte `start` (a batch's first) on, as far as they are whole."""
        file = self._fs.open(self.path, writable=False)
        walk = Walk(file, start, file.size())
        try:
            for position, header, chunk, at in walk:
                yield Batch(position, header, chunk, at)
        finally:
            self.ended, self.valid_bytes = walk.ended, walk.position
            file.close()

    def records(self) -> Iterator[Record]:
        """Every record, control records included."""
        for batch in self.batches():
            yield from batch.records()

    def offset_index(self) -> list[tuple[int, int]]:
        """(offset, position) of each entry. Raises CorruptIndex."""
        index = OffsetIndex(self._fs, index_file(*self._where), self.base_offset, _ANY_SIZE)
        return [index.entry(slot) for slot in range(index.entries)]

    def time_index(self) -> list[tuple[int, int]]:
        """(timestamp, offset) of each entry."""
        index = TimeIndex(self._fs, time_index_file(*self._where), self.base_offset, _ANY_SIZE)
        return [index.entry(slot) for slot in range(index.entries)]

    def aborted(self) -> list[AbortedTxn]:
        """Aborted transactions whose markers lie here."""
        path = txn_index_file(*self._where)
        return TransactionIndex(self._fs, path, self.base_offset).all_aborted()

    def check_indexes(self) -> list[str]:
        """What is wrong with the indexes, a sentence each: themselves, and against the batches."""
        problems = []
        offsets = OffsetIndex(self._fs, index_file(*self._where), self.base_offset, _ANY_SIZE)
        times = TimeIndex(self._fs, time_index_file(*self._where), self.base_offset, _ANY_SIZE)
        aborted = TransactionIndex(self._fs, txn_index_file(*self._where), self.base_offset)
        for check in (
            lambda: offsets.sanity_check(log_size=self.size, full=True),
            lambda: times.sanity_check(full=True),
            aborted.sanity_check,
        ):
            try:
                check()
            except CorruptIndex as error:
                problems.append(str(error))
        if problems:
            return problems
        by_position = {batch.position: batch.header for batch in self.batches()}
        for offset, position in self.offset_index():
            header = by_position.get(position)
            if header is None or header.last_offset != offset:
                found = "no batch" if header is None else f"last offset {header.last_offset}"
                problems.append(f"{offsets.path}: offset {offset} at {position}: {found} is there")
        dated = {header.last_offset: header.max_timestamp for header in by_position.values()}
        for timestamp, offset in self.time_index():
            if dated.get(offset) != timestamp:
                problems.append(f"{times.path}: no batch ends at {offset} with time {timestamp}")
        return problems


class PartitionView:
    """One partition directory."""

    def __init__(self, directory: str, fs: FileSystem | None = None) -> None:
        self._fs = OsFileSystem() if fs is None else fs
        self.directory = directory.rstrip("/") or "/"

    @classmethod
    def holding(cls, path: str, fs: FileSystem | None = None) -> "PartitionView":
        """The view of the directory that a segment's file lies in."""
        return cls(parent_dir(path), fs)

    @property
    def topic_partition(self) -> TopicPartition | None:
        """What the directory's name says; None when it is no partition's."""
        parsed = parse_partition_dir(file_name(self.directory))
        return None if parsed is None else parsed.topic_partition

    def segments(self) -> list[SegmentView]:
        """Ascending. Raises OSError when the directory cannot be listed."""
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
            for batch in segment.batches():
                if batch.header.last_offset >= start_offset:
                    yield from (r for r in batch.records() if r.offset >= start_offset)

    def snapshots(self) -> list[int]:
        """Offsets of the producer snapshots."""
        return self._offsets(SNAPSHOT_SUFFIX)

    def producers(self, offset: int) -> list[ProducerStateEntry]:
        """Content of the snapshot at `offset`. Raises CorruptSnapshot, OSError."""
        return read_snapshot(self._fs, snapshot_file(self.directory, offset))

    def leader_epochs(self) -> list[EpochEntry]:
        """Epochs and where they begin. Raises CheckpointError."""
        path = join(self.directory, LEADER_EPOCH_CHECKPOINT)
        return LeaderEpochCache(self._fs, path).entries

    def _offsets(self, suffix: str) -> list[int]:
        parsed = (parse_segment_file(name) for name in self._fs.list_dir(self.directory))
        return sorted(f.base_offset for f in parsed if f and f.suffix == suffix and not f.state)


_ANY_SIZE = 2**31 - 1
"""Read-only: the limit of what may be appended is of no interest."""
