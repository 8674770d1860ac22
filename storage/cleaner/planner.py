"""Which part of a log may be cleaned now, and if none, why not (S-CMP-1, S-CMP-2). Pure.

    |---- clean ----|---------- dirty ----------|
    ^ log start     ^ first dirty offset   ^ first uncleanable offset     ^ log end

  * The first dirty offset is where the last cleaning ended (the checkpoint). If that lies outside
    of the log, it is the log start, and the checkpoint is corrected.
  * The first uncleanable offset is the base of the first segment that must not be touched: the one
    that holds the last stable offset, the active one, or the first whose newest record is younger
    than `min.compaction.lag.ms`, whichever comes first.
  * The log is due when the cleanable bytes are more than `min.cleanable.dirty.ratio` of clean and
    cleanable bytes together, or when its oldest dirty segment is older than
    `max.compaction.lag.ms`.

The verdict is data: the cleaner acts on it, metrics and `explain-cleaner` show it. A segment's
timestamps may have to be read from its files, so they are read only if a lag is set, and `judge`
awaits `PAUSE` before each such read, because a caller may have many logs.

After Kafka's `LogCleanerManager.cleanableOffsets`, `LogToClean` and `maxCompactionDelay`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from config.key_building import LONG_MAX
from config.topic_config import TopicConfig
from storage.cleaner.states import (
    LogCleaningAborted,
    LogCleaningInProgress,
    LogCleaningPaused,
    LogCleaningState,
)
from storage.log.segment import LogSegment
from storage.waits import PAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction is still open: nothing from its first record on may be cleaned."""

    producer_id: int
    first_offset: int
    since_ms: int | None = None
    """The time of its first record; None if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """The facts about a log. Offsets are absolute, times milliseconds since the epoch."""

    segments: Sequence[LogSegment]
    """All segments, ascending; the last one is the active one."""
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    """Nothing from here on is cleaned: not replicated, or of an open transaction."""
    checkpointed: int | None
    """The offset at which the last cleaning ended; None: the log was never cleaned."""
    config: TopicConfig
    now_ms: int
    open_transaction: OpenTransaction | None = None
    """The oldest one."""
    state: LogCleaningState | None = None
    uncleanable: str | None = None
    """Why the cleaner has given the log up; None if it has not."""
    cleaner_enabled: bool = True
    largest_timestamp_of: Callable[[LogSegment], int] = lambda segment: segment.largest_timestamp()
    first_timestamp_of: Callable[[LogSegment], int] = lambda segment: segment.read_first_timestamp()


# Why a log is not cleaned now.


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerDisabled:
    """`log.cleaner.enable` is false, or there is no cleaner thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCompacted:
    """`cleanup.policy` has no compact."""

    policy: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncleanable:
    """The cleaner met something that it cannot clean, and leaves the partition alone."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InProgress:
    """A cleaner is cleaning it."""

    aborted: bool
    """Whether the cleaning ends at its next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """Paused, during a move or while a coordinator reads the log."""

    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingDirty:
    """Everything was cleaned, or the log is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveSegmentOnly:
    """The dirty part is in the active segment, which is not cleaned before it is rolled."""

    base_offset: int
    size: int
    segment_bytes: int
    segment_ms: int
    """The next append rolls the segment once it is larger or older than these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LagNotOver:
    """The segment has records younger than `min.compaction.lag.ms`."""

    base_offset: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReplicated:
    """The high watermark has not passed it."""

    first_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioBelow:
    """The dirty part is not more than `wanted` of the whole."""

    ratio: float
    wanted: float
    due_at_ms: int | None
    """The time when `max.compaction.lag.ms` makes the log due all the same; None: not known."""


Limit = OpenTransaction | NotReplicated | LagNotOver | ActiveSegmentOnly
Reason = (
    CleanerDisabled
    | NotCompacted
    | Uncleanable
    | InProgress
    | Paused
    | NothingDirty
    | RatioBelow
    | Limit
)


class DueReason(StrEnum):
    """The config by which a log is due."""

    RATIO = "min.cleanable.dirty.ratio"
    MAX_LAG = "max.compaction.lag.ms"


