"""The results of a run: rates and percentiles, overall and for every second."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tools.perf.measure import Measure

PERCENTILES: Final = (50.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """One interval of a run. Rates are per second; latencies are milliseconds, or None."""

    end_s: float
    records_per_s: float
    bytes_per_s: float
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run. Bytes are those of values."""

    test: str
    topic: str
    settings: Mapping[str, Any]
    """The options of the command line that the run used."""
    records: int
    size: int
    seconds: float
    failed: int
    failure: str | None
    latency_ms: Mapping[str, float]
    """`mean`, `p50` … and `max`; empty if nothing was timed."""
    latencies_ms: Any
    """All latencies as a sorted numpy array."""
    timeline: tuple[Second, ...]

    @property
    def records_per_s(self) -> float:
        """The rate over the whole run."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_s(self) -> float:
        """The rate over the whole run."""
        return self.size / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the result as one JSON document, with rounded numbers."""
        return {
            "test": self.test,
            "topic": self.topic,
            "settings": dict(self.settings),
            "records": self.records,
            "bytes": self.size,
            "failed": self.failed,
            "seconds": round(self.seconds, 3),
            "records_per_second": round(self.records_per_s, 1),
            "bytes_per_second": round(self.bytes_per_s, 1),
            "latency_ms": {name: round(value, 3) for name, value in self.latency_ms.items()},
            "timeline": [
                {
                    "seconds": round(one.end_s, 3),
                    "records_per_second": round(one.records_per_s, 1),
                    "bytes_per_second": round(one.bytes_per_s, 1),
                    "p50_ms": _rounded(one.p50_ms),
                    "p99_ms": _rounded(one.p99_ms),
                    "max_ms": _rounded(one.max_ms),
                }
                for one in self.timeline
            ],
        }


def result_of(
    measure: Measure, *, test: str, topic: str, settings: Mapping[str, Any], ended: float
) -> Result:
    """Return the result of a run that ended at `ended`, monotonic seconds."""
    import numpy as np

    if measure.is_interval_open:
        measure.end_interval(ended)
    latencies = np.array(measure.latencies, dtype=np.float32)
    timeline = []
    bounds = [interval.first_latency for interval in measure.intervals] + [len(latencies)]
    for index, interval in enumerate(measure.intervals):
        here = latencies[bounds[index] : bounds[index + 1]]
        p50, p99, most = _quantiles(here, (50.0, 99.0, 100.0)) if len(here) else (None,) * 3
        seconds = interval.seconds or 1e-9
        timeline.append(
            Second(
                end_s=interval.end_s,
                records_per_s=interval.records / seconds,
                bytes_per_s=interval.size / seconds,
                p50_ms=p50,
                p99_ms=p99,
                max_ms=most,
            )
        )
    latencies.sort()
    summary = {}
    if len(latencies):
        summary["mean"] = float(latencies.mean(dtype=np.float64))
        for percent, value in zip(PERCENTILES, _quantiles(latencies, PERCENTILES), strict=True):
            summary[f"p{percent:g}"] = value
        summary["max"] = float(latencies[-1])
    return Result(
        test=test,
        topic=topic,
        settings=settings,
        records=measure.records,
        size=measure.size,
        seconds=ended - measure.began,
        failed=measure.failed,
        failure=measure.failure,
        latency_ms=summary,
        latencies_ms=latencies,
        timeline=tuple(timeline),
    )


def _quantiles(values: Any, percents: tuple[float, ...]) -> list[float]:
    """Return percentiles that are measured values, not interpolated ones."""
    import numpy as np

    return [float(value) for value in np.percentile(values, percents, method="inverted_cdf")]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
