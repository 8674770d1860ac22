"""Percentiles, histograms and inequality are those of the values that the counts stand for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.stats.distribution import (
    INTERVALS,
    MOST_INTERVALS,
    gini,
    histogram,
    interval_ms,
    lorenz,
    percentile,
    sizes_of,
)


def counted(values: list[int]) -> list[tuple[int, int]]:
    return sorted((value, values.count(value)) for value in set(values))


values = st.lists(st.integers(0, 200), min_size=1, max_size=60)
positive = st.lists(st.integers(1, 40), min_size=1, max_size=40)


@given(values, st.sampled_from([1, 50, 90, 99, 100]))
def test_a_percentile_is_the_value_at_its_rank(sizes: list[int], percent: int) -> None:
    rank = math.ceil(len(sizes) * percent / 100)
    assert percentile(counted(sizes), percent) == sorted(sizes)[rank - 1]


@given(values)
def test_a_histogram_has_each_value_in_the_bin_that_holds_it(sizes: list[int]) -> None:
    bins = histogram(counted(sizes))
    assert sum(count for _, _, count in bins) == len(sizes)
    for low, high, count in bins:
        assert count == sum(low <= size < high for size in sizes)
    assert bins[0][2] and bins[-1][2]


@given(positive)
def test_gini_is_the_mean_difference_of_two_keys(records: list[int]) -> None:
    """Its definition: half the mean absolute difference, relative to the mean."""
    number, total = len(records), sum(records)
    differences = sum(abs(a - b) for a in records for b in records)
    assert gini(counted(records)) == pytest.approx(differences / (2 * number * total))


@given(positive)
def test_the_curve_gives_the_busiest_keys_at_least_their_share(records: list[int]) -> None:
    points = lorenz(counted(records))
    assert points[0] == (0, 0)
    assert points[-1] == (1, 1)
    assert points == tuple(sorted(points))
    assert all(y >= x - 1e-12 for x, y in points)


def test_one_key_with_nearly_all_records_is_unequal() -> None:
    assert gini([(7, 100)]) == pytest.approx(0)
    assert gini([(1, 99), (9901, 1)]) == pytest.approx(0.98, abs=0.001)
    assert (0.01, 0.9901) in lorenz([(1, 99), (9901, 1)])


@given(st.integers(0, 10**13))
def test_there_are_not_too_many_intervals_and_no_finer_one_would_do(span: int) -> None:
    width = interval_ms(5, 5 + span)
    assert span / width <= MOST_INTERVALS
    finer = [s * 1000 for s in INTERVALS if s * 1000 < width]
    if finer:
        assert span / finer[-1] > MOST_INTERVALS


def test_sizes_sum_up() -> None:
    sizes = sizes_of([(0, 1), (10, 8), (100, 1)], total_bytes=180)
    assert (sizes.smallest, sizes.mean, sizes.largest) == (0, 18, 100)
    assert (sizes.p50, sizes.p90, sizes.p99) == (10, 10, 100)
