"""The plots of the page, as SVG without scripts, fonts or links.

Text stays text, so a topic takes some tens of kilobytes, can be searched, and is sharp at any size.
Keys and names are never parsed as formulas (`parse_math`).
"""

from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from typing import Any, Final

import matplotlib as mpl
from matplotlib import dates
from matplotlib.figure import Figure

from pipeline.showing import size_of
from pipeline.stats.tables import interval_in_words
from pipeline.stats.values import TopicStats

_DATES: Final[Any] = dates
"""Without types: matplotlib has none here."""
BLUE: Final = "#2f6db3"
ORANGE: Final = "#d9822b"
GREEN: Final = "#3d8b52"
RED: Final = "#b8403a"
GREY: Final = "#9aa3ad"
STYLE: Final[Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pykafkalog",  # equal input, equal page
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e8ebee",
    "xtick.color": "#4a5460",
    "ytick.color": "#4a5460",
}
WIDE: Final = (10.4, 2.9)
HALF: Final = (5.1, 2.9)
MOST_BARS: Final = 60
DATED: Final = range(-30_610_224_000_000, 221_845_392_000_000)
"""Years 1000 to 8999, in ms: the plot's margins, too, must be dates of Python."""
FEW_LABELS: Final = 4
"""Intervals of a horizontal axis with labels like `500.0 MB`, so that they do not overlap."""


def throughput(topic: TopicStats) -> str:
    """Plot bytes per second over time."""
    width_ms = topic.interval_ms
    times = [at for at, _, _ in topic.throughput]
    rates = [size * 1000 / width_ms for _, _, size in topic.throughput]

    def draw(axes: Any) -> None:
        axes.set_title(f"Throughput, bytes a second ({interval_in_words(width_ms)} each)")
        slow = max(rates) < 10  # bytes a second
        axes.yaxis.set_major_formatter(
            lambda value, _: f"{value:.1f} B" if slow else size_of(value)
        )
        bars: Any = {"align": "edge", "color": BLUE, "linewidth": 0}
        if not (times[0] in DATED and times[-1] in DATED):
            axes.bar([float(at) for at in times], rates, width=width_ms, **bars)
            axes.set_xlabel("milliseconds since 1970")
            return
        begins = [datetime.fromtimestamp(at / 1000, UTC) for at in times]
        axes.bar(begins, rates, width=width_ms / 86_400_000, **bars)
        ticks = _DATES.AutoDateLocator(minticks=3, maxticks=8)
        axes.xaxis.set_major_locator(ticks)
        axes.xaxis.set_major_formatter(_DATES.ConciseDateFormatter(ticks))

    return _svg(WIDE, draw)


def sizes(topic: TopicStats) -> str:
    """Plot records by size, in doubling bins."""
    bins = topic.sizes.histogram

    def draw(axes: Any) -> None:
        axes.bar(range(len(bins)), [count for _, _, count in bins], width=0.95, color=BLUE)
        axes.set_title("Records by size")
        labelled = _labelled(len(bins), 5)
        axes.set_xticks([n - 0.5 for n in labelled], [size_of(bins[n][0]) for n in labelled])
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")

    return _svg(HALF, draw)


def partitions(topic: TopicStats) -> str:
    """Plot records by partition, with the mean."""
    shown = topic.partitions[:MOST_BARS]

    def draw(axes: Any) -> None:
        axes.bar(range(len(shown)), [one.records for one in shown], color=BLUE)
        axes.axhline(topic.records / len(topic.partitions), color=ORANGE, linewidth=1.5)
        axes.set_title("Records by partition, and their mean")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        labelled = _labelled(len(shown), 12)
        axes.set_xticks(labelled, [str(shown[n].partition) for n in labelled])

    return _svg(HALF, draw)


def keys(topic: TopicStats) -> str:
    """Plot the share of the records that the busiest keys have."""
    points = topic.keys.lorenz

    def draw(axes: Any) -> None:
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
        axes.plot([x for x, _ in points], [y for _, y in points], color=BLUE, linewidth=2)
        axes.set_title("Share of the records that the busiest keys have")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.02)

    return _svg(HALF, draw)


def compaction(topic: TopicStats) -> str:
    """Plot bytes now and after compaction."""
    found = topic.compaction
    assert found is not None
    left = found.latest_bytes - found.tombstone_bytes

    def draw(axes: Any) -> None:
        rows = ("now", "compacted")
        axes.barh(rows, [left, left], color=BLUE, label="last of each key")
        dead = found.tombstone_bytes
        axes.barh(rows, [dead, dead], left=[left, left], color=ORANGE, label="tombstones")
        old = found.bytes - found.latest_bytes
        axes.barh(rows[:1], [old], left=[left + dead], color=GREY, label="older values")
        axes.invert_yaxis()
        axes.set_title(f"Compaction would save {found.saved:.1%}")
        axes.xaxis.set_major_formatter(lambda value, _: size_of(value))
        axes.locator_params(axis="x", nbins=FEW_LABELS)
        axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.15))

    return _svg(HALF, draw)


def transactions(topic: TopicStats) -> str:
    """Plot the outcomes of transactions."""
    log = topic.log
    assert log is not None
    rows = (
        ("committed", log.committed, GREEN),
        ("aborted", log.aborted, RED),
        ("open", log.open, ORANGE),
    )

    def draw(axes: Any) -> None:
        bars = axes.barh([name for name, _, _ in rows], [count for _, count, _ in rows])
        for patch, (_, _, color) in zip(bars, rows, strict=True):
            patch.set_color(color)
        axes.bar_label(bars, fmt=lambda value: f"{value:,.0f}", padding=4)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.locator_params(axis="x", nbins=FEW_LABELS)
        axes.set_title("Transactions, counted in each partition")

    return _svg(HALF, draw)


def _labelled(bars: int, most: int) -> range:
    """Return the numbers of the bars that get a label: evenly apart, and not too many."""
    return range(0, bars, -(-bars // most))


def _svg(size: tuple[float, float], draw: Callable[[Any], None]) -> str:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]
