"""A result as a picture: rates over time, latencies over time, and their distribution."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tools.errors import CommandError
from tools.perf.results import Result

FORMATS: Final = (".svg", ".png")
_MEGA: Final = 1_000_000


def require_plot(path: Path) -> None:
    """Raise CommandError before the run if its plot could not be drawn."""
    if path.suffix.lower() not in FORMATS:
        raise CommandError(f"--plot {path}: the name ends with .svg or .png")
    if not path.resolve().parent.is_dir():
        raise CommandError(f"--plot {path}: there is no directory {path.parent}")
    if find_spec("matplotlib") is None:
        raise CommandError("--plot needs matplotlib: python -m pip install 'pykafkalog[plot]'")


def draw(result: Result, path: Path) -> None:
    """Draw the result to a file. Raises CommandError if the file cannot be written."""
    from matplotlib.figure import Figure

    timed = len(result.latencies_ms) > 0
    figure = Figure(figsize=(9, 8 if timed else 3.5), layout="constrained")
    axes = figure.subplots(3 if timed else 1, squeeze=False)[:, 0]
    figure.suptitle(
        f"{result.test} {result.topic}: {result.records:,} records, "
        f"{result.records_per_s:,.0f}/s, {result.bytes_per_s / _MEGA:,.1f} MB/s"
    )
    _draw_rates(axes[0], result)
    if timed:
        _draw_latencies(axes[1], result)
        _draw_distribution(axes[2], result)
    try:
        figure.savefig(path)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None


def _draw_rates(axis: Any, result: Result) -> None:
    times = [second.end_s for second in result.timeline]
    axis.plot(times, [second.bytes_per_s / _MEGA for second in result.timeline], marker=".")
    axis.set(xlabel="seconds", ylabel="MB/s", ylim=(0, None), xlim=(0, None))
    records = axis.twinx()
    records.plot(times, [second.records_per_s for second in result.timeline], marker=".", alpha=0)
    records.set(ylabel="records/s", ylim=(0, None))
    axis.grid(alpha=0.3)


def _draw_latencies(axis: Any, result: Result) -> None:
    times = [second.end_s for second in result.timeline]
    for name in ("p50_ms", "p99_ms", "max_ms"):
        values = [getattr(second, name) or float("nan") for second in result.timeline]
        axis.plot(times, values, marker=".", label=name.removesuffix("_ms"))
    axis.set(xlabel="seconds", ylabel="latency, ms", yscale="log", xlim=(0, None))
    _write_plainly(axis)
    axis.legend(loc="upper right")
    axis.grid(alpha=0.3)


def _draw_distribution(axis: Any, result: Result) -> None:
    """Draw latency by percentile, on an axis that widens the tail (50, 90, 99, 99.9)."""
    import numpy as np

    latencies = result.latencies_ms
    shares = 1 - 1 / np.geomspace(1, max(len(latencies), 2), 200)
    at = np.minimum((shares * len(latencies)).astype(int), len(latencies) - 1)
    axis.plot(1 / (1 - shares), latencies[at])
    ticks = [count for count in (1, 2, 10, 100, 1000, 10_000) if count <= len(latencies)]
    axis.set(xlabel="percentile", ylabel="latency, ms", xscale="log", yscale="log")
    axis.set_xticks(ticks, [f"{100 * (1 - 1 / count):g}" for count in ticks])
    axis.set_xticks([], minor=True)
    _write_plainly(axis)
    axis.grid(alpha=0.3)


def _write_plainly(axis: Any) -> None:
    """Label a logarithmic axis with numbers such as 0.5 and 20, not powers of ten."""
    from matplotlib.ticker import FormatStrFormatter, NullFormatter

    axis.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    axis.yaxis.set_minor_formatter(NullFormatter())
