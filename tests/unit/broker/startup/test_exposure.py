"""A listener that lets everyone in says so."""

import pytest

from broker.startup.exposure import tell_of_open_listeners
from broker.world.transport import BoundListener
from config.broker_config import BrokerConfig


def bound(host: str, protocol: str = "PLAINTEXT") -> BoundListener:
    return BoundListener(name="INSIDE", host=host, port=9092, protocol=protocol)


def test_all_interfaces_without_authentication_are_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tell_of_open_listeners(
        [
            bound("127.0.0.1"),
            bound("0.0.0.0"),
            bound("::"),
            bound("0.0.0.0", "SASL_SSL"),
            bound("10.0.0.1"),
        ],
        BrokerConfig.parse({}),
    )
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in said] == ["WARNING", "WARNING"]
    assert said[0][1].startswith("Listener INSIDE://0.0.0.0:9092 is on every interface")
    assert "listeners=INSIDE://127.0.0.1:9092 serves this machine only" in said[0][1]
    assert "INSIDE://[::]:9092" in said[1][1]


@pytest.mark.parametrize(
    ("key", "auth", "warned"),
    [
        ("ssl.client.auth", "none", True),
        ("ssl.client.auth", "requested", True),
        ("ssl.client.auth", "required", False),
        ("listener.name.inside.ssl.client.auth", "required", False),
        ("listener.name.other.ssl.client.auth", "required", True),
    ],
)
def test_with_tls_a_listener_is_open_unless_it_requires_certificates(
    key: str, auth: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tell_of_open_listeners([bound("", "SSL")], BrokerConfig.parse({key: auth}))
    assert bool(caplog.records) == warned


@pytest.mark.parametrize(
    ("protocol", "mechanisms", "told"),
    [
        ("SASL_PLAINTEXT", "PLAIN,SCRAM-SHA-256", "takes what PLAIN sends unencrypted"),
        ("SASL_PLAINTEXT", "SCRAM-SHA-512", None),
        ("SASL_SSL", "PLAIN", None),
    ],
)
def test_passwords_that_all_can_hear_are_a_warning(
    protocol: str, mechanisms: str, told: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    plain = "listener.name.inside.plain.sasl.jaas.config"
    config = BrokerConfig.parse(
        {
            "listeners": "INSIDE://0.0.0.0:9092",
            "advertised.listeners": "INSIDE://here:9092",
            "inter.broker.listener.name": "INSIDE",
            "listener.security.protocol.map": f"INSIDE:{protocol}",
            "sasl.enabled.mechanisms": mechanisms,
            plain: 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b";',
        }
    )
    tell_of_open_listeners([bound("0.0.0.0", protocol), bound("127.0.0.1", protocol)], config)
    assert len(caplog.records) == (told is not None)
    assert (told or "") in caplog.text
