"""What the planner wants to know of a log, asked of the log itself."""

from storage.cleaner.planner import LogFacts, OpenTransaction
from storage.log.log import Log


def facts_of(
    log: Log, *, checkpointed: int | None, now_ms: int, cleaner_enabled: bool = True
) -> LogFacts:
    """As the log is now; `checkpointed` is where its last cleaning ended (None: there was none).

    What only a running cleaner knows (state, uncleanable) and where timestamps are read from is for
    the caller to replace.
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
