"""What is to be read: of which topics, from where to where, and what counts as there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from protocol.types import TopicPartition


class IsolationLevel(Enum):
    """Whose records are read; the values are Kafka's names (`isolation.level`)."""

    READ_UNCOMMITTED = "read_uncommitted"
    """All below the high watermark."""
    READ_COMMITTED = "read_committed"
    """All below the last stable offset, those of aborted transactions left out."""


class Kind(Enum):
    """How a `Position` says where."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a partition's log, not yet an offset."""

    kind: Kind
    value: int = 0
    """The offset, or the time in ms."""

    @classmethod
    def offset(cls, offset: int) -> "Position":
        """That one. Below the log start it is the log start, beyond the end the end."""
        return cls(Kind.OFFSET, offset)

    @classmethod
    def timestamp(cls, timestamp: int) -> "Position":
        """The first record dated `timestamp` ms or later, the end where there is none.

        As Kafka's ListOffsets answers it: records behind it may be older.
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
        """That partition's."""
        return self.partitions.get(topic_partition, self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """A value that pickles. Topics come by name, by pattern or partition by partition.

    Without any of these it is all topics but Kafka's internal ones (`__…`).
    """

    directories: tuple[str, ...]
    """Log directories, or partition directories; live ones or copies."""
    topics: tuple[str, ...] | None = None
    """A name without a partition in any directory is an error (`UnknownTopic`)."""
    pattern: str | None = None
    """A regular expression that whole names of topics match."""
    assign: tuple[TopicPartition, ...] | None = None
    """A partition that is in no directory is an error (`UnknownTopic`)."""
    start: Positions = Positions(EARLIEST)
    end: Positions = Positions(LATEST)
    """Exclusive."""
    timestamps: tuple[int | None, int | None] = (None, None)
    """Only records dated in [from, to), ms, wherever they lie."""
    lateness_ms: int | None = None
    """For `timestamps`: no record is older than the newest one before it by more than this.

    With it, segments behind the range are left out. None: nothing is assumed of the order, and
    all segments behind the first record of the range are read.
    """
    with_times: bool = False
    """Whether tasks say between which times their records are dated, as far as is known."""
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    beyond_high_watermark: bool = False
    """Up to the log end, for uncommitted reads only."""
    split_bytes: int = 128 * 1024 * 1024
    """Segments larger than this become several tasks; 0: none does."""
