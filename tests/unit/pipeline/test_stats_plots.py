"""Labels of the page's plots stand apart, whatever the numbers are."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("matplotlib")

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pipeline.stats import plots
from pipeline.stats.values import Compaction, PartitionStats, TopicStats
from tests.unit.pipeline.test_stats_page import TOPIC

LEAST_GAP = 3
"""Pixels of a figure with 100 dots an inch."""


def labels_apart(
    plot: Callable[[TopicStats], str], topic: TopicStats, monkeypatch: pytest.MonkeyPatch
) -> float:
    """Draw a plot; return the least distance of two labels on its horizontal axis."""
    found: list[float] = []

    def measured(size: tuple[float, float], draw: Callable[[Any], None]) -> str:
        with mpl.rc_context(plots.STYLE):
            figure = Figure(figsize=size, layout="constrained", dpi=100)
            canvas = FigureCanvasAgg(figure)
            axes = figure.add_subplot()
            draw(axes)
            canvas.draw()
            low, high = axes.get_xlim()
            boxes = [
                tick.label1.get_window_extent()
                for tick in axes.xaxis.get_major_ticks()
                if tick.label1.get_text() and low <= tick.get_loc() <= high
            ]
            assert len(boxes) > 1
            found.extend(after.x0 - before.x1 for before, after in pairwise(boxes))
        return ""

    monkeypatch.setattr(plots, "_svg", measured)
    plot(topic)
    return min(found)


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 10**9, 10**12])
@pytest.mark.parametrize(
    "number", [1, 1.3, 1.7, 2.1, 3.4, 3.6, 4.5, 5, 6.8, 8.2, 9.99, 34, 350, 999]
)
def test_compaction(number: float, unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    size = max(int(number * unit), 4)
    found = Compaction(
        records=9,
        bytes=size,
        latest=5,
        latest_bytes=size // 2,
        tombstones=1,
        tombstone_bytes=size // 4,
        without_key=0,
    )
    topic = replace(TOPIC, compaction=found)
    assert labels_apart(plots.compaction, topic, monkeypatch) >= LEAST_GAP


@pytest.mark.parametrize("bins", [2, 3, 5, 6, 7, 8, 11, 12, 13, 17, 18, 21, 24])
def test_sizes(bins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    histogram = tuple((2**n, 2 ** (n + 1), n) for n in range(bins))
    topic = replace(TOPIC, sizes=replace(TOPIC.sizes, histogram=histogram))
    assert labels_apart(plots.sizes, topic, monkeypatch) >= LEAST_GAP


@pytest.mark.parametrize("count", [2, 10, 12, 16, 17, 30, 59, 60, 61, 300])
def test_partitions(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one: PartitionStats = TOPIC.partitions[0]
    topic = replace(TOPIC, partitions=tuple(replace(one, partition=n) for n in range(count)))
    assert labels_apart(plots.partitions, topic, monkeypatch) >= LEAST_GAP


@pytest.mark.parametrize("intervals", [1, 2, 7, 24, 60, 200])
@pytest.mark.parametrize("width_ms", [1_000, 60_000, 3_600_000, 86_400_000, 30 * 86_400_000])
def test_throughput(intervals: int, width_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = 1_700_000_000_000
    rows = tuple((begin + n * width_ms, 1, n + 1) for n in range(intervals))
    topic = replace(TOPIC, interval_ms=width_ms, throughput=rows)
    assert labels_apart(plots.throughput, topic, monkeypatch) >= LEAST_GAP


@pytest.mark.parametrize("most", [1, 9, 99, 4_321, 123_456, 9_999_999])
def test_transactions(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert TOPIC.log is not None
    topic = replace(TOPIC, log=replace(TOPIC.log, committed=most, aborted=most // 3))
    assert labels_apart(plots.transactions, topic, monkeypatch) >= LEAST_GAP


@pytest.mark.parametrize(
    ("times", "is_dated"),
    [
        ((0, 60_000), True),
        ((plots.DATED.start, plots.DATED.stop - 1), True),
        ((plots.DATED.start - 1, 0), False),
        ((0, plots.DATED.stop), False),
        ((-(2**63), 2**63 - 1), False),
        ((1_795_803_382_261_000, 1_795_803_382_262_000), False),
    ],
)
def test_any_times_have_a_plot(times: tuple[int, int], is_dated: bool) -> None:
    """Python's dates, and so a plot's, end with the year 9999."""
    width = max((times[1] - times[0]) // 100, 1)
    topic = replace(TOPIC, interval_ms=width, throughput=tuple((at, 1, 9) for at in times))
    assert ("milliseconds since 1970" in plots.throughput(topic)) is not is_dated
