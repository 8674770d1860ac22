"""Collects the facts that the planner needs from a log."""

from storage.cleaner.planner import LogFacts, OpenTransaction
from storage.log.log import Log


def facts_of(
    log: Log, *, checkpointed: int | None, now_ms: int, cleaner_enabled: bool = True
) -> LogFacts:
    """The facts of the log now; `checkpointed` is where its last cleaning ended, if it had one.

    The caller adds what only a running cleaner knows (state, uncleanable), and may replace the
    functions that read timestamps.
    """
    oldest = log.producers.oldest_transaction
    return LogFacts(
        segments=tuple(log.segments),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=log.last_stable_offset,
        checkpointed=checkpointed,
        config=log.config,
        now_ms=now_ms,
        open_transaction=None
        if oldest is None
        else OpenTransaction(producer_id=oldest[1], first_offset=oldest[0]),
        cleaner_enabled=cleaner_enabled,
    )
