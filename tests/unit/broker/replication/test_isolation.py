"""The offset up to which a replica or a consumer may read (S-READ-5)."""

import pytest

from broker.replication.isolation import READ_COMMITTED, READ_UNCOMMITTED, isolation_of
from storage.log.results import FetchIsolation


@pytest.mark.parametrize("level", [READ_UNCOMMITTED, READ_COMMITTED])
def test_a_replica_sees_up_to_the_log_end_offset_whatever_it_says(level: int) -> None:
    assert isolation_of(is_replica=True, isolation_level=level) is FetchIsolation.LOG_END


def test_a_consumer_sees_what_its_isolation_level_says() -> None:
    assert (
        isolation_of(is_replica=False, isolation_level=READ_UNCOMMITTED)
        is FetchIsolation.HIGH_WATERMARK
    )
    assert (
        isolation_of(is_replica=False, isolation_level=READ_COMMITTED)
        is FetchIsolation.TXN_COMMITTED
    )
