"""Percentiles, histograms and inequality, each from (value, how many) pairs: small, exact tables.

Pure functions; what counts is Spark's work.
"""

from collections.abc import Sequence
from typing import Final

from pipeline.stats.values import Sizes

EXACT_UP_TO: Final = 16_384
"""Larger sizes are counted together with those within 0.4 % of them: the table stays small."""
STEPS: Final = 256
INTERVALS: Final = (
    *(1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600),
    *(86_400, 7 * 86_400, 28 * 86_400),
)
"""Seconds that an interval of the throughput may have."""
MOST_INTERVALS: Final = 120
LORENZ_POINTS: Final = 50

Counts = Sequence[tuple[int, int]]
"""(value, how often), ascending."""


def sizes_of(counts: Counts, total_bytes: int) -> Sizes:
    """Percentiles are of the nearest rank: a size that a record has."""
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
    """The smallest value that at least `percent` of all are no larger than."""
    number = sum(count for _, count in counts)
    left = -(-number * percent // 100)
    for value, count in counts:
        left -= count
        if left <= 0:
            return value
    raise ValueError("no counts")


def histogram(counts: Counts) -> tuple[tuple[int, int, int], ...]:
    """Bins that double, from the one of the smallest to the one of the largest."""
    bins: dict[int, int] = {}
    for value, count in counts:
        exponent = value.bit_length()
        bins[exponent] = bins.get(exponent, 0) + count
    return tuple(
        (1 << exponent >> 1, 1 << exponent, bins.get(exponent, 0))
        for exponent in range(min(bins), max(bins) + 1)
    )


def gini(counts: Counts) -> float:
    """Of a table (records of a key, keys that have so many): 0 equal, towards 1 all in one.

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
    """(share of the keys, share of the records), the busiest keys first, from (0, 0) to (1, 1)."""
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
    """The finest interval that gives at most MOST_INTERVALS of them."""
    span = last_ms - first_ms
    for seconds in INTERVALS:
        if span <= seconds * 1000 * MOST_INTERVALS:
            return seconds * 1000
    return -(-span // MOST_INTERVALS)
