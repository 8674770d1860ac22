"""The shipped dashboard and scrape file ask for what there is. That every query gives data from a
real Prometheus is tried by `scripts/dashboard`."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric

from broker.metrics.http_listener import parse_address
from broker.metrics.lines import Lines
from tests.support.metric_families import all_kinds

DASHBOARDS = Path(__file__).parents[4] / "dashboards"
PANELS = [
    panel
    for panel in json.loads((DASHBOARDS / "pykafkalog.json").read_text())["panels"]
    if panel["type"] != "row"
]
_LABELS_OF_A_TARGET = frozenset(("instance",))


@cache
def names_and_labels() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {
        "process_cpu_seconds_total": set(),
        "process_resident_memory_bytes": set(),
    }
    for family in all_kinds():
        if isinstance(family, Lines):
            found[family.name] = family.label_names()
            continue
        assert isinstance(family, Metric)
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
def test_every_query_asks_for_what_there_is(panel: dict[str, list[dict[str, str]]]) -> None:
    have = names_and_labels()
    for target in panel["targets"]:
        asked = re.findall(r"([a-z_]+)\{([^}]*)\}", target["expr"])
        assert asked, target["expr"]
        for name, matchers in asked:
            assert name in have, name
            labels = set(re.findall(r'(\w+)(?:=|!=|=~)"', matchers))
            assert labels <= have[name] | _LABELS_OF_A_TARGET, target["expr"]
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert shown <= have[name], target["legendFormat"]


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    taken = set()
    for panel in PANELS:
        at = panel["gridPos"]
        cells = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_the_scrape_file_asks_where_the_page_says_that_the_broker_listens() -> None:
    text = (DASHBOARDS / "prometheus.yml").read_text()
    (target,) = re.findall(r'targets: \["([^"]+)"\]', text)
    page = (DASHBOARDS.parent / "docs" / "metrics.md").read_text()
    assert f"metrics.http.listener={target}" in page
    assert parse_address(target)
