"""Clients with a quota: what they take, for how long they are throttled (S-QTA-9).

Kafka's MBeans are `kafka.server:type=Produce,user=…,client-id=…` with attributes `byte-rate` and
`throttle-time`; the JMX exporter's usual rule makes `kafka_server_quota_<attribute>` of them, with
the labels `resource` (the type), `user` and `clientId`. Only clients that have a quota get samples,
and only while some quota is set.
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from broker.metrics.lines import Lines, labels
from broker.metrics.samples import Family, labelled
from broker.quotas.quotas import Quotas
from storage.waits import PAUSE

_PREFIX: Final = "kafka_server_quota_"
_SOCKETS: Final = "kafka_server_socketservermetrics_"
_STRIMZI: Final = "kafka_server_socket_server_metrics_"

_RATES: Final = {
    "Produce": "byte_rate",
    "Fetch": "byte_rate",
    "Request": "request_time",
    "ControllerMutation": "mutation_rate",
}
"""Kafka's name of the rate, by type of quota."""


async def quota_families(quotas: Quotas) -> list[Family | Lines]:
    """Return the families of clients and addresses with quotas."""
    return [*(await _clients(quotas)), *_connections(quotas)]


async def _clients(quotas: Quotas) -> list[Family | Lines]:
    charging = quotas.charging
    if charging is None:
        return []
    from broker.quotas.sanitizer import sanitized

    lines = {
        "byte_rate": Lines(_PREFIX + "byte_rate", "gauge", "Bytes per second, by client"),
        "request_time": Lines(
            _PREFIX + "request_time", "gauge", "Percent of the event loop, by client"
        ),
        "mutation_rate": Lines(
            _PREFIX + "mutation_rate", "gauge", "Partitions made and deleted per second, by client"
        ),
        "tokens": Lines(
            _PREFIX + "tokens", "gauge", "Partitions that a client may still make and delete"
        ),
        "bound": Lines(_PREFIX + "bound", "gauge", "The quota of a client, in units of its rate"),
        "throttle_time": Lines(
            _PREFIX + "throttle_time",
            "gauge",
            "Milliseconds that a client was throttled for lately, on average; NaN if it was not",
        ),
        "throttled_ms": Lines(
            _PREFIX + "throttled_ms", "gauge", "Milliseconds that a client is still throttled for"
        ),
    }
    statistics = charging.statistics()
    waiting = labelled(
        GaugeMetricFamily,
        _PREFIX + "queue_size",
        "Connections that are throttled",
        "resource",
        {kind.value: found.throttled for kind, found in statistics.items()},
    )
    for kind, found in statistics.items():
        for one in found.payers:
            names = {"user": sanitized(one.payer.user), "clientId": one.payer.client_id}
            label = labels(resource=kind.value, **names)
            lines[_RATES[kind.value]].add(label, one.rate)
            lines["bound"].add(label, one.bound)
            lines["throttle_time"].add(label, one.throttle_ms)
            lines["throttled_ms"].add(label, one.left_ms)
            if one.tokens is not None:
                lines["tokens"].add(label, one.tokens)
            await PAUSE
    exempt = GaugeMetricFamily(
        _PREFIX + "exempt_request_time",
        "Percent of the event loop that requests took which no quota is charged for",
        value=charging.exempt_percent(),
    )
    return [*lines.values(), waiting, exempt]


def _connections(quotas: Quotas) -> Iterator[Family]:
    accepting = quotas.accepting
    if accepting is None:
        return
    found = accepting.statistics()
    for prefix in (_SOCKETS, _STRIMZI):
        yield GaugeMetricFamily(
            prefix + "broker_connection_accept_rate",
            "Connections per second, lately",
            value=found.total,
        )
        rates = GaugeMetricFamily(
            prefix + "connection_accept_rate",
            "Connections per second, lately, of listeners and of addresses with a quota",
            labels=("listener", "ip"),
        )
        for listener, rate in found.by_listener.items():
            rates.add_metric((listener, ""), rate)
        for ip, rate in found.by_ip.items():
            rates.add_metric(("", ip), rate)
        yield rates
        for name, text, times in (
            (
                "connection_accept_throttle_time",
                "Milliseconds that connections waited lately to be accepted, on average",
                found.listener_throttle_ms,
            ),
            (
                "ip_connection_accept_throttle_time",
                "Milliseconds after which connections beyond the rate of their address are closed",
                found.ip_throttle_ms,
            ),
        ):
            yield labelled(GaugeMetricFamily, prefix + name, text, "listener", times)
    yield CounterMetricFamily(
        _SOCKETS + "ip_connections_throttled",
        "Connections closed for the rate of their address",
        value=found.ip_throttled,
    )
