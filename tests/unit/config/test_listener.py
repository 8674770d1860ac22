import pytest

from config.broker_config import BrokerConfig
from config.definition import ConfigError
from config.listener import Listener, parse_endpoint, parse_protocol_map, resolvable

PLAIN = {"PLAINTEXT": "PLAINTEXT", "OTHER": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("PLAINTEXT://:0", "", 0),
        ("plaintext://localhost:9092", "localhost", 9092),
        ("PLAINTEXT://0.0.0.0:9092", "0.0.0.0", 9092),
        ("PLAINTEXT://[::1]:9092", "::1", 9092),
        ("PLAINTEXT://[fe80::1%eth0]:1", "fe80::1%eth0", 1),
        ("PLAINTEXT://[fe80::1%br-1_a]:1", "fe80::1%br-1_a", 1),
        ("PLAINTEXT://[::1%lo]:9092", "::1%lo", 9092),
        ("PLAINTEXT://my-host.example:65535", "my-host.example", 65535),
    ],
)
def test_endpoints(text: str, host: str, port: int) -> None:
    listener = parse_endpoint("listeners", text, PLAIN)
    assert listener == Listener(name="PLAINTEXT", host=host, port=port, protocol="PLAINTEXT")
    assert parse_endpoint("listeners", str(listener), PLAIN) == listener


@pytest.mark.parametrize(
    "text",
    [
        "PLAINTEXT",
        "PLAINTEXT://",
        "PLAINTEXT://host",
        "PLAINTEXT://host:",
        "PLAINTEXT://host:x",
        "://host:1",
        "PLAINTEXT://host:70000",
        "PLAINTEXT://host:-1",
        "PLAINTEXT://::1:9092",
        "PLAINTEXT:/host:1",
    ],
)
def test_malformed_endpoints_are_one_clear_line(text: str) -> None:
    with pytest.raises(ConfigError, match="for configuration listeners"):
        parse_endpoint("listeners", text, PLAIN)


@pytest.mark.parametrize(
    ("host", "resolved"),
    [
        ("::1%lo", "::1"),
        ("2001:db8::1%eth0", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("FEBF::1%2", "FEBF::1%2"),
        ("fec0::1%eth0", "fec0::1"),
        ("localhost", "localhost"),
        ("", ""),
    ],
)
def test_only_link_local_addresses_are_resolved_with_a_zone(host: str, resolved: str) -> None:
    assert resolvable(host) == resolved


def test_a_listener_needs_a_protocol() -> None:
    with pytest.raises(ConfigError, match="No security protocol defined for listener INTERNAL"):
        BrokerConfig.parse({"listeners": "INTERNAL://:1"})


def test_protocol_map() -> None:
    assert parse_protocol_map("internal:plaintext, B:SASL_SSL,") == {
        "INTERNAL": "PLAINTEXT",
        "B": "SASL_SSL",
    }
    for bad in ("A", "A:NONE", ":SSL"):
        with pytest.raises(ConfigError, match=r"listener\.security\.protocol\.map"):
            parse_protocol_map(bad)


def test_names_and_ports_are_distinct() -> None:
    two = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT"}

    def parse(listeners: str) -> BrokerConfig:
        return BrokerConfig.parse({"listeners": listeners, **two})

    assert len(parse("PLAINTEXT://:0,B://:0").listeners) == 2
    assert len(parse("PLAINTEXT://127.0.0.1:1,B://[::1]:1").listeners) == 2
    for listeners, reason in (
        ("PLAINTEXT://:1,PLAINTEXT://:2", "must have a different name"),
        ("PLAINTEXT://:1,B://:1", "must have a different port"),
        ("PLAINTEXT://127.0.0.1:1,B://[::1]:1,C://[::2]:1", "must have a different port"),
        ("", "at least one"),
    ):
        with pytest.raises(ConfigError, match=reason):
            parse(listeners)


def test_old_names_of_host_and_port() -> None:
    config = BrokerConfig.parse({"port": "1234", "host.name": "h"})
    assert str(config.listeners[0]) == "PLAINTEXT://h:1234"
    assert config.advertised_listeners == ()
    config = BrokerConfig.parse({"advertised.host.name": "outside", "advertised.port": "99"})
    assert str(config.listeners[0]) == "PLAINTEXT://:9092"
    assert str(config.advertised_listeners[0]) == "PLAINTEXT://outside:99"
    assert str(BrokerConfig.parse({"advertised.host.name": "o"}).advertised_listeners[0]) == (
        "PLAINTEXT://o:9092"
    )


def test_advertised_listeners_may_share_a_port() -> None:
    config = BrokerConfig.parse(
        {
            "listeners": "PLAINTEXT://:1,B://:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://a:9,B://b:9",
        }
    )
    assert [listener.host for listener in config.advertised_listeners] == ["a", "b"]


def test_ip_overrides() -> None:
    config = BrokerConfig.parse(
        {
            "max.connections.per.ip": "0",
            "max.connections.per.ip.overrides": "10.0.0.1:5, localhost:7,[::1]:3",
        }
    )
    assert config.ip_connection_limits == {"10.0.0.1": 5, "localhost": 7, "::1": 3}
    for wrong in ("nonsense", ":5", "h:-1"):
        with pytest.raises(ConfigError, match="host:limit"):
            BrokerConfig.parse({"max.connections.per.ip.overrides": wrong})
    for wrong in ("h:", "h:x", "h:2147483648", "h:" + "9" * 5000):
        with pytest.raises(ConfigError, match="Not a number of type INT"):
            BrokerConfig.parse({"max.connections.per.ip.overrides": wrong})
