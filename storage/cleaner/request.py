"""The request for a cleaning, and its results: values that are sent to a child process and back.

All of them pickle. Offsets are absolute, sizes bytes, times milliseconds since the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from config.key_building import LONG_MAX
from protocol.types import TopicPartition
from storage.cleaner.fates import RecordFate
from storage.index.transaction_index import Checksum

LastRecords = Mapping[int, tuple[int, int]]
"""Producer id -> (epoch, offset of its last data in this log, or -1 where there is none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSegment:
    """A segment at the beginning of a cleaning. It is not the active one, so it does not change."""

    base_offset: int
    size: int
    """Bytes of whole batches."""
    last_modified_ms: int
    offset_index_size: int
    time_index_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRequest:
    """One cleaning of one log."""

    directory: str
    topic_partition: TopicPartition
    segments: tuple[SourceSegment, ...]
    """From the first of the log to the last one that begins before `first_uncleanable_offset`."""
    first_dirty_offset: int
    first_uncleanable_offset: int
    """The base of a segment: no record at or above it is read (S-CMP-8)."""
    high_watermark: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    map_bytes: int
    io_buffer_bytes: int
    """The fewest bytes to read at once."""
    load_factor: float = 0.9
    hash_seed: int = 0
    """64 bits that clients, who choose the keys, cannot know (`OffsetMap`)."""
    legacy_horizon_ms: int = 0
    """Tombstones of formats 0 and 1 are kept in segments that were modified later than this."""
    active_producers: LastRecords = field(default_factory=dict)
    aborted: bytes = b""
    """Index entries (`storage.cleaner.aborted`) of all aborted transactions with data below
    `first_uncleanable_offset`, in the order of their markers."""

    @property
    def new_horizon_ms(self) -> int:
        """The delete horizon of a batch that gets one now. (Kafka's sum overflows, so that the
        longest `delete.retention.ms` drops tombstones at once.)"""
        return min(self.now_ms + self.delete_retention_ms, LONG_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedSegment:
    """A segment of synced `.cleaned` files that is ready to be installed."""

    base_offset: int
    size: int
    sources: tuple[int, ...]
    """Base offsets of the segments that it replaces."""
    aborted_sum: Checksum
    """The checksum of its transaction index."""
    leaves_open: bool
    """Whether a transaction may be open at its end."""


_NO_FATES: Final = (0,) * len(RecordFate)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerStats:
    """Counts of what a cleaning, or a part of one, has read and written."""

    bytes_read: int = 0
    """By the rewriting; those of the map are in `map_bytes_read`."""
    bytes_written: int = 0
    messages_read: int = 0
    messages_written: int = 0
    invalid_messages_read: int = 0
    """Records without a key, which a compacted log cannot keep."""
    map_bytes_read: int = 0
    map_messages_read: int = 0
    map_utilization: float = 0.0
    """Keys per slot: `load_factor` is a full map."""
    end_offset: int = 0
    """The log is clean below it: the next checkpoint (S-CMP-14)."""
    fates: tuple[int, ...] = _NO_FATES
    """How many records met each `RecordFate`."""

    def plus(self, other: "CleanerStats") -> "CleanerStats":
        """The sum of both; utilization and end offset are the other's, unless these are 0."""
        return replace(
            self,
            bytes_read=self.bytes_read + other.bytes_read,
            bytes_written=self.bytes_written + other.bytes_written,
            messages_read=self.messages_read + other.messages_read,
            messages_written=self.messages_written + other.messages_written,
            invalid_messages_read=self.invalid_messages_read + other.invalid_messages_read,
            map_bytes_read=self.map_bytes_read + other.map_bytes_read,
            map_messages_read=self.map_messages_read + other.map_messages_read,
            map_utilization=other.map_utilization or self.map_utilization,
            end_offset=other.end_offset or self.end_offset,
            fates=tuple(map(sum, zip(self.fates, other.fates, strict=True))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MapStep:
    """The result of one step of reading the dirty part."""

    read_bytes: int
    messages: int
    is_done: bool
    end_offset: int
    """The map covers the dirty part below it: the cleaning goes so far."""
    map_utilization: float
    is_full: bool
    """The map has no room for more keys: the rest waits for the next cleaning (S-CMP-3)."""

    @property
    def stats(self) -> CleanerStats:
        """The step's counts, to be added to the whole cleaning's."""
        return CleanerStats(
            map_bytes_read=self.read_bytes,
            map_messages_read=self.messages,
            map_utilization=self.map_utilization,
            end_offset=self.end_offset,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteStep:
    """The result of one step of rewriting a group."""

    read_bytes: int
    written_bytes: int
    is_done: bool
    cleaned: CleanedSegment | None
    """Set when it is done."""
    stats: CleanerStats
    """The counts of this step."""
