"""Connections by listener, the memory that they hold, and how idle the event loop is.

Strimzi's rules name the MBean `socket-server-metrics` with underscores, Confluent's without. The
connection count, which dashboards of both query, has both names.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from broker.metrics.recent import Recent
from broker.metrics.samples import Family, labelled
from broker.network.socket_server import SocketServerStatistics
from broker.world.loop_watch import LoopStatistics

if TYPE_CHECKING:
    from broker.network.handshakes import HandshakeStatistics

CONFLUENT: Final = "kafka_server_socketservermetrics_"
STRIMZI: Final = "kafka_server_socket_server_metrics_"


def socket_families(
    statistics: SocketServerStatistics, loop: LoopStatistics, recent: Recent
) -> Iterator[Family]:
    """Yield the families of the connections and of the event loop that serves them."""
    for prefix in (CONFLUENT, STRIMZI):
        name, found = prefix + "connection_count", statistics.connections
        yield labelled(GaugeMetricFamily, name, "Connections", "listener", found)
    yield from _rates(statistics, recent)
    if statistics.handshakes is not None:
        yield from _handshakes(statistics.handshakes)
    yield labelled(
        CounterMetricFamily,
        CONFLUENT + "connection_refused",
        "Connections closed because of a limit",
        "reason",
        {refusal.value: count for refusal, count in statistics.refused.items()},
    )
    for name, text, value in (
        (
            "idle_connections_killed_count",
            "Connections closed by connections.max.idle.ms",
            statistics.idle_closed,
        ),
        ("accept_errors", "Connections that could not be accepted", statistics.accept_errors),
        ("cold_reads", "Replies that had to wait for the disk", statistics.cold_reads),
        (
            "overdue_connections_killed_count",
            "Connections closed because their request came too slowly",
            statistics.overdue_closed,
        ),
        (
            "unread_connections_killed_count",
            "Connections closed because their client took no reply and all kept too much",
            statistics.unread_closed,
        ),
    ):
        yield CounterMetricFamily(CONFLUENT + name, text, value=value)
    yield from _memory(statistics)
    yield GaugeMetricFamily(
        "kafka_network_requestchannel_responsequeuesize",
        "Connections whose replies wait for a slow client, or for the disk",
        value=statistics.replying,
    )
    if loop.idle_s is not None:
        idle = recent.rate("loop", total=loop.idle_s)
        if idle is not None:
            for name in ("avgidle_percent", "avgidlepercent"):
                yield GaugeMetricFamily(
                    "kafka_network_socketserver_networkprocessor" + name,
                    "Share of its time, 0 to 1, that the event loop had nothing to do lately",
                    value=min(max(idle, 0.0), 1.0),
                )


def _handshakes(statistics: "HandshakeStatistics") -> Iterator[Family]:
    yield labelled(
        CounterMetricFamily,
        CONFLUENT + "handshakes_refused",
        "TLS handshakes that failed",
        "reason",
        {reason.name.lower(): count for reason, count in statistics.refused.items()},
    )
    for name, text, value in (
        ("handshakes_under_way", "Connections that have not shaken hands", statistics.under_way),
        ("handshakes_waiting", "Those that wait for a place", statistics.waiting),
    ):
        yield GaugeMetricFamily(CONFLUENT + name, text, value=value)


def lately(name: str, text: str, totals: Mapping[str, float], recent: Recent) -> Iterator[Family]:
    """Yield the rates of what is counted by listener; nothing while none is known."""
    rates = {
        listener: rate
        for listener, total in totals.items()
        if (rate := recent.rate(name, listener, total=total)) is not None
    }
    if rates:
        full, text = f"{CONFLUENT}{name}_rate", text + " per second, lately"
        yield labelled(GaugeMetricFamily, full, text, "listener", rates)


def _rates(statistics: SocketServerStatistics, recent: Recent) -> Iterator[Family]:
    for name, text, totals in (
        ("connection_creation", "Connections accepted", statistics.accepted),
        ("connection_close", "Connections that ended", statistics.closed),
    ):
        yield labelled(CounterMetricFamily, CONFLUENT + name, text, "listener", totals)
        yield from lately(name, text, totals, recent)


def _memory(statistics: SocketServerStatistics) -> Iterator[Family]:
    frames, buffers = statistics.frames, statistics.buffers
    for name, text, value in (
        ("incomplete_request_bytes", "Bytes of unfinished requests", frames.held),
        ("muted_connections", "Connections not read, for want of memory", frames.waiting),
        (
            "backlog_bytes",
            "Bytes of replies and requests that wait for clients",
            statistics.backlog_bytes,
        ),
        ("memorypoolused", "Bytes of receive buffers in use", buffers.bytes_in_use),
        ("memorypoolavailable", "Bytes of receive buffers kept free", buffers.bytes_free),
    ):
        yield GaugeMetricFamily(CONFLUENT + name, text, value=value)
    if statistics.memory is not None:
        pool = "kafka_network_socketserver_memorypool"
        yield GaugeMetricFamily(
            pool + "available", "Bytes left for requests", value=statistics.memory.available
        )
        yield GaugeMetricFamily(
            pool + "used", "Bytes that requests take", value=statistics.memory.used
        )
