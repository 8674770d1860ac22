"""Rates and buckets of quotas against naive ones, and the effect of throttling by them.

`tests/conformance/test_quotas_against_kafka.py` holds the same against Kafka's own classes.
"""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from broker.quotas.rate import Measured, Rate, Windows
from broker.quotas.token_bucket import TokenBucket

WINDOWS = st.builds(Windows, st.integers(1, 12), st.sampled_from((1_000, 3_000)))
PAUSES = st.one_of(
    st.integers(0, 5), st.integers(0, 2_000), st.sampled_from((999, 1_000, 1_001, 10_000, 60_000))
)
VALUES = st.one_of(st.integers(-50, 50), st.integers(0, 1 << 40))


@dataclass
class NaiveRate:
    """Every sample, the youngest last, as [start, last record, sum]."""

    windows: Windows
    samples: list[list[float]] = field(default_factory=list)

    def record(self, value: float, now: int) -> None:
        if not self.samples or now - self.samples[-1][0] >= self.windows.window_ms:
            self.samples.append([now, now, 0])
            self.samples = self.samples[-self.windows.samples - 1 :]
        self.samples[-1][1] = now
        self.samples[-1][2] += value

    def measured(self, now: int) -> Measured:
        if not self.samples:
            self.samples = [[now, now, 0]]
        oldest = now - self.windows.samples * self.windows.window_ms
        self.samples = [[now, now, 0] if one[1] <= oldest else one for one in self.samples]
        began = min(int(start) for start, _, _ in self.samples)
        whole = (now - began) // self.windows.window_ms
        missing = max(self.windows.samples - 1 - whole, 0)
        elapsed = max(now - began + missing * self.windows.window_ms, 1)
        return Measured(sum(one[2] for one in self.samples) * 1000 / elapsed, elapsed)


@given(WINDOWS, st.lists(st.tuples(PAUSES, st.booleans(), VALUES), max_size=60))
def test_s_qta_1_a_rate_is_what_a_naive_one_measures(
    windows: Windows, steps: list[tuple[int, bool, int]]
) -> None:
    now, rate, naive = 5_000, Rate(windows), NaiveRate(windows)
    for pause, measures, value in steps:
        now += pause
        if measures:
            assert rate.measured(now) == naive.measured(now)
        else:
            rate.record(value, now)
            naive.record(value, now)
    assert rate.measured(now) == naive.measured(now)


@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 100)), min_size=1, max_size=100))
def test_s_qta_3_a_client_that_waits_as_long_as_it_should_gets_no_more_than_the_quota(
    steps: list[tuple[int, int]],
) -> None:
    """A client gets the quota of all the time and of the windows before it, and up to a tenth more,
    because a rate is measured over ten windows and a part of the eleventh. The values are not worth
    many seconds: after such a value Kafka's wait ends when all is forgotten, with free windows."""
    bound, windows = 100, Windows()
    now = began = 50_000
    rate, taken = Rate(windows), 0
    for pause, value in steps:
        now += pause
        assert taken <= bound * 1.1 * ((now - began) / 1000 + windows.full_s)
        rate.record(value, now)
        taken += value
        now += rate.measured(now).over(bound)


@given(
    WINDOWS,
    st.floats(0.1, 1e6),
    st.lists(st.tuples(PAUSES, st.integers(0, 100_000)), min_size=1, max_size=60),
)
def test_s_qta_4_a_bucket_gives_while_it_is_not_overdrawn(
    windows: Windows, quota: float, steps: list[tuple[int, int]]
) -> None:
    """The bucket gives no more than it held, than came back, and than the last change."""
    now, bucket = 0, TokenBucket(windows)
    most = windows.samples * windows.window_ms / 1000 * quota
    left = most
    for pause, credits in steps:
        now += pause
        left = min(most, left + quota * pause / 1000)
        wait = bucket.throttle_ms(quota, now)
        assert abs(bucket.tokens(quota, now) - left) <= 1e-6 * max(most, abs(left))
        assert (wait > 0) == (left < 0) or abs(left) < quota / 1000
        if wait:
            assert abs(wait - -left / quota * 1000) <= 1
        else:
            bucket.spend(credits, quota, now)
            left -= credits
