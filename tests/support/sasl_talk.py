"""The same talk with Apache Kafka and with this broker, at a listener that authenticates.

    CASES = Cases()

    @CASES.add("a wrong password")
    def _(talk: Talk) -> None: ...

    with both_at(directory, SETTINGS) as both:
        compare(both, CASES["a wrong password"], differs=False)

Both brokers have users of PLAIN (alice, bob) and of SCRAM (carol, dora and `a,b=c`).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from protocol.api_keys import ApiKey
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.sasl.scram import ScramMechanism, salted_password
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import SHORT_LIVED
from tests.support.ports import free_port
from tests.support.sasl_probe import Probe, Seen
from tests.support.wire_client import WireClient

RIGHT: Final = b"\0alice\0alice-secret"
SESSION_S: Final = 3.0
MODULES: Final = "org.apache.kafka.common.security"
OWN: Final = "listener.name.sasl."
SETTINGS: Final[Mapping[str, str]] = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    f"{OWN}plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required"
    ' user_alice="alice-secret" user_bob="b";',
    f"{OWN}scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    f"{OWN}scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    "delegation.token.secret.key": "secret",
    "connections.max.reauth.ms": str(int(1000 * SESSION_S)),
}


@dataclass
class Talk:
    """The clients of a case with one broker, and their answers."""

    plain_port: int
    sasl_port: int
    seen: list[Seen] = field(default_factory=list)
    _probes: list[Probe] = field(default_factory=list)

    def client(self, *, plain: bool = False) -> Probe:
        """A new connection."""
        probe = Probe(self.plain_port if plain else self.sasl_port)
        self._probes.append(probe)
        return probe

    def saw(self, *seen: Seen) -> None:
        """Add answers that are to be compared."""
        self.seen += seen

    def let_in(self, version: int = 1) -> Probe:
        """A client that has authenticated by PLAIN."""
        client = self.client()
        self.saw(client.shake(), client.say(RIGHT, version))
        return client

    def served(self, client: Probe) -> None:
        """Add whether the client's requests are answered."""
        answer = client.call(ApiKey.METADATA, 12)
        self.saw(answer if isinstance(answer, str) else "served")

    def close(self) -> None:
        """Close all connections."""
        for probe in self._probes:
            probe.close()


Act = Callable[[Talk], None]


class Cases(dict[str, Act]):
    """The acts of clients, by the name of the case."""

    def add(self, name: str) -> Callable[[Act], Act]:
        """Return a decorator that makes a function the case of this name."""

        def decorate(act: Act) -> Act:
            assert name not in self
            self[name] = act
            return act

        return decorate


def upsertion(
    user: str,
    mechanism: int = 1,
    iterations: int = 4096,
    salt: bytes = b"salt123",
    salted: bytes | None = None,
) -> ScramCredentialUpsertion:
    if salted is None:
        kind = ScramMechanism.SHA_512 if mechanism == 2 else ScramMechanism.SHA_256
        salted = salted_password(kind, "pw", salt, iterations)
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
    )


def deletion(user: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


Wish = ScramCredentialUpsertion | ScramCredentialDeletion


def alteration(*wishes: Wish) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[one for one in wishes if isinstance(one, ScramCredentialDeletion)],
        upsertions=[one for one in wishes if isinstance(one, ScramCredentialUpsertion)],
    )


Ports = tuple[int, int]
"""The ports of the PLAINTEXT listener and of the one that authenticates."""
Both = tuple[Ports, Ports]
"""Those of Apache Kafka and of this broker."""


@contextmanager
def kafka_at(directory: Path, settings: Mapping[str, str]) -> Iterator[Ports]:
    port = free_port()
    broker = ApacheKafka(directory, settings, heap="512m", java_options=SHORT_LIVED)
    broker.settings["listener.security.protocol.map"] += ",SASL:SASL_PLAINTEXT"
    for name in ("listeners", "advertised.listeners"):
        broker.settings[name] += f",SASL://127.0.0.1:{port}"
    with broker:
        make_users(broker.port)
        time.sleep(1)
        yield broker.port, port


@contextmanager
def ours_at(directory: Path, settings: Mapping[str, str]) -> Iterator[Ports]:
    listeners = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
    }
    with BrokerProcess(directory, {**settings, **listeners}) as broker:
        port = broker.port_of("PLAINTEXT")
        make_users(port)
        yield port, broker.port_of("SASL")


@contextmanager
def both_at(directory: Path, settings: Mapping[str, str]) -> Iterator[Both]:
    """Start both brokers."""
    with (
        kafka_at(directory / "kafka", settings) as kafka,
        ours_at(directory / "ours", settings) as ours,
    ):
        yield kafka, ours


def make_users(port: int) -> None:
    with WireClient(port) as client:
        for wish in (
            upsertion("carol"),
            upsertion("carol", 2),
            upsertion("a,b=c"),
            upsertion("dora"),
        ):
            answer = client.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, alteration(wish))
            assert [result.error_code for result in answer.results] == [0]


def seen_at_both(both: Both, act: Act) -> list[list[Seen]]:
    """Return the answers of both brokers to one act."""
    seen = []
    for ports in both:
        with closing(Talk(*ports)) as talk:
            act(talk)
            seen.append(talk.seen)
    return seen


def compare(both: Both, act: Act, *, differs: bool) -> None:
    """Assert that both brokers answer the same to one act, or that they do not if it `differs`."""
    at_kafka, here = seen_at_both(both, act)
    if differs:
        assert at_kafka != here, "no difference any more"
    else:
        assert here == at_kafka
