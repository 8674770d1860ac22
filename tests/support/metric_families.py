"""The metric families that a broker can have, and the page about them."""

from prometheus_client.metrics_core import Metric

from broker.metrics.documentation import render
from broker.metrics.families import all_families
from broker.metrics.lines import Lines
from broker.metrics.recent import Recent
from storage.waits import at_once
from tests.support.metric_sources import sources


def all_kinds() -> list[Metric | Lines]:
    """Return one family of each kind, as of a second scrape, which has rates too."""
    now = 0.0
    recent = Recent(lambda: now)
    at_once(all_families(sources(recent=recent)))
    now = 1.0
    return at_once(all_families(sources(recent=recent)))


def page() -> str:
    """Return docs/metrics.md as it should be."""
    return render(all_kinds())
