"""A real broker with a listener that authenticates, and the settings of each client library.

The users have the same password everywhere. Signed tokens are verified by a file of keys.
"""

import json
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.sasl.scram import ScramMechanism
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import write_files
from tests.support.sasl_client import upsertion
from tests.support.tokens import jwk, signed
from tests.support.wire_client import WireClient

USER: Final = "alice"
PASSWORD: Final = 'alice-"secret", = \\ ü'
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORDS: Final = MECHANISMS[:3]
"""The mechanisms that have passwords."""
WAYS: Final = tuple(
    (protocol, mechanism) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in MECHANISMS
)
"""Security protocols with mechanisms."""
LISTENER: Final = "AUTH"
_MODULE: Final = "org.apache.kafka.common.security"
_AUDIENCE: Final = "kafka"
_ISSUER: Final = "https://issuer"


def quoted(text: str) -> str:
    """A value of a JAAS configuration."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def property_text(value: str) -> str:
    """A value of a properties file."""
    return "".join(
        f"\\u{ord(one):04x}" if ord(one) > 126 else {"\\": "\\\\"}.get(one, one) for one in value
    )


def bearer_token(user: str = USER, *, lives_s: int = 3600) -> str:
    """A token that the broker accepts now."""
    now = int(time.time())
    claims = {"sub": user, "aud": _AUDIENCE, "iss": _ISSUER}
    return signed("RSA 1", **claims, iat=now, exp=now + lives_s)


def sasl_settings(directory: Path, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    """The broker's settings; makes the file of keys."""
    directory.mkdir(parents=True, exist_ok=True)
    keys = directory / "keys.json"
    keys.write_text(json.dumps({"keys": [jwk("RSA 1")]}))
    own = f"listener.name.{LISTENER.lower()}."
    tls = {}
    if protocol == "SASL_SSL":
        files = write_files(directory)
        tls = {f"{own}ssl.keystore.type": "PEM", f"{own}ssl.keystore.location": files["broker"]}
    return {
        **tls,
        "listeners": f"PLAINTEXT://127.0.0.1:0,{LISTENER}://127.0.0.1:0",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{LISTENER}:{protocol}",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"{own}plain.sasl.jaas.config": property_text(
            f"{_MODULE}.plain.PlainLoginModule required user_{USER}={quoted(PASSWORD)};"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": _AUDIENCE,
        "sasl.oauthbearer.expected.issuer": _ISSUER,
        "delegation.token.secret.key": "secret",
        "group.initial.rebalance.delay.ms": "0",
    }


@dataclass(frozen=True)
class SaslBroker:
    """A broker that runs."""

    process: BrokerProcess
    bootstrap: str
    """The address of the listener that authenticates."""
    plaintext: str
    """The address of the other listener."""
    protocol: str
    authority: str
    """Path of the certificate that clients trust, with SASL_SSL."""

    @property
    def port(self) -> int:
        """The port of the listener that authenticates."""
        return int(self.bootstrap.rpartition(":")[2])


@contextmanager
def sasl_broker(
    directory: Path, overrides: Mapping[str, str] | None = None, protocol: str = "SASL_PLAINTEXT"
) -> Iterator[SaslBroker]:
    """Run a broker that knows the user in each mechanism."""
    settings = {**sasl_settings(directory, protocol), **(overrides or {})}
    with BrokerProcess(directory, settings) as process:
        plain, port = process.port_of("PLAINTEXT"), process.port_of(LISTENER)
        set_passwords(plain, USER, PASSWORD)
        yield SaslBroker(
            process,
            f"127.0.0.1:{port}",
            f"127.0.0.1:{plain}",
            protocol,
            str(directory / "ca.pem"),
        )


class SaslBrokers:
    """A broker for each security protocol, started when a test wants it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[str, SaslBroker] = {}
        self._ends = ExitStack()

    def __getitem__(self, protocol: str) -> SaslBroker:
        if protocol not in self._running:
            broker = sasl_broker(self._directory / protocol, protocol=protocol)
            self._running[protocol] = self._ends.enter_context(broker)
        return self._running[protocol]

    def close(self) -> None:
        """Stop them."""
        self._ends.close()


def set_passwords(port: int, user: str, password: str) -> None:
    """Set a user's password for both mechanisms of SCRAM, over a listener that lets all in."""
    with WireClient(port) as client:
        for mechanism in ScramMechanism:
            request = upsertion(user, password, mechanism)
            answer = client.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
            assert [result.error_code for result in answer.results] == [0]


# ---- settings of clients


def librdkafka_settings(
    broker: SaslBroker, mechanism: str, password: str = PASSWORD, user: str = USER
) -> dict[str, Any]:
    """Settings of confluent-kafka."""
    common: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": broker.protocol,
        "sasl.mechanism": mechanism,
    }
    if broker.protocol == "SASL_SSL":
        common["ssl.ca.location"] = broker.authority
    if mechanism == "OAUTHBEARER":

        def token(config: str) -> tuple[str, float]:
            return bearer_token(), time.time() + 3600

        return {**common, "oauth_cb": token}
    return {**common, "sasl.username": user, "sasl.password": password}


def python_settings(
    broker: SaslBroker, mechanism: str, provider: Any, password: str = PASSWORD
) -> dict[str, Any]:
    """Settings of kafka-python and aiokafka; `provider` has bearer tokens."""
    common: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": broker.protocol,
        "sasl_mechanism": mechanism,
    }
    if broker.protocol == "SASL_SSL":
        common["ssl_context"] = ssl.create_default_context(cafile=broker.authority)
    if mechanism == "OAUTHBEARER":
        return {**common, "sasl_oauth_token_provider": provider}
    return {**common, "sasl_plain_username": USER, "sasl_plain_password": password}


def java_settings(
    directory: Path,
    mechanism: str,
    password: str = PASSWORD,
    user: str = USER,
    options: str = "",
    *,
    authority: str | None = None,
) -> Path:
    """A properties file for Java's clients; `options` are more options of the login module.

    With an `authority` over TLS.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lines = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
    if authority is not None:
        lines["security.protocol"] = "SASL_SSL"
        lines |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
    if mechanism == "OAUTHBEARER":
        token = directory / "token.jwt"
        token.write_text(bearer_token())
        handler = f"{_MODULE}.oauthbearer.OAuthBearerLoginCallbackHandler"
        lines["sasl.login.callback.handler.class"] = handler
        lines["sasl.oauthbearer.token.endpoint.url"] = token.as_uri()
        lines["sasl.jaas.config"] = f"{_MODULE}.oauthbearer.OAuthBearerLoginModule required;"
    else:
        module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
        lines["sasl.jaas.config"] = property_text(
            f"{_MODULE}.{module}LoginModule required username={quoted(user)}"
            f" password={quoted(password)}{options};"
        )
    path = directory / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return path


def java_options(directory: Path) -> tuple[str, ...]:
    """Options of a JVM that may read the token beside `java_settings`."""
    token = (directory / "token.jwt").as_uri()
    return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={token}",)
