"""Durations counted into buckets: quantiles, windows, and what is lost when nobody counts."""

import math
from random import Random

import pytest

from storage.distribution import KEPT, WINDOW_S, Distribution

QUANTILES = (0.5, 0.95, 0.99, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_quantile_is_at_most_a_sixteenth_above_the_truth(seed: int) -> None:
    random = Random(seed)
    values = [random.lognormvariate(-7, 2) for _ in range(1000)]
    distribution = Distribution()
    for value in values:
        distribution.note(value)
    found = distribution.snapshot(1.0)
    values.sort()
    for quantile, bound in zip(QUANTILES, found.quantiles_s(QUANTILES), strict=True):
        truth = values[math.ceil(quantile * len(values)) - 1]
        assert truth < bound <= truth * 1.0625
    assert found.count == found.recent == 1000
    assert found.total_s == pytest.approx(sum(values))


def test_what_is_older_than_two_windows_is_in_no_quantile() -> None:
    distribution = Distribution()
    distribution.note(1.0)
    distribution.fold(0.0)
    distribution.note(0.001)
    second = distribution.snapshot(WINDOW_S)
    assert (second.recent, second.count) == (2, 2)
    third = distribution.snapshot(2 * WINDOW_S)
    assert (third.recent, third.count) == (1, 2)
    assert third.quantiles_s([1.0])[0] < 0.002
    assert distribution.snapshot(3 * WINDOW_S).recent == 0


def test_after_a_long_silence_nothing_is_recent() -> None:
    distribution = Distribution()
    distribution.note(1.0)
    distribution.fold(0.0)
    later = distribution.snapshot(10 * WINDOW_S)
    assert (later.recent, later.count, later.total_s) == (0, 1, 1.0)
    assert math.isnan(later.quantiles_s([0.5])[0])


def test_zeros_and_very_long_times_have_a_bucket() -> None:
    distribution = Distribution()
    distribution.note(0.0)
    distribution.note(-1e-9)  # clocks of two threads
    distribution.note(1e9)
    distribution.note_many(0.0, 7, 0.0)
    found = distribution.snapshot(0.0)
    assert found.recent == found.count == 10
    low, high = found.quantiles_s([0.5, 1.0])
    assert low < 1e-6
    assert high > 3600


def test_what_nobody_counts_is_bounded() -> None:
    distribution = Distribution()
    for _ in range(KEPT + 10):
        distribution.note(1.0)
    assert distribution.snapshot(0.0).count == KEPT
