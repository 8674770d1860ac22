"""What the cleaner would do with a log now, and why not (S-CMP-1, S-CMP-2).

The verdict is the planner's (`storage.cleaner.planner`). What only a running broker knows is not in
it: that a cleaner is at it, or that the partition is held back, or given up until the next start.
"""

from dataclasses import dataclass

from storage.cleaner.planner import LogFacts, OpenTransaction, Verdict, judged
from storage.explain.opened import OpenedLog
from storage.log.log import Log
from storage.log.scan import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningVerdict:
    """Of one log. Offsets are absolute."""

    verdict: Verdict
    log_start_offset: int
    log_end_offset: int
    size: int
    """Bytes of all segments."""
    checkpointed: int | None
    """Where the last cleaning ended; None: it was never cleaned."""


def explain_cleaning(
    opened: OpenedLog, now_ms: int, *, cleaner_enabled: bool = True
) -> CleaningVerdict:
    """What the planner says. May read time indexes. Raises OSError, IndexInDoubt."""
    log = opened.log
    facts = LogFacts(
        segments=tuple(log.segments),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=log.last_stable_offset,
        checkpointed=opened.first_dirty_offset,
        config=log.config,
        now_ms=now_ms,
        open_transaction=_open_transaction(log),
        cleaner_enabled=cleaner_enabled,
    )
    return CleaningVerdict(
        verdict=judged(facts),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        size=log.size,
        checkpointed=opened.first_dirty_offset,
    )


def _open_transaction(log: Log) -> OpenTransaction | None:
    """The oldest one, and when its first record was written."""
    oldest = log.producers.oldest_transaction
    if oldest is None:
        return None
    first_offset, producer_id = oldest
    return OpenTransaction(
        producer_id=producer_id,
        first_offset=first_offset,
        since_ms=_timestamp_at(log, first_offset),
    )


def _timestamp_at(log: Log, offset: int) -> int | None:
    """Of the first record of the batch that holds `offset`, if it is still there."""
    segment = log.segments.floor(offset)
    found = None if segment is None else segment.find_for_sure(offset)
    if segment is None or found is None:
        return None
    for _, header, _, _ in Walk(segment.file, found.position, segment.size):
        return header.base_timestamp if header.base_offset <= offset else None
    return None
