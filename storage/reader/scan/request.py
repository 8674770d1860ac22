"""The request of a scan: which topics, which range, and which records are visible."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from protocol.types import TopicPartition


class IsolationLevel(Enum):
    """Which records are read; the values are Kafka's names (`isolation.level`)."""

    READ_UNCOMMITTED = "read_uncommitted"
    """All below the high watermark."""
    READ_COMMITTED = "read_committed"
    """All below the last stable offset, except those of aborted transactions."""


class Kind(Enum):
    """How a `Position` is given."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a partition's log, not yet an offset."""

    kind: Kind
    value: int = 0
    """The offset, or the timestamp in ms."""

    @classmethod
    def offset(cls, offset: int) -> "Position":
        """This offset, raised to the log start or lowered to the end if it lies outside."""
        return cls(Kind.OFFSET, offset)

    @classmethod
    def timestamp(cls, timestamp: int) -> "Position":
        """The first record dated `timestamp` ms or later, or the end if there is none.

        As in Kafka's ListOffsets, later records may be older.
        """
        return cls(Kind.TIMESTAMP, timestamp)


EARLIEST: Final = Position(Kind.EARLIEST)
"""The log start offset."""
LATEST: Final = Position(Kind.LATEST)
"""The high watermark, or the last stable offset of a committed read."""


@dataclass(frozen=True, slots=True)
class Positions:
    """A position for each partition."""

    default: Position
    partitions: Mapping[TopicPartition, Position] = field(default_factory=dict)

    def of(self, topic_partition: TopicPartition) -> Position:
        """Return the position of a partition."""
        return self.partitions.get(topic_partition, self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """The records to read; pickles. Topics are given by name, by pattern or by partitions.

    Without any of these all topics are read except Kafka's internal ones (`__…`).
    """

    directories: tuple[str, ...]
    """Log directories, or partition directories; live ones or copies."""
    topics: tuple[str, ...] | None = None
    """A name without a partition in any directory is an error (`UnknownTopic`)."""
    pattern: str | None = None
    """A regular expression that must match the whole name of a topic."""
    assign: tuple[TopicPartition, ...] | None = None
    """Partitions; one that is in no directory is an error (`UnknownTopic`)."""
    start: Positions = Positions(EARLIEST)
    end: Positions = Positions(LATEST)
    """Exclusive."""
    timestamps: tuple[int | None, int | None] = (None, None)
    """Only records dated in [from, to), ms, at any offset."""
    lateness_ms: int | None = None
    """A promise for `timestamps`: no record is older than the newest before it by more than this.

    So segments after the range can be left out. None: no order is assumed, and all segments after
    the first record of the range are read.
    """
    now_ms: int | None = None
    """A record dated later has the time of a wrong clock, so `lateness_ms` does not count from it.
    None: all times are believed."""
    with_times: bool = False
    """Whether tasks get the time range of their records, if it is known."""
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    beyond_high_watermark: bool = False
    """Read up to the log end; for uncommitted reads only."""
    split_bytes: int = 128 * 1024 * 1024
    """Segments larger than this become several tasks; 0: none does."""
    split_offsets: int = 0
    """Segments of more offsets become several tasks; 0: only `split_bytes` decides."""
