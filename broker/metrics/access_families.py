"""The access rules, and what is decided by them; nothing where no authorizer is configured.

Kafka's MBean is a plug-in's (KIP-877): `kafka.server:type=plugins,config=authorizer.class.name`.
Source: `StandardAuthorizer.AuthorizerMetrics`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import GaugeMetricFamily

from broker.metrics.recent import Recent
from broker.metrics.samples import Family

if TYPE_CHECKING:
    from broker.security.acl_authorizer import AuthorizerStatistics

_PREFIX: Final = "kafka_server_plugins_"


def access_families(statistics: "AuthorizerStatistics | None", recent: Recent) -> Iterator[Family]:
    """Return the families of the authorizer."""
    if statistics is None:
        return
    yield GaugeMetricFamily(_PREFIX + "acls_total_count", "Access rules", value=statistics.rules)
    asked = statistics.allowed + statistics.denied
    for name, text, total in (
        ("request", "Questions to the authorizer", asked),
        ("allowed", "Questions that the authorizer allowed", statistics.allowed),
        ("denied", "Questions that the authorizer denied", statistics.denied),
    ):
        rate = recent.rate("authorization", name, total=total)
        if rate is not None:
            yield GaugeMetricFamily(
                f"{_PREFIX}authorization_{name}_rate_per_minute",
                f"{text}, per minute lately",
                value=rate * 60,
            )
