"""How far the sender of a Fetch or ListOffsets request may see (Kafka's `FetchIsolation.of`)."""

from typing import Final

from storage.log.results import FetchIsolation

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
"""Values of a request's `isolation_level`."""


def isolation_of(*, is_replica: bool, isolation_level: int) -> FetchIsolation:
    """A replica sees up to the log end offset, a consumer up to its isolation level (S-READ-5).

    Which ids count as replicas depends on the API: in Fetch all but negative ones, in ListOffsets
    all but -1, so that -2, a debugging tool, gets the log end offset.
    """
    if is_replica:
        return FetchIsolation.LOG_END
    if isolation_level == READ_COMMITTED:
        return FetchIsolation.TXN_COMMITTED
    return FetchIsolation.HIGH_WATERMARK
