"""The session with ZooKeeper, of a member of a cluster. Imported in a cluster only."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily

from broker.metrics.samples import Family, labelled, summary, twice
from broker.zookeeper.zookeeper_store import ZooKeeperStatistics

_SESSION: Final = "kafka_server_sessionexpirelistener_"
_CLIENT: Final = "kafka_server_zookeeperclientmetrics_"


def zookeeper_families(found: ZooKeeperStatistics) -> Iterator[Family]:
    """Return the families of the session."""
    yield labelled(
        GaugeMetricFamily,
        _SESSION + "sessionstate",
        "1: the session is in this state",
        "state",
        {one.name: int(one is found.state) for one in type(found.state)},
    )
    for name, text, value in (
        ("syncconnects", "Connections to ZooKeeper", found.times_connected),
        ("disconnects", "Connections to ZooKeeper that were lost", found.times_suspended),
        ("expires", "Sessions that ZooKeeper has ended", found.times_expired),
    ):
        yield from twice(f"{_SESSION}zookeeper{name}", text, value)
    yield GaugeMetricFamily(
        _CLIENT + "requestsinflight", "Requests to ZooKeeper under way", value=found.in_flight
    )
    yield summary(
        _CLIENT + "zookeeperrequestlatencyms",
        "Time that requests to ZooKeeper took, ms",
        {"": found.latencies},
        None,
    )
