"""The TLS settings of listeners: which of them count, and how stores change at run time."""

import ssl
import time
from pathlib import Path

import pytest

from broker.network.tls_listeners import tls_settings
from config.broker_config import BrokerConfig
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from storage.waits import at_once
from tests.support.broker_configs import BROKER, alter
from tests.support.certificates import (
    authority,
    broker_identity,
    expired,
    listener_settings,
    one_line,
    write_files,
)
from tests.support.tls_network import tls_listeners
from tests.support.tls_whole_broker import LISTENERS, TLS, over_tls, shaken
from tests.support.whole_broker import WholeBroker, run_whole_broker, whole_broker
from tls.authority import Identity

SSL = Listener(name="OUT", host="", port=9093, protocol="SSL")
SASL_SSL = Listener(name="OUT", host="", port=9093, protocol="SASL_SSL")


# ---- which settings count


def test_s_cfg_6_what_a_listener_sets_itself_goes_before() -> None:
    config = BrokerConfig.parse(
        {
            "ssl.keystore.location": "/all",
            "ssl.keystore.password": "all",
            "ssl.cipher.suites": "a,b",
            "listener.name.out.ssl.keystore.location": "/out",
            "listener.name.out.ssl.client.auth": "required",
            "listener.name.other.ssl.keystore.password": "other",
        }
    )
    settings = tls_settings(config, SSL)
    assert settings.keys.location == "/out"
    assert settings.keys.password == "all"
    assert settings.client_auth == "required"
    assert settings.suites == ("a", "b")


@pytest.mark.parametrize(
    ("settings", "on_ssl", "on_sasl"),
    [
        ({}, "none", "none"),
        ({"ssl.client.auth": "required"}, "required", "none"),
        ({"listener.name.out.ssl.client.auth": "required"}, "required", "required"),
    ],
)
def test_s_tls_4_a_sasl_listener_asks_for_certificates_only_if_it_says_so_itself(
    settings: dict[str, str], on_ssl: str, on_sasl: str
) -> None:
    config = BrokerConfig.parse(settings)
    assert tls_settings(config, SSL).client_auth == on_ssl
    assert tls_settings(config, SASL_SSL).client_auth == on_sasl


# ---- changes while it runs


async def shown(broker: WholeBroker) -> Identity | bytes | None:
    """The certificate that a new client is shown."""
    stream = await shaken(broker)
    found = stream.tls.getpeercert(binary_form=True)
    stream.close()
    return found


async def altered(broker: WholeBroker, configs: dict[str, str], name: str = "1") -> tuple[int, str]:
    """Set configs of the broker; the answer's code and message."""
    return await alter(broker, BROKER, name, configs)


def der(identity: Identity) -> bytes:
    return ssl.PEM_cert_to_DER_cert(identity.certificate_pem().decode())


def inline(identity: Identity) -> dict[str, str]:
    return {
        "listener.name.ssl.ssl.keystore.key": one_line(identity.key_pem()),
        "listener.name.ssl.ssl.keystore.certificate.chain": one_line(identity.certificate_pem()),
    }


NAMES = ("localhost", "127.0.0.1", "memory")


@whole_broker(**TLS)
async def test_s_tls_5_another_certificate_is_taken_up_and_open_connections_live_on(
    broker: WholeBroker,
) -> None:
    assert await shown(broker) == der(broker_identity())
    open_one = await over_tls(broker)
    await open_one.call(ApiKey.API_VERSIONS, 2)
    renewed = authority().server(NAMES)
    assert await altered(broker, inline(renewed)) == (ErrorCode.NONE, "")
    assert await shown(broker) == der(renewed)
    await open_one.call(ApiKey.API_VERSIONS, 2)
    open_one.close()
    await broker.restart()
    assert await shown(broker) == der(renewed), "it holds after a restart"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: authority().server(["other", *NAMES]),
            "Keystore DistinguishedName does not match",
        ),
        (lambda: authority().server(NAMES[:2]), "Keystore SubjectAltNames do not match"),
        (lambda: expired().server(NAMES), "is valid from"),
    ],
    ids=["name", "alternative names", "time"],
)
def test_s_tls_5_what_cannot_be_used_is_refused_and_changes_nothing(
    make: object, text: str
) -> None:
    other = make()

    async def scenario(broker: WholeBroker) -> None:
        code, message = await altered(broker, inline(other))
        assert code == ErrorCode.INVALID_REQUEST
        assert text in message
        assert await shown(broker) == der(broker_identity())
        mixed = {**inline(broker_identity()), "listener.name.ssl.ssl.keystore.type": "BKS"}
        code, message = await altered(broker, mixed)
        assert (code, "BKS is not known" in message) == (ErrorCode.INVALID_REQUEST, True)

    run_whole_broker(scenario, **{key.replace("__", "."): value for key, value in TLS.items()})


