"""The cleaner's next action on a log, or the reason why there is none (S-CMP-1, S-CMP-2).

The verdict is the planner's (`storage.cleaner.planner`), without what only a running broker knows:
that the partition is being cleaned, is paused, or is uncleanable until the next start.
"""

from dataclasses import dataclass, replace

from protocol.records.errors import RecordsError
from storage.cleaner.log_facts import facts_of
from storage.cleaner.planner import OpenTransaction, Verdict, judge
from storage.explain.opened import OpenedLog
from storage.log.log import Log
from storage.log.scan import Walk
from storage.waits import at_once


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningVerdict:
    """The verdict on one log. Offsets are absolute."""

    verdict: Verdict
    log_start_offset: int
    log_end_offset: int
    size: int
    """Bytes of all segments."""
    checkpointed: int | None
    """The offset at which the last cleaning ended; None: the log was never cleaned."""


def explain_cleaning(
    opened: OpenedLog, now_ms: int, *, cleaner_enabled: bool = True
) -> CleaningVerdict:
    """The planner's verdict. May read time indexes, and repair them.

    Raises OSError, StorageError, CORRUPT_MESSAGE.
    """
    log = opened.log
    facts = replace(
        facts_of(
            log,
            checkpointed=opened.first_dirty_offset,
            now_ms=now_ms,
            cleaner_enabled=cleaner_enabled,
        ),
        largest_timestamp_of=log.times.largest_timestamp_of,
        first_timestamp_of=log.times.first_timestamp_of,
    )
    if facts.open_transaction is not None:
        facts = replace(facts, open_transaction=_dated(facts.open_transaction, log))
    return CleaningVerdict(
        verdict=at_once(judge(facts)),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        size=log.size,
        checkpointed=opened.first_dirty_offset,
    )


def _dated(transaction: OpenTransaction, log: Log) -> OpenTransaction:
    """The transaction with the time when its first record was written."""
    return replace(transaction, since_ms=_timestamp_at(log, transaction.first_offset))


def _timestamp_at(log: Log, offset: int) -> int | None:
    """The timestamp of the first record of the batch that holds `offset`, if that can be read."""
    segment = log.segments.floor(offset)
    try:
        found = None if segment is None else segment.find_for_sure(offset)
    except RecordsError:
        return None
    if segment is None or found is None:
        return None
    for _, header, _, _ in Walk(segment.file, found.position, segment.size):
        return header.base_timestamp if header.base_offset <= offset else None
    return None
