"""Metric families of what this broker copies from others and asks of them; only in a cluster.

`kafka_server_replicafetchermanager_…`, `kafka_server_fetcherstats_…` and
`kafka_server_fetcherlagmetrics_…`, by the names of the JMX exporter. MinFetchRate is that of
Kafka's: the least rate of fetches of any fetcher. `…_replica_fetcher_metrics_…` and
`…_controller_channel_metrics_…` are of the connections (Kafka's `replica-fetcher-metrics`,
`controller-channel-metrics`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from broker.metrics.lines import Lines, labels
from broker.metrics.recent import Recent
from broker.metrics.samples import Family
from broker.peers.traffic import PeerTraffic
from broker.replication.fetching.statistics import FetcherStatistics, FetchingStatistics
from storage.waits import PAUSE


def _client(fetcher: FetcherStatistics) -> str:
    """Kafka's client id of a fetcher."""
    return f"ReplicaFetcherThread-{fetcher.number}-{fetcher.leader}"


async def replication_families(
    statistics: FetchingStatistics | None, recent: Recent
) -> "list[CounterMetricFamily | GaugeMetricFamily | Lines]":
    """Return the families; none stand-alone."""
    if statistics is None:
        return []
    prefix = "kafka_server_replicafetchermanager_"
    families: list[CounterMetricFamily | GaugeMetricFamily | Lines] = [
        GaugeMetricFamily(
            prefix + "maxlag",
            "The most records that a partition copied here is behind its leader's high watermark",
            value=statistics.max_lag,
        ),
        GaugeMetricFamily(
            prefix + "failedpartitionscount",
            "Partitions that are not copied until the controller tells anew",
            value=len(statistics.failed),
        ),
    ]
    requests = CounterMetricFamily(
        "kafka_server_fetcherstats_requests", "Fetches sent to leaders", labels=("clientId",)
    )
    size = CounterMetricFamily(
        "kafka_server_fetcherstats_bytes", "Bytes of records copied", labels=("clientId",)
    )
    lag = Lines(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "gauge",
        "Records that a partition is behind its leader's high watermark",
    )
    rates: list[float] = []
    for fetcher in statistics.fetchers:
        client = _client(fetcher)
        requests.add_metric((client,), fetcher.requests)
        size.add_metric((client,), fetcher.bytes)
        rate = recent.rate("fetcher", client, total=fetcher.requests)
        if rate is not None:
            rates.append(rate)
        for (topic, index), behind in fetcher.lags.items():
            lag.add(labels(clientId=client, topic=topic, partition=str(index)), max(behind, 0))
            await PAUSE
    if rates:
        text = "Fetches per second of the fetcher that makes the fewest"
        families.append(GaugeMetricFamily(prefix + "minfetchrate", text, value=min(rates)))
    return [*families, requests, size, lag]


_FETCHER: Final = re.compile("broker-[0-9]+-fetcher-([0-9]+)")
_CONTROLLER: Final = re.compile("controller-[0-9]+")
"""The client ids of the connections that Kafka has metrics of."""
_TRAFFIC: Final = (
    (GaugeMetricFamily, "connection_count", "connections", "connected"),
    (CounterMetricFamily, "connection_creation", "connections that were made", "connections"),
    (CounterMetricFamily, "request", "requests sent", "requests"),
    (CounterMetricFamily, "outgoing_byte", "bytes of requests sent", "bytes_out"),
    (CounterMetricFamily, "incoming_byte", "bytes of answers received", "bytes_in"),
)


def connection_families(traffic: Mapping[tuple[str, int], PeerTraffic]) -> Iterator[Family]:
    """Yield those of the connections to other brokers, by client id and broker."""
    fetchers: list[tuple[tuple[str, ...], PeerTraffic]] = []
    channels: list[tuple[tuple[str, ...], PeerTraffic]] = []
    for (client_id, broker_id), counted in traffic.items():
        if (fetcher := _FETCHER.fullmatch(client_id)) is not None:
            fetchers.append(((str(broker_id), fetcher[1]), counted))
        elif _CONTROLLER.fullmatch(client_id) is not None:
            channels.append(((str(broker_id),), counted))
    for group, names, ends, samples in (
        ("replica_fetcher", ("broker_id", "fetcher_id"), "A fetcher and a leader", fetchers),
        ("controller_channel", ("broker_id",), "The controller and a broker", channels),
    ):
        for kind, name, text, attribute in _TRAFFIC:
            family = kind(f"kafka_server_{group}_metrics_{name}", f"{ends}: {text}", labels=names)
            for values, counted in samples:
                family.add_metric(values, getattr(counted, attribute))
            yield family
