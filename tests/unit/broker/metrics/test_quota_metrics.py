"""The metrics of clients with quotas (S-QTA-9)."""

from broker.metrics.quota_families import quota_families
from broker.quotas.quotas import Quotas
from storage.waits import at_once
from tests.support.manual_clock import ManualClock
from tests.support.metric_sources import limited_quotas
from tests.support.scraped import Series, at, read


def samples(quotas: Quotas) -> Series:
    return read(at_once(quota_families(quotas)))


def test_s_qta_9_each_client_with_a_quota_is_told_of_under_kafkas_names() -> None:
    found = samples(limited_quotas())
    for resource, name, value in (
        ("Produce", "byte_rate", 150),
        ("Fetch", "byte_rate", 100),
        ("Produce", "throttle_time", 5_000),
        ("Produce", "throttled_ms", 5_000),
        ("Fetch", "bound", 200),
        ("Request", "request_time", 0.5),
        ("ControllerMutation", "mutation_rate", 3),
        ("ControllerMutation", "tokens", -8),
    ):
        client = at(resource=resource, user="ann%20smith", clientId='c"1')
        assert found[f"kafka_server_quota_{name}", client] == value, (resource, name)
    assert found["kafka_server_quota_queue_size", at(resource="Produce")] == 4
    assert found["kafka_server_quota_exempt_request_time", at()] == 2


def test_s_qta_9_and_of_addresses() -> None:
    found = samples(limited_quotas())
    for prefix in ("kafka_server_socketservermetrics_", "kafka_server_socket_server_metrics_"):
        rates = prefix + "connection_accept_rate"
        assert found[rates, at(listener="", ip="10.0.0.1")] == 3
        assert found[rates, at(listener="PLAINTEXT", ip="")] == 3
        assert found[prefix + "broker_connection_accept_rate", at()] == 3
        throttled = found[prefix + "ip_connection_accept_throttle_time", at(listener="PLAINTEXT")]
        assert throttled > 0
    assert found["kafka_server_socketservermetrics_ip_connections_throttled_total", at()] == 10


def test_without_quotas_nothing_is_told() -> None:
    assert samples(Quotas(ManualClock())) == {}