@whole_broker(**TLS, ssl__allow__dn__changes="true", ssl__allow__san__changes="true")
async def test_s_tls_5_other_names_may_be_allowed(broker: WholeBroker) -> None:
    other = authority().server(["localhost.example", "localhost"])
    assert await altered(broker, inline(other)) == (ErrorCode.NONE, "")
    assert await shown(broker) == der(other)


@whole_broker(**TLS)
async def test_s_tls_5_stores_change_for_one_listener_of_one_broker_only(
    broker: WholeBroker,
) -> None:
    code, message = await altered(broker, {"ssl.keystore.location": "/x"})
    assert code == ErrorCode.INVALID_REQUEST
    assert "only per-listener using the listener prefix: [ssl.keystore.location]" in message
    code, message = await altered(broker, inline(broker_identity()), name="")
    assert code == ErrorCode.INVALID_REQUEST
    assert "Cannot update these configs at default cluster level" in message


def test_s_tls_5_altering_a_location_to_what_it_is_takes_up_the_file(tmp_path: Path) -> None:
    files = write_files(tmp_path)
    key = "listener.name.ssl.ssl.keystore.location"
    settings = {
        "listeners": LISTENERS,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files["broker"],
    }
    renewed, again = authority().server(NAMES), authority().server(NAMES)

    async def scenario(broker: WholeBroker) -> None:
        same = {key: files["broker"]}
        assert await altered(broker, same) == (ErrorCode.NONE, "")
        Path(files["broker"]).write_bytes(renewed.pem())
        assert await shown(broker) == der(broker_identity())
        assert await altered(broker, same) == (ErrorCode.NONE, "")
        assert await shown(broker) == der(renewed)
        Path(files["broker"]).write_text("half a file")
        code, message = await altered(broker, same)
        assert code == ErrorCode.INVALID_REQUEST
        assert "is no key store" in message
        assert await altered(broker, {"max.connections": "77"}) == (ErrorCode.NONE, "")
        assert await shown(broker) == der(renewed)
        Path(files["broker"]).write_bytes(again.pem())
        assert await altered(broker, {"max.connections": "78"}) == (ErrorCode.NONE, "")
        assert await shown(broker) == der(again)

    run_whole_broker(scenario, **settings)


@whole_broker(**TLS, **{f"listener__name__ssl__{key}": value for key, value in {
    "ssl__keystore__type": "PEM",
    "ssl__keystore__key": TLS["ssl__keystore__key"],
    "ssl__keystore__certificate__chain": TLS["ssl__keystore__certificate__chain"],
}.items()})  # fmt: skip
async def test_a_listeners_own_settings_are_described_and_its_secrets_are_not(
    broker: WholeBroker,
) -> None:
    client = broker.client()
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=4, resource_name="1")]
    )
    answer = await client.call(ApiKey.DESCRIBE_CONFIGS, 3, request)
    client.close()
    found = {config.name: config for config in answer.results[0].configs}
    kind = found["listener.name.ssl.ssl.keystore.type"]
    assert (kind.value, kind.read_only, kind.is_sensitive) == ("PEM", False, False)
    secret = found["listener.name.ssl.ssl.keystore.key"]
    assert (secret.value, secret.is_sensitive) == (None, True)
    assert (secret.config_type, found["ssl.client.auth"].value) == (9, "none")


def test_equal_stores_are_the_same_object_so_that_sessions_are_resumed() -> None:
    class Now:
        def wall_ms(self) -> int:
            return round(time.time() * 1000)

        def monotonic(self) -> float:
            return time.monotonic()

    listeners = tls_listeners(Now())  # type: ignore[arg-type]
    before = listeners._by_name["PLAINTEXT"]
    config = BrokerConfig.parse(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:SSL",
            **listener_settings(),
        }
    )
    at_once(listeners.load(config))
    assert listeners._by_name["PLAINTEXT"] is before


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"ssl.keystore.key": ""}, "Listener SSL://broker:9093: "),
        ({"ssl.cipher.suites": "TLS_X"}, "TLS_X is not served here"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "served are TLSv1.2 and TLSv1.3"),
        ({"ssl.principal.mapping.rules": "nonsense"}, "Invalid rule: `nonsense`"),
        (
            {"ssl.client.auth": "required", "ssl.truststore.certificates": "x"},
            "no certificate is in it",
        ),
    ],
)
def test_a_listener_that_could_serve_nobody_stops_the_start_with_a_line(
    change: dict[str, str], text: str
) -> None:
    settings = {
        "listeners": LISTENERS,
        **listener_settings(),
        **change,
    }

    async def scenario(broker: WholeBroker) -> None:
        raise AssertionError("it has started")

    with pytest.raises(AssertionError) as caught:
        run_whole_broker(scenario, **settings)
    assert text in str(caught.value)
