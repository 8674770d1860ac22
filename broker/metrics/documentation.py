"""Makes docs/metrics.md from the metric families; `scripts/generate-metrics-docs` calls it."""

from collections.abc import Container, Iterable, Iterator
from typing import Final

from prometheus_client.metrics_core import Metric

from broker.metrics.asked_names import ASKED, reason
from broker.metrics.lines import Lines

_HEAD: Final = """\
# Metrics

The broker tells Prometheus what it does, at `http://host:port/metrics`, where the configuration has

```properties
metrics.http.listener=127.0.0.1:9404
```

[dashboards/prometheus.yml](../dashboards/prometheus.yml) makes Prometheus ask for it, and
[dashboards/pykafkalog.json](../dashboards/pykafkalog.json) is a dashboard to import in Grafana
(Dashboards → New → Import). This is what its panels show of a broker under load
(`scripts/dashboard` starts both, and draws the picture from what Prometheus answers to the
dashboard's own queries):

![The panels of the dashboard](dashboard.png)

The names are those that the JMX exporter makes of Kafka's MBeans, by the rules of Strimzi and of
Confluent, and those of kafka_exporter, so that dashboards for Kafka work as they are. A metric
that the broker cannot answer truthfully is left out rather than 0.

* Quantiles and `…_percent`, `…_rate` are of the last minute or two, at the moment of the scrape;
  those of a request that nobody sent lately are NaN. Percentages and rates begin with the second
  scrape.
* A quantile is the upper bound of a bucket, at most a sixteenth above the truth.
* A sample per topic without the label `topic` is the sum of all topics, those that were deleted
  included.
* There are about twenty samples per partition, as many per topic, and five per group: a scrape of
  10,000 partitions has 12 MB and takes 0.2 s of processor time, one of 100,000 groups 41 MB and
  1 s. It is made in turns of a few milliseconds, so that requests do not wait for it; where there
  is so much, scrape less often.
* `kafka_server_quota_…` are there while any quota of users or client ids is set, a line for each
  client with one, at most 10,000 of each kind; those of `…connection_accept…` while new
  connections are limited. `kafka_server_plugins_…` are there while there is an authorizer.
* In a cluster only ([cluster.md](cluster.md)) there are `kafka_controller_controller…manager_…`,
  `kafka_server_sessionexpirelistener_…`, `…_zookeeperclientmetrics_…`, `…_replicafetchermanager_…`,
  `…_fetcher…`, `…_replica_fetcher_metrics_…` and `…_controller_channel_metrics_…`: alone no broker
  fetches from another, and a lag of 0 would lie.
* `process_…`, `python_gc_…` and `python_info` are those of Python's client library for Prometheus.
"""

_ASKED_HEAD: Final = """\
## What dashboards ask for

"""

_ALL_HEAD: Final = """\
## All of them

| name | type | labels | what it is |
|---|---|---|---|
"""


def render(families: Iterable[Metric | Lines]) -> str:
    """Return the page's text for the families of a scrape."""
    rows: dict[str, str] = {}
    for family in families:
        for name, labels in _samples(family).items():
            shown = ", ".join(f"`{label}`" for label in sorted(labels))
            text = family.documentation
            kind = family.kind if isinstance(family, Lines) else _kind(family)
            rows.setdefault(name, f"| `{name}` | {kind} | {shown} | {text} |\n")
    return "".join((_HEAD, "\n", *_asked(rows), _ALL_HEAD, *(rows[name] for name in sorted(rows))))


def _kind(family: Metric) -> str:
    """The family's type in the text format, which calls OpenMetrics' `unknown` `untyped`."""
    kind: str = family.type
    return "untyped" if kind == "unknown" else kind


def _samples(family: Metric | Lines) -> dict[str, set[str]]:
    """Label names by sample name. `_count` and `_sum` of a summary are left out."""
    found: dict[str, set[str]] = {}
    if isinstance(family, Lines):
        return {family.name: family.label_names()}
    for sample in family.samples:
        if family.type == "summary" and sample.name != family.name:
            continue
        found.setdefault(sample.name, set()).update(sample.labels)
    return found


def _asked(have: Container[str]) -> Iterator[str]:
    yield _ASKED_HEAD
    process = {"process_open_fds", "process_cpu_seconds_total"}
    for dashboard, names in ASKED.items():
        there = [name for name in names if name in have or name in process]
        yield f"### {dashboard}: {len(there)} of {len(names)} names\n\n"
        missing: dict[str, list[str]] = {}
        for name in names:
            if name not in there:
                missing.setdefault(reason(name), []).append(f"`{name}`")
        yield "| name | |\n|---|---|\n"
        for name in there:
            yield f"| `{name}` | yes |\n"
        for why, left in missing.items():
            for name in left:
                yield f"| {name} | no: {why} |\n"
        yield "\n"
