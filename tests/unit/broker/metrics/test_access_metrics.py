"""The metrics of access rules and of decisions by them."""

from broker.metrics.access_families import access_families
from broker.metrics.recent import Recent
from broker.security.acl_authorizer import AuthorizerStatistics


def test_rules_and_decisions_are_told_under_kafkas_names() -> None:
    now = 10.0
    recent = Recent(lambda: now)

    def told(allowed: int, denied: int) -> dict[str, float]:
        statistics = AuthorizerStatistics(rules=3, allowed=allowed, denied=denied)
        return {
            family.name: family.samples[0].value for family in access_families(statistics, recent)
        }

    assert told(5, 1) == {"kafka_server_plugins_acls_total_count": 3}
    now = 70.0
    assert told(65, 7) == {
        "kafka_server_plugins_acls_total_count": 3,
        "kafka_server_plugins_authorization_request_rate_per_minute": 66,
        "kafka_server_plugins_authorization_allowed_rate_per_minute": 60,
        "kafka_server_plugins_authorization_denied_rate_per_minute": 6,
    }


def test_without_an_authorizer_nothing_is_told() -> None:
    assert list(access_families(None, Recent(lambda: 1.0))) == []
