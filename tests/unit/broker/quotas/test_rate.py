"""Rates and buckets at their ends; what lies between is held by tests/property."""

import pytest

from broker.quotas.rate import Measured, Windows
from broker.quotas.token_bucket import TokenBucket

LONGEST_MS = 2147483647
WINDOWS = Windows(samples=3, window_ms=1_000)


@pytest.mark.parametrize(
    ("rate", "bound", "ms"),
    [
        (10.0, 10.0, 0),
        (10.01, 10.0, 2),
        (20.0, 10.0, 2_000),
        (1e30, 1.0, LONGEST_MS),
        (1.0, 0.0, LONGEST_MS),
    ],
)
def test_s_qta_1_a_throttle_time_is_what_an_answer_can_tell(
    rate: float, bound: float, ms: int
) -> None:
    assert Measured(rate, 2_000).over(bound) == ms


def test_s_qta_4_a_bucket_that_is_not_overdrawn_throttles_nobody() -> None:
    bucket = TokenBucket(WINDOWS)
    for spent, ms in ((5.5, 0), (0.5, 0), (0.5, 250), (1e30, LONGEST_MS)):
        bucket.spend(spent, 2, 0)
        assert bucket.throttle_ms(2, 0) == ms
