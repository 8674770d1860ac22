"""Results of a `Log`, and the enums for isolation levels and for the reasons of its decisions.

Values of the produce and fetch path (`AppendInfo`, `ReadInfo`, `FileSlice`) are slotted but not
frozen: a frozen dataclass costs two microseconds to build. Nobody changes one after it was handed
out. Reasons are enums, which logs, metrics and tests read alike.

Any room above storage may import this module.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from protocol.types import NO_TIMESTAMP
from storage.append_origin import AppendOrigin as AppendOrigin
from storage.filesystem import File, FileElsewhere

if TYPE_CHECKING:
    from storage.index.transaction_index import AbortedTxn

LOADED_AT_ONCE = 256 * 1024
"""Bytes that `FileSlice.load` reads, and drops, at a time."""

MOST_ABORTED = 2000
"""The most ABORT markers in one committed read, which is cut before the next one: a megabyte may
hold seven thousand, and each is an object on the event loop. Kafka has no such limit."""


class FetchIsolation(Enum):
    """How far a reader may see (S-READ-5)."""

    LOG_END = "log_end"
    """Followers: up to the log end offset."""
    HIGH_WATERMARK = "high_watermark"
    """Consumers with read_uncommitted: below the high watermark."""
    TXN_COMMITTED = "txn_committed"
    """Consumers with read_committed: below the last stable offset."""


class RollReason(Enum):
    """Why a new segment was started (S-ROLL-5)."""

    SIZE = "segment.bytes"
    TIME = "segment.ms"
    OFFSET_INDEX_FULL = "offset index full"
    TIME_INDEX_FULL = "time index full"
    OFFSET_OVERFLOW = "relative offset overflow"
    REQUESTED = "requested"
    """Retention deletes the active segment, or a caller asked."""


class DeletionReason(Enum):
    """Why a segment was taken out of the log (S-RET-2 to S-RET-4)."""

    RETENTION_TIME = "retention.ms"
    RETENTION_SIZE = "retention.bytes"
    LOG_START_OFFSET = "log start offset"
    TRUNCATION = "truncation"
    COMPACTION = "compaction"
    RECOVERY = "recovery"


class StartOffsetReason(Enum):
    """Why the log start offset moved (`LogStartOffsetIncrementReason`)."""

    CLIENT_RECORD_DELETION = "client delete records request"
    LEADER_OFFSET_INCREMENTED = "leader offset increment"
    SEGMENT_DELETION = "segment deletion"


class FileSlice:
    """A range of bytes of one segment file, read when somebody needs it.

    Holds the `File`, so the bytes stay readable after the segment was deleted (S-RET-7), and never
    reaches past what was exposed when it was made (S-READ-7). The network sends it with sendfile.
    """

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        """The bytes themselves. Raises OSError."""
        return self.file.pread(self.size, self.position)

    def is_cached(self) -> bool:
        """Whether `read` would not wait for the disk; True if unknown."""
        return self.file.is_cached(self.size, self.position)

    def load(self) -> None:
        """Bring the bytes into the page cache. Waits for the disk, so not on the event loop.

        Returns early when the file ends before the slice does. Raises OSError.
        """
        pread, position, end = self.file.pread, self.position, self.position + self.size
        while position < end and pread(min(LOADED_AT_ONCE, end - position), position):
            position += LOADED_AT_ONCE

    def elsewhere(self) -> "SliceElsewhere | None":
        """The slice for a child process; None if that cannot read the file. Raises OSError."""
        file = self.file.elsewhere()
        return None if file is None else SliceElsewhere(file, self.position, self.size)

    def fileno(self) -> int:
        """The descriptor, for sendfile. Raises OSError where the file has none."""
        return self.file.fileno()

    def __repr__(self) -> str:
        return f"FileSlice({self.file.path}, position={self.position}, size={self.size})"


class SliceElsewhere(NamedTuple):
    """A `FileSlice` that another process reads itself, so that large batches are not sent to it."""

    file: FileElsewhere
    position: int
    size: int

    def read(self) -> bytes | None:
        """The bytes; None if the path does not lead to the file any more. Raises OSError."""
        return self.file.read(self.size, self.position)


class AppendInfo:
    """The result of an append (`LogAppendInfo`)."""

    __slots__ = (
        "duplicate",
        "first_offset",
        "last_offset",
        "leader_epoch",
        "log_append_time",
        "log_start_offset",
        "max_timestamp",
        "offset_of_max_timestamp",
        "record_count",
        "rolled",
        "valid_bytes",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        max_timestamp: int = NO_TIMESTAMP,
        offset_of_max_timestamp: int = -1,
        log_append_time: int = NO_TIMESTAMP,
        log_start_offset: int = 0,
        leader_epoch: int = -1,
        record_count: int = 0,
        valid_bytes: int = 0,
    ) -> None:
        self.first_offset = first_offset
        """Offset of the first record; -1 when nothing was appended."""
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp
        self.offset_of_max_timestamp = offset_of_max_timestamp
        """Last offset of the batch with the greatest timestamp, as the time index stores it."""
        self.log_append_time = log_append_time
        """Milliseconds if the topic uses LogAppendTime (or a duplicate's stored time), else -1."""
        self.log_start_offset = log_start_offset
        self.leader_epoch = leader_epoch
        self.record_count = record_count
        self.valid_bytes = valid_bytes
        """Bytes of whole batches in what was handed in; a torn tail is trimmed (S-APP-6)."""
        self.duplicate = False
        """True: the batch was in the log already; the offsets are those of the first time."""
        self.rolled: RollReason | None = None


@dataclass(slots=True)
class ReadInfo:
    """The result of a read (`FetchDataInfo`)."""

    offset: int
    """The offset of the request."""
    records: "FileSlice | bytes"
    """Whole batches from the one that holds `offset` (S-READ-2); only the last may be cut
    (S-READ-4)."""
    segment_base: int = -1
    """Base offset of the segment `records` lies in; -1 when nothing was read."""
    position: int = -1
    """Position of `records` in that segment's file; -1 when nothing was read."""
    first_entry_incomplete: bool = False
    """Even the first batch did not fit into max_bytes (only without minOneMessage)."""
    aborted: "list[AbortedTxn] | None" = None
    """Aborted transactions that overlap `records`; None unless the read is read_committed."""
    urgent: bool = False
    """A fetch of this must not wait for more: `offset` lies in an older segment than the reader's
    limit, or above the limit (S-READ-6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampOffset:
    """A record's place in time (`FileRecords.TimestampAndOffset`)."""

    timestamp: int
    offset: int
    leader_epoch: int = -1
    """Epoch of the batch that holds it; -1 when it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """One segment that was taken out of the log."""

    base_offset: int
    size: int
    reason: DeletionReason


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDeletion:
    """A renamed file that is unlinked once it is due (S-RET-7)."""

    path: str
    due_ms: int
    """Wall-clock milliseconds: when it was renamed, plus `file.delete.delay.ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatistics:
    """A log's gauges (`kafka.log:type=Log,name=…`)."""

    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    size: int
    segment_count: int
    recovery_point: int
    last_flush_ms: int
    producer_count: int