class ResetReason(StrEnum):
    """Why the checkpoint cannot be right."""

    BELOW_LOG_START = "it is below the log start"
    ABOVE_LOG_END = "it is above the log end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The part of a log that may be cleaned."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    """The base of a segment."""
    clean_bytes: int
    cleanable_bytes: int
    reset: ResetReason | None
    """Why the checkpoint has to be set to the first dirty offset; None if it is right."""
    limits: tuple[Limit, ...]
    """Why the part ends where it does."""

    @property
    def total_bytes(self) -> int:
        """The denominator of the ratio."""
        return self.clean_bytes + self.cleanable_bytes

    @property
    def ratio(self) -> float:
        """The dirty ratio, from 0 to 1; 0 for an empty log."""
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The log is to be cleaned."""

    extent: Extent
    reason: DueReason
    delay_ms: int
    """The time by which the oldest dirty segment has outlived `max.compaction.lag.ms`."""

    @property
    def ratio(self) -> float:
        """The dirty ratio, which orders the logs that are due."""
        return self.extent.ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class NotDue:
    """The log is not cleaned now."""

    reasons: tuple[Reason, ...]
    """At least one reason; those that do not pass by themselves come first."""
    extent: Extent | None
    """None if it was not determined, for a log that is not compacted."""
    delay_ms: int = 0
    """As `Due.delay_ms`: the log would be due if any of it might be cleaned."""


Verdict = Due | NotDue


async def judge(facts: LogFacts) -> Verdict:
    """Whether the log is due, and all reasons why not.

    It pauses before each read that may open a file. Raises what reading a timestamp raises.
    """
    hindrances = tuple(_hindrances(facts))
    if not facts.config.compact:
        return NotDue(reasons=hindrances, extent=None)
    extent = await cleanable_extent(facts)
    due_at_ms = await _due_at(facts, extent.first_dirty_offset)
    delay_ms = 0 if due_at_ms is None else max(facts.now_ms - due_at_ms, 0)
    wanted = facts.config.min_cleanable_dirty_ratio
    reason = None
    if delay_ms > 0 and extent.cleanable_bytes > 0:
        reason = DueReason.MAX_LAG
    elif extent.ratio > wanted:
        reason = DueReason.RATIO
    if reason is not None and not hindrances:
        return Due(extent=extent, reason=reason, delay_ms=delay_ms)
    reasons: tuple[Reason, ...] = hindrances
    if reason is None:
        if extent.cleanable_bytes:
            below = RatioBelow(ratio=extent.ratio, wanted=wanted, due_at_ms=due_at_ms)
            reasons += (below, *extent.limits)
        elif extent.first_dirty_offset >= facts.log_end_offset:
            reasons += (NothingDirty(),)
        else:
            reasons += extent.limits
    return NotDue(reasons=reasons, extent=extent, delay_ms=delay_ms)


def _hindrances(facts: LogFacts) -> Iterator[Reason]:
    if not facts.cleaner_enabled:
        yield CleanerDisabled()
    if not facts.config.compact:
        yield NotCompacted(policy=facts.config.cleanup_policy)
    if facts.uncleanable is not None:
        yield Uncleanable(why=facts.uncleanable)
    if isinstance(facts.state, LogCleaningInProgress | LogCleaningAborted):
        yield InProgress(aborted=isinstance(facts.state, LogCleaningAborted))
    elif isinstance(facts.state, LogCleaningPaused):
        yield Paused(times=facts.state.times)


def first_dirty_offset(facts: LogFacts) -> tuple[int, ResetReason | None]:
    """The offset at which the dirty part begins, and why not at the checkpoint (S-CMP-2)."""
    start, known = facts.log_start_offset, facts.checkpointed
    if known is None:
        return start, None
    if known < start:
        return start, ResetReason.BELOW_LOG_START
    if known > facts.log_end_offset:
        return start, ResetReason.ABOVE_LOG_END
    return known, None


async def cleanable_extent(facts: LogFacts) -> Extent:
    """The range that may be cleaned, and the bytes in it (S-CMP-2)."""
    segments, active = facts.segments, facts.segments[-1]
    dirty, reset = first_dirty_offset(facts)
    first, limits = active.base_offset, _active_only(facts)
    if facts.last_stable_offset < first:
        first, limits = facts.last_stable_offset, (_undecided(facts),)
    lag_ms = facts.config.min_compaction_lag_ms
    if lag_ms > 0:
        young = await _first_young(facts, dirty, first, facts.now_ms - lag_ms)
        if young is not None:
            segment, timestamp = young
            first = segment.base_offset
            limits = (LagNotOver(base_offset=first, until_ms=min(timestamp + lag_ms, LONG_MAX)),)
    # A segment is cleaned whole or not at all: the one that holds that offset is left out.
    end = _floor(segments, max(first, dirty))
    begin = min(_floor(segments, dirty), end)
    clean = sum(s.size for s in segments if s.base_offset < dirty)
    return Extent(
        first_dirty_offset=dirty,
        first_uncleanable_offset=segments[end].base_offset,
        clean_bytes=clean,
        cleanable_bytes=sum(segment.size for segment in segments[begin:end]),
        reset=reset,
        limits=limits,
    )


def _active_only(facts: LogFacts) -> tuple[Limit, ...]:
    active, config = facts.segments[-1], facts.config
    return (
        ActiveSegmentOnly(
            base_offset=active.base_offset,
            size=active.size,
            segment_bytes=config.segment_bytes,
            segment_ms=min(config.segment_ms, config.max_compaction_lag_ms),
        ),
    )


def _undecided(facts: LogFacts) -> Limit:
    open_one, stable = facts.open_transaction, facts.last_stable_offset
    if open_one is not None and max(open_one.first_offset, facts.log_start_offset) <= stable:
        return open_one
    return NotReplicated(first_offset=stable)


async def _first_young(
    facts: LogFacts, dirty: int, end: int, newest_ms: int
) -> tuple[LogSegment, int] | None:
    """The first dirty segment below `end` with a record younger than that, and its timestamp."""
    segments = facts.segments
    for segment in segments[_floor(segments, dirty) : -1]:
        if segment.base_offset >= end:
            break
        await PAUSE
        timestamp = facts.largest_timestamp_of(segment)
        if timestamp > newest_ms:
            return segment, timestamp
    return None


async def _due_at(facts: LogFacts, dirty: int) -> int | None:
    """The end of `max.compaction.lag.ms` for the oldest dirty segment below the active one."""
    lag_ms = facts.config.max_compaction_lag_ms
    if lag_ms == LONG_MAX:
        return None
    segments, oldest = facts.segments, None
    for segment in segments[_floor(segments, dirty) : -1]:
        await PAUSE
        timestamp = facts.first_timestamp_of(segment)
        if timestamp > 0 and (oldest is None or timestamp < oldest):
            oldest = timestamp
    return None if oldest is None else min(oldest + lag_ms, LONG_MAX)


def _floor(segments: Sequence[LogSegment], offset: int) -> int:
    """The index of the segment that holds `offset`; 0 if `offset` is below all."""
    at = len(segments) - 1
    while at > 0 and segments[at].base_offset > offset:
        at -= 1
    return at
