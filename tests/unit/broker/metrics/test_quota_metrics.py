"""What is told of clients with quotas (S-QTA-9)."""

from broker.metrics.lines import Lines
from broker.metrics.quota_families import quota_families
from broker.quotas.quotas import Quotas
from storage.waits import at_once
from tests.support.manual_clock import ManualClock
from tests.support.metric_sources import limited_quotas


def samples(quotas: Quotas) -> dict[str, float]:
    found = {}
    for family in at_once(quota_families(quotas)):
        if isinstance(family, Lines):
            for line in b"".join(family.chunks()).decode().splitlines():
                if not line.startswith("#"):
                    name, _, value = line.rpartition(" ")
                    found[name] = float(value)
        else:
            for sample in family.samples:
                text = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
                found[f"{sample.name}{{{text}}}" if text else sample.name] = sample.value
    return found


def test_s_qta_9_each_client_with_a_quota_is_told_of_under_kafkas_names() -> None:
    found = samples(limited_quotas())
    client = r'user="ann%20smith",clientId="c\"1"'
    assert found[f'kafka_server_quota_byte_rate{{resource="Produce",{client}}}'] == 150
    assert found[f'kafka_server_quota_byte_rate{{resource="Fetch",{client}}}'] == 100
    assert found[f'kafka_server_quota_throttle_time{{resource="Produce",{client}}}'] == 5_000
    assert found[f'kafka_server_quota_throttled_ms{{resource="Produce",{client}}}'] == 5_000
    assert found[f'kafka_server_quota_bound{{resource="Fetch",{client}}}'] == 200
    assert found[f'kafka_server_quota_request_time{{resource="Request",{client}}}'] == 0.5
    mutation = f'{{resource="ControllerMutation",{client}}}'
    assert found[f"kafka_server_quota_mutation_rate{mutation}"] == 3
    assert found[f"kafka_server_quota_tokens{mutation}"] == -8
    assert found['kafka_server_quota_queue_size{resource="Produce"}'] == 4
    assert found["kafka_server_quota_exempt_request_time"] == 2


def test_s_qta_9_and_of_addresses() -> None:
    found = samples(limited_quotas())
    for prefix in ("kafka_server_socketservermetrics_", "kafka_server_socket_server_metrics_"):
        rates = prefix + "connection_accept_rate"
        assert found[rates + '{listener="",ip="10.0.0.1"}'] == 3
        assert found[rates + '{listener="PLAINTEXT",ip=""}'] == 3
        assert found[prefix + "broker_connection_accept_rate"] == 3
        listener = '{listener="PLAINTEXT"}'
        assert found[prefix + "ip_connection_accept_throttle_time" + listener] > 0
    assert found["kafka_server_socketservermetrics_ip_connections_throttled_total"] == 10


def test_without_quotas_nothing_is_told() -> None:
    assert samples(Quotas(ManualClock())) == {}
