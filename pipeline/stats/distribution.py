"""Percentiles, histograms and inequality, each from a small table of (value, count) pairs.

Pure functions; Spark makes the counts.
"""

from collections.abc import Sequence
from typing import Final

from pipeline.stats.values import Sizes

EXACT_UP_TO: Final = 16_384
"""Larger sizes are rounded within 0.4 % before they are counted, so that the table stays small."""
STEPS: Final = 256
INTERVALS: Final = (
    *(1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600),
    *(86_400, 7 * 86_400, 28 * 86_400),
)
"""Possible lengths of an interval of the throughput, in seconds."""
MOST_INTERVALS: Final = 120
LORENZ_POINTS: Final = 50

Counts = Sequence[tuple[int, int]]
"""(value, count) pairs, ascending by value."""


def sizes_of(counts: Counts, total_bytes: int) -> Sizes:
    """Return statistics of sizes; percentiles are by nearest rank, so each is a record's size."""
    number = sum(count for _, count in counts)
    return Sizes(
        smallest=counts[0][0],
        mean=total_bytes / number,
        p50=percentile(counts, 50),
        p90=percentile(counts, 90),
        p99=percentile(counts, 99),
        largest=counts[-1][0],
        histogram=histogram(counts),
    )


def percentile(counts: Counts, percent: int) -> int:
    """Return the smallest value v such that at least `percent` of all values are at most v."""
    number = sum(count for _, count in counts)
    left = -(-number * percent // 100)
    for value, count in counts:
        left -= count
        if left <= 0:
            return value
    raise ValueError("no counts")


def histogram(counts: Counts) -> tuple[tuple[int, int, int], ...]:
    """Return bins that double, from that of the smallest to that of the largest value."""
    bins: dict[int, int] = {}
    for value, count in counts:
        exponent = value.bit_length()
        bins[exponent] = bins.get(exponent, 0) + count
    return tuple(
        (1 << exponent >> 1, 1 << exponent, bins.get(exponent, 0))
        for exponent in range(min(bins), max(bins) + 1)
    )


def gini(counts: Counts) -> float:
    """Return the Gini coefficient of (records per key, number of keys): 0 if equal, at most 1.

    Twice the area between the Lorenz curve and the line of equality.
    """
    keys = sum(count for _, count in counts)
    records = sum(value * count for value, count in counts)
    area = 0.0
    below = 0
    for value, count in counts:
        here = value * count
        area += count * (below + here / 2)
        below += here
    return 1 - 2 * area / (keys * records)


def lorenz(counts: Counts) -> tuple[tuple[float, float], ...]:
    """Return (share of keys, share of records), busiest keys first, from (0, 0) to (1, 1)."""
    keys = sum(count for _, count in counts)
    records = sum(value * count for value, count in counts)
    points = [(0.0, 0.0)]
    keys_so_far = records_so_far = 0
    for value, count in reversed(counts):
        keys_so_far += count
        records_so_far += value * count
        points.append((keys_so_far / keys, records_so_far / records))
    step = max(1, len(points) // LORENZ_POINTS)
    return (*points[:-1:step], points[-1])


def interval_ms(first_ms: int, last_ms: int) -> int:
    """Return the shortest interval of which at most MOST_INTERVALS cover the span."""
    span = last_ms - first_ms
    for seconds in INTERVALS:
        if span <= seconds * 1000 * MOST_INTERVALS:
            return seconds * 1000
    return -(-span // MOST_INTERVALS)
