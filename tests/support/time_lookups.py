"""Lookups by time, here and now."""

from storage.log.log import Log
from storage.log.results import FetchIsolation, TimestampOffset
from storage.waits import at_once


def offset_for_timestamp(
    log: Log, timestamp: int, isolation: FetchIsolation = FetchIsolation.LOG_END
) -> TimestampOffset | None:
    """Perform `Log.search_timestamp`."""
    return at_once(log.search_timestamp(timestamp, isolation))


def max_timestamp(log: Log) -> TimestampOffset | None:
    """Perform `Log.search_max_timestamp`."""
    return at_once(log.search_max_timestamp())
