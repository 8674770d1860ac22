"""Families with their samples, in the shapes that several files of this room need."""

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    SummaryMetricFamily,
    UntypedMetricFamily,
)

from storage.distribution import DistributionSnapshot

Plain = CounterMetricFamily | GaugeMetricFamily | UntypedMetricFamily
Family = Plain | SummaryMetricFamily

QUANTILES: Final = {
    "0.50": 0.5,
    "0.75": 0.75,
    "0.95": 0.95,
    "0.98": 0.98,
    "0.99": 0.99,
    "0.999": 0.999,
}
"""The JMX exporter's text of each quantile, and its value."""


def labelled(
    kind: type[Plain], name: str, text: str, label: str, values: Mapping[str, float]
) -> Family:
    """Return a family with a sample for each value of one label."""
    family = kind(name, text, labels=(label,))
    for value, number in values.items():
        family.add_metric((value,), number)
    return family


def twice(name: str, text: str, value: float) -> Iterator[Family]:
    """Yield a counter twice: under the names that Strimzi and Confluent give to `…PerSec`."""
    yield CounterMetricFamily(name, text, value=value)
    yield UntypedMetricFamily(name + "persec", text + ": the same number", value=value)


def summary(
    name: str,
    text: str,
    found: Mapping[str, DistributionSnapshot],
    label: str | None = "request",
) -> SummaryMetricFamily:
    """Return a summary in milliseconds of `found`: by value of `label`."""
    family = SummaryMetricFamily(name, text, labels=() if label is None else (label,))
    for key, snapshot in found.items():
        own = {} if label is None else {label: key}
        for quantile, value in zip(
            QUANTILES, snapshot.quantiles_s(QUANTILES.values()), strict=True
        ):
            family.add_sample(name, {**own, "quantile": quantile}, value * 1000)
        family.add_metric(tuple(own.values()), snapshot.count, snapshot.total_s * 1000)
    return family
