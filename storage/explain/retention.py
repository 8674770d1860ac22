"""The verdict of retention on a log now, segment by segment (S-RET-1 to S-RET-5).

A segment is deleted only with all before it, so an older segment may keep it
(`RetentionVerdict.held_back_by`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from storage.log import retention
from storage.log.log import Log
from storage.log.results import DeletionReason
from storage.log.segment import LogSegment

_NEVER: Final = 2**63
"""Later than any time."""


class Kept(Enum):
    """The reason why a segment is kept, whatever happens to the others."""

    POLICY = "cleanup.policy has no delete"
    HIGH_WATERMARK = "it has records at or above the high watermark"
    EMPTY = "it is active and empty"
    UNLIMITED = "retention.ms is unlimited"
    YOUNG = "its newest record is not older than retention.ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionVerdict:
    """Whether and when one segment is deleted. Times are milliseconds."""

    base_offset: int
    end_offset: int
    """The offset at which the next segment begins, or the log ends."""
    size: int
    """Bytes of its records."""
    largest_timestamp: int
    """The greatest of its records; when the file was last written if they have none (S-TS-4)."""
    is_active: bool
    taken_by: DeletionReason | None = None
    """The rule that deletes it when retention runs; None: it is kept."""
    kept: Kept | None = None
    """The reason why it is kept; None: it is deleted, or only `held_back_by` keeps it."""
    held_back_by: int | None = None
    """The base offset of an older segment that is kept longer."""
    due_ms: int | None = None
    """When retention.ms deletes it, if nothing is appended; None: never."""
    bytes_to_come: int | None = None
    """retention.bytes deletes it after so many more bytes are appended; None: never."""


def explain_retention(log: Log, now_ms: int) -> list[RetentionVerdict]:
    """The verdict on every segment, oldest first. Raises StorageError, CORRUPT_MESSAGE.

    Damaged time indexes are repaired first.
    """
    segments = tuple(log.segments)
    ends = [*(segment.base_offset for segment in segments[1:]), log.log_end_offset]
    verdicts = [
        RetentionVerdict(
            base_offset=segment.base_offset,
            end_offset=end,
            size=segment.size,
            largest_timestamp=log.times.largest_timestamp_of(segment),
            is_active=segment is segments[-1],
        )
        for segment, end in zip(segments, ends, strict=True)
    ]
    taken = _taken(log, segments, now_ms)
    gone = [
        replace(verdict, taken_by=reason) for verdict, reason in zip(verdicts, taken, strict=False)
    ]
    return gone + list(_staying(log, verdicts[len(taken) :], now_ms))


def _taken(log: Log, segments: Sequence[LogSegment], now_ms: int) -> list[DeletionReason]:
    """The reasons for which the first segments are deleted, one for each."""
    remaining = list(segments)
    reasons: list[DeletionReason] = []
    for expired, reason in retention.rules(
        log.config,
        log.log_start_offset,
        lambda: sum(segment.size for segment in remaining),
        now_ms,
    ):
        doomed = retention.deletable(
            remaining,
            expired,
            high_watermark=log.high_watermark,
            log_end_offset=log.log_end_offset,
        )
        del remaining[: len(doomed)]
        reasons += [reason] * len(doomed)
    return reasons


def _staying(
    log: Log, verdicts: Sequence[RetentionVerdict], now_ms: int
) -> Iterator[RetentionVerdict]:
    """The verdicts on the segments that are kept: until when and why."""
    config = log.config
    total = sum(verdict.size for verdict in verdicts)
    passed = 0
    longest, longest_base = -1, -1
    by_size = config.delete and config.retention_bytes >= 0
    for verdict in verdicts:
        passed += verdict.size
        kept, due = _kept(log, verdict, now_ms)
        by_size = by_size and kept not in _FIXED and not verdict.is_active
        yield replace(
            verdict,
            kept=kept,
            held_back_by=longest_base if longest > due else None,
            due_ms=None if max(longest, due) == _NEVER else max(longest, due),
            bytes_to_come=config.retention_bytes + passed - total if by_size else None,
        )
        if due > longest:
            longest, longest_base = due, verdict.base_offset


def _kept(log: Log, verdict: RetentionVerdict, now_ms: int) -> tuple[Kept | None, int]:
    """The reason why a segment by itself is kept, and the time when retention.ms takes it."""
    config = log.config
    if not config.delete:
        return Kept.POLICY, _NEVER
    if verdict.is_active and not verdict.size:
        return Kept.EMPTY, _NEVER
    if verdict.end_offset > log.high_watermark:
        return Kept.HIGH_WATERMARK, _NEVER
    if config.retention_ms < 0:
        return Kept.UNLIMITED, _NEVER
    due = min(verdict.largest_timestamp + config.retention_ms + 1, _NEVER)
    return (Kept.YOUNG if due > now_ms else None), due


_FIXED: Final = (Kept.POLICY, Kept.EMPTY, Kept.HIGH_WATERMARK)
"""No rule deletes these segments, nor later ones."""
