"""Prints a result as lines for a person, with a small picture on a terminal.

    100,000 records, 100.0 MB in 1.3 s
    76,923 records/s, 76.9 MB/s
    latency ms  mean 4.10  p50 3.24  p95 9.07  p99 15.10  p99.9 22.04  max 105

The picture has the rate of each second and a histogram of latencies. Without a terminal there are
only the lines, with numbers without separators.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from config.terminal import unshown
from tools.magnitudes import size_of
from tools.perf.measure import Interval
from tools.perf.results import Result
from tools.tables import number

_BARS: Final = "▁▂▃▄▅▆▇█"
_WIDTH: Final = 60
_BINS: Final = 10


def lines(result: Result, *, picture: bool) -> Iterator[str]:
    """Yield the lines to print."""
    size = size_of(result.size) if picture else f"{result.size} B"
    rate = size_of(int(result.bytes_per_s)) if picture else f"{result.bytes_per_s:.0f} B"
    yield f"{number(result.records)} records, {size} in {result.seconds:.2f} s"
    yield f"{number(round(result.records_per_s))} records/s, {rate}/s"
    if result.latency_ms:
        values = "  ".join(f"{name} {_short(value)}" for name, value in result.latency_ms.items())
        yield f"latency ms  {values}"
    if picture:
        yield from _picture(result)


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _picture(result: Result) -> Iterator[str]:
    rates = [second.records_per_s for second in result.timeline]
    if len(rates) > 1:
        yield ""
        yield f"records/s    {spark(rates)}  up to {max(rates):,.0f}"
        tails = [second.p99_ms or 0.0 for second in result.timeline]
        if any(tails):
            yield f"p99 ms       {spark(tails)}  up to {max(tails):,.1f}"
    if len(result.latencies_ms) > 1:
        yield ""
        yield from _histogram(result.latencies_ms)


def spark(values: Sequence[float]) -> str:
    """Return a row of bars, from 0 to the largest value; too many values are averaged in groups."""
    import numpy as np

    shown = [float(part.mean()) for part in np.array_split(values, min(len(values), _WIDTH // 2))]
    most = max(shown) or 1.0
    return "".join(_BARS[min(int(value / most * len(_BARS)), len(_BARS) - 1)] for value in shown)


def _histogram(latencies: Any) -> Iterator[str]:
    """Yield a line per bin; the bounds grow by a constant factor, from least to largest."""
    import numpy as np

    low, high = max(float(latencies[0]), 1e-3), max(float(latencies[-1]), 2e-3)
    bounds = np.geomspace(low, high * 1.0001, _BINS + 1)
    counts, _ = np.histogram(np.maximum(latencies, low), bounds)
    for bound, count in zip(bounds[1:], counts, strict=True):
        bar = "█" * round(int(count) / int(counts.max()) * 40)
        yield f"  up to {bound:9.2f} ms  {int(count):>10,}  {bar}".rstrip()


class Progress:
    """One line on standard error about the last second, if that is a terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._written = False

    def tell(self, interval: Interval) -> None:
        """Show an interval that is over."""
        if self._shown:
            rate = interval.records / interval.seconds
            size = size_of(int(interval.size / interval.seconds))
            text = f"{interval.end_s:6.0f} s   {rate:,.0f} records/s   {size}/s"
            print(f"\r{text:<70}", end="", file=unshown(sys.stderr), flush=True)
            self._written = True

    def end(self) -> None:
        """Erase the line."""
        if self._written:
            print("\r" + " " * 70 + "\r", end="", file=unshown(sys.stderr), flush=True)
