"""Lookups by time, here and now."""

from storage.log.log import Log
from storage.log.results import FetchIsolation, TimestampOffset
from storage.waits import at_once


def offset_for_timestamp(
    log: Log, timestamp: int, isolation: FetchIsolation = FetchIsolation.LOG_END
) -> TimestampOffset | None:
    """Perform `TimeLookups.search`."""
    return at_once(log.times.search(timestamp, isolation))


def max_timestamp(log: Log) -> TimestampOffset | None:
    """Perform `TimeLookups.search_latest`."""
    return at_once(log.times.search_latest())
