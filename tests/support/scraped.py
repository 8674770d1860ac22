"""The metrics as Prometheus reads them: the value of each series, by name and labels."""

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from broker.metrics.exposition import render
from broker.metrics.families import all_families
from storage.waits import at_once
from tests.support.metric_sources import sources

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def at(**labels: str) -> tuple[tuple[str, str], ...]:
    """Labels as they stand in `Series`."""
    return tuple(sorted(labels.items()))


def parse(text: bytes) -> Series:
    return {
        (sample.name, at(**sample.labels)): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def read(families: Any) -> Series:
    return parse(b"".join(at_once(render(families))))


def scraped(**changes: Any) -> Series:
    """All series of a broker whose sources have changed so."""
    return read(at_once(all_families(sources(**changes))))
