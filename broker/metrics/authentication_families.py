"""Authentications by listener: the numbers of Kafka's `socket-server-metrics` about them."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from broker.metrics.recent import Recent
from broker.metrics.samples import Family, labelled
from broker.metrics.socket_families import CONFLUENT, STRIMZI, lately
from broker.network.socket_server import SocketServerStatistics
from broker.security.authentication.statistics import AuthenticationStatistics

if TYPE_CHECKING:
    from broker.network.handshakes import HandshakeStatistics

Read = Callable[[AuthenticationStatistics], float]

_COUNTERS: Final[tuple[tuple[str, str, Read, bool], ...]] = (
    ("successful_authentication", "Clients that proved who they are", lambda s: s.successful, True),
    (
        "successful_authentication_no_reauth",
        "Those of them that cannot do so again on the same connection",
        lambda s: s.without_sessions,
        False,
    ),
    ("failed_authentication", "Clients that did not", lambda s: s.failed, True),
    (
        "successful_reauthentication",
        "Sessions that were renewed",
        lambda s: s.successful_again,
        True,
    ),
    (
        "failed_reauthentication",
        "Sessions whose renewal was refused",
        lambda s: s.failed_again,
        True,
    ),
    (
        "expired_connections_killed_count",
        "Connections closed because they went on after their session had expired",
        lambda s: s.expired,
        False,
    ),
    (
        "late_connections_killed_count",
        "Connections closed by sasl.authentication.timeout.ms",
        lambda s: s.late,
        False,
    ),
    (
        "pushed_out_connections_killed_count",
        "Connections that had not authenticated, closed for others (max.unauthenticated.…)",
        lambda s: s.pushed_out,
        False,
    ),
)
"""Name, text, where it is read, and whether Kafka tells its rate."""


def authentication_families(
    listeners: Mapping[str, AuthenticationStatistics],
    sockets: SocketServerStatistics,
    recent: Recent,
) -> Iterator[Family]:
    """Yield the families of the listeners that authenticate by SASL or TLS; none if none does."""
    handshakes = sockets.handshakes
    if listeners:
        yield from _of_sasl(listeners, sockets.strangers)
    for name, text, read, has_rate in _COUNTERS:
        totals = {listener: read(statistics) for listener, statistics in listeners.items()}
        if handshakes is not None and name in _OF_BOTH:
            totals = _OF_BOTH[name](totals, handshakes)
        if not totals:
            continue
        for prefix in (CONFLUENT, STRIMZI) if name in _OF_BOTH else (CONFLUENT,):
            yield labelled(CounterMetricFamily, prefix + name, text, "listener", totals)
        if has_rate:
            yield from lately(name, text, totals, recent)


def _successful(totals: Mapping[str, float], handshakes: "HandshakeStatistics") -> dict[str, float]:
    """SASL counts on a listener with both, because it comes last."""
    return {**handshakes.succeeded, **totals}


def _failed(totals: Mapping[str, float], handshakes: "HandshakeStatistics") -> dict[str, float]:
    """SASL and TLS count together, because either may refuse a client."""
    failed = handshakes.failed
    return {name: totals.get(name, 0) + failed.get(name, 0) for name in {**failed, **totals}}


_OF_BOTH: Final = {"successful_authentication": _successful, "failed_authentication": _failed}


def _of_sasl(listeners: Mapping[str, AuthenticationStatistics], strangers: int) -> Iterator[Family]:
    for name, text, latency in (
        ("avg", "Milliseconds that renewals took, lately", "latency_avg_s"),
        ("max", "The longest of them", "latency_max_s"),
    ):
        seconds = {
            listener: found * 1000
            for listener, statistics in listeners.items()
            if (found := getattr(statistics, latency)) is not None
        }
        if seconds:
            full = f"{CONFLUENT}reauthentication_latency_{name}"
            yield labelled(GaugeMetricFamily, full, text, "listener", seconds)
    yield GaugeMetricFamily(
        CONFLUENT + "unauthenticated_connections",
        "Connections that have yet to authenticate",
        value=strangers,
    )
