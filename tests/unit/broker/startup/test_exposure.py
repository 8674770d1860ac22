"""A listener that lets everyone in says so."""

import pytest

from broker.startup.exposure import tell_of_joined_super_users, tell_of_open_listeners
from broker.world.transport import BoundListener
from config.broker_config import BrokerConfig


def bound(address: str, protocol: str = "PLAINTEXT", host: str = "") -> BoundListener:
    return BoundListener(
        name="INSIDE", host=host or address, address=address, port=9092, protocol=protocol
    )


def sasl_config(protocol: str, mechanisms: str, **more: str) -> BrokerConfig:
    plain = "listener.name.inside.plain.sasl.jaas.config"
    return BrokerConfig.parse(
        {
            "listeners": "INSIDE://0.0.0.0:9092",
            "advertised.listeners": "INSIDE://here:9092",
            "inter.broker.listener.name": "INSIDE",
            "listener.security.protocol.map": f"INSIDE:{protocol}",
            "sasl.enabled.mechanisms": mechanisms,
            plain: 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b";',
            **more,
        }
    )


UNSECURED = {
    "listener.name.inside.oauthbearer.sasl.server.callback.handler.class": (
        "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
        "OAuthBearerUnsecuredValidatorCallbackHandler"
    )
}
SECURED = {
    "sasl.oauthbearer.jwks.endpoint.url": "file:/keys",
    "sasl.oauthbearer.expected.audience": "kafka",
    "sasl.oauthbearer.expected.issuer": "https://issuer",
}


def test_all_interfaces_without_authentication_are_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tell_of_open_listeners([bound("0.0.0.0"), bound("::")], BrokerConfig.parse({}))
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in said] == ["WARNING", "WARNING"]
    assert said[0][1] == (
        "Listener INSIDE://0.0.0.0:9092 is on every interface and asks nobody who they are: all who"
        " reach this machine may read, write and delete. listeners=INSIDE://127.0.0.1:9092 serves"
        " this machine only."
    )
    assert said[1][1].startswith("Listener INSIDE://[::]:9092 is on every interface and asks")


@pytest.mark.parametrize("address", ["10.0.0.1", "192.0.2.2", "2001:db8::1", "fe80::1%eth0"])
def test_an_address_of_the_network_without_authentication_is_a_warning(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    tell_of_open_listeners([bound(address)], BrokerConfig.parse({}))
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "is on an address of the network and asks nobody who they are: all" in caplog.text


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1"])
def test_loopback_is_no_warning(
    address: str, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = sasl_config("SASL_PLAINTEXT", "PLAIN,OAUTHBEARER", **UNSECURED)
    tell_of_open_listeners([bound(address, protocol)], config)
    assert not caplog.records


def test_the_address_counts_and_not_the_name_for_it(caplog: pytest.LogCaptureFixture) -> None:
    names = [bound("127.0.1.1", host="broker.example"), bound("10.0.0.1", host="localhost")]
    tell_of_open_listeners(names, BrokerConfig.parse({}))
    [record] = caplog.records
    assert record.getMessage().startswith("Listener INSIDE://localhost:9092 is on an address of")


@pytest.mark.parametrize("address", ["0.0.0.0", "10.0.0.1"])
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
    key: str, auth: str, warned: bool, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    tell_of_open_listeners([bound(address, "SSL")], BrokerConfig.parse({key: auth}))
    assert bool(caplog.records) == warned


def test_certificates_are_asked_for_with_tls_only(caplog: pytest.LogCaptureFixture) -> None:
    tell_of_open_listeners([bound("10.0.0.1")], BrokerConfig.parse({"ssl.client.auth": "required"}))
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("address", "place"),
    [("0.0.0.0", "on every interface"), ("10.0.0.1", "on an address of the network")],
)
@pytest.mark.parametrize(
    ("protocol", "mechanisms", "told"),
    [
        ("SASL_PLAINTEXT", "PLAIN,SCRAM-SHA-256", "takes what PLAIN sends unencrypted"),
        ("SASL_PLAINTEXT", "OAUTHBEARER,PLAIN", "takes what OAUTHBEARER or PLAIN sends"),
        ("SASL_PLAINTEXT", "SCRAM-SHA-512", None),
        ("SASL_SSL", "PLAIN,OAUTHBEARER", None),
    ],
)
def test_passwords_that_all_can_hear_are_a_warning(
    protocol: str,
    mechanisms: str,
    told: str | None,
    address: str,
    place: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tell_of_open_listeners([bound(address, protocol)], sasl_config(protocol, mechanisms, **SECURED))
    assert len(caplog.records) == (told is not None)
    if told:
        assert f"INSIDE://{address}:9092 is {place} and {told}" in caplog.text


@pytest.mark.parametrize("address", ["0.0.0.0", "10.0.0.1"])
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_tokens_that_anybody_can_make_ask_nobody(
    protocol: str, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = sasl_config(protocol, "SCRAM-SHA-512,OAUTHBEARER", **UNSECURED)
    tell_of_open_listeners([bound(address, protocol)], config)
    [record] = caplog.records
    assert (
        "asks nobody who they are (OAUTHBEARER lets in whoever a token names, unverified): all"
        in record.getMessage()
    )


def test_a_listener_may_be_open_and_overheard(caplog: pytest.LogCaptureFixture) -> None:
    config = sasl_config("SASL_PLAINTEXT", "PLAIN,OAUTHBEARER", **UNSECURED)
    tell_of_open_listeners([bound("0.0.0.0", "SASL_PLAINTEXT")], config)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "takes what PLAIN sends unencrypted" in caplog.text


@pytest.mark.parametrize("joined", ["User:admin,User:bob", "User:admin, User:bob"])
def test_super_users_with_a_comma_between_them_are_one_and_a_warning(
    joined: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = BrokerConfig.parse({"super.users": f"User:ann;{joined}"})
    assert config.super_users == {"User:ann", joined}
    tell_of_joined_super_users(config)
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        (
            "WARNING",
            f"super.users names one principal, {joined}. Semicolons separate principals: if these"
            " are several, none of them is a super user.",
        )
    ]


@pytest.mark.parametrize(
    "users", ["", "User:ann;User:bob", "User:CN=broker,O=us", "User:a,b;User:CN=User:b"]
)
def test_names_with_commas_are_no_warning(users: str, caplog: pytest.LogCaptureFixture) -> None:
    tell_of_joined_super_users(BrokerConfig.parse({"super.users": users}))
    assert not caplog.records
