"""Throttled clients, from the broker's metrics: no request of Kafka's protocol shows them."""

import http.client
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tools.errors import CommandError
from tools.wire.brokers import Brokers
from tools.wire.refusals import require_done

LISTENER: Final = "metrics.http.listener"
TIMEOUT_S: Final = 15.0
_BROKER: Final = 4
"""The type of resource in DescribeConfigs."""
_EVERYWHERE: Final = ("", "0.0.0.0", "::")
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_PREFIX: Final = "kafka_server_quota_"

_KEYS: Final = {
    "Produce": ("producer_byte_rate", "byte_rate"),
    "Fetch": ("consumer_byte_rate", "byte_rate"),
    "Request": ("request_percentage", "request_time"),
    "ControllerMutation": ("controller_mutation_rate", "mutation_rate"),
}
"""The quota's key and the metric that has its rate, by the label `resource`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taker:
    """A client with a quota on one broker."""

    broker: str
    """Its id, or the address of its metrics."""
    key: str
    user: str
    client_id: str
    rate: float
    """The client's rate now, in the quota's unit."""
    bound: float
    throttled_ms: int
    """The time for which the client is throttled from now on, in milliseconds."""


def metrics_addresses(cluster: Brokers) -> dict[str, str]:
    """Return `host:port` of each broker's metrics, by its id. Raises CommandError."""
    found = {}
    for broker_id, link in cluster.every():
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=_BROKER,
                    resource_name=str(broker_id),
                    configuration_keys=[LISTENER],
                )
            ]
        )
        listener = ""
        for result in link.call(request, DescribeConfigsResponse).results:
            require_done(result.error_code, result.error_message)
            listener = next((told.value or "" for told in result.configs), "")
        found[str(broker_id)] = _reachable(broker_id, listener, link.address[0])
    return found


def _reachable(broker_id: int, listener: str, host: str) -> str:
    """Return where the metrics are from here: `listener` is the setting, `host` the broker's."""
    if not listener:
        raise CommandError(
            f"broker {broker_id} serves no metrics: {LISTENER} is not set."
            " If another program serves them, say where: --metrics HOST:PORT"
        )
    name, _, port = listener.rpartition(":")
    if name.strip("[]") in _EVERYWHERE:
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if name.strip("[]") in _LOOPBACK and host not in _LOOPBACK:
        raise CommandError(
            f"broker {broker_id} serves its metrics to its own machine only, at {listener}:"
            f" there, run this with --metrics {listener}"
        )
    return listener


def takers(broker: str, address: str) -> Iterator[Taker]:
    """Yield the clients with a quota that a broker's metrics tell of. Raises CommandError."""
    values: dict[tuple[str, str, str], dict[str, float]] = {}
    for name, labels, value in _samples(address):
        if "clientId" in labels:
            client = (labels["resource"], labels["user"], labels["clientId"])
            values.setdefault(client, {})[name] = value
    for (resource, user, client_id), told in values.items():
        key, rate = _KEYS[resource]
        yield Taker(
            broker=broker,
            key=key,
            user=unquote(user),
            client_id=client_id,
            rate=told[rate],
            bound=told["bound"],
            throttled_ms=int(told["throttled_ms"]),
        )


def _samples(address: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Yield name, without its prefix, labels and value of each metric of quotas."""
    from prometheus_client.parser import text_string_to_metric_families

    for line in _lines(address):
        if line.startswith(_PREFIX):
            for family in text_string_to_metric_families(line):
                for sample in family.samples:
                    yield sample.name.removeprefix(_PREFIX), sample.labels, sample.value


def _lines(address: str) -> Iterator[str]:
    try:
        connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise CommandError(f"http://{address}/metrics: {answer.status} {answer.reason}")
            for line in answer:
                yield line.decode()
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        raise CommandError(f"http://{address}/metrics: {error}") from None
