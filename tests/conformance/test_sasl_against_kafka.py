"""Clients of every kind at a listener that authenticates: Apache Kafka and this broker see them.

Each case runs against both brokers, on connections of its own. Their answers are compared field by
field, without times and random values. `DIFFERENCES` lists the cases in which the two differ.
"""

import base64
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from protocol.acls.vocabulary import Operation, PermissionType, ResourceType
from protocol.api_keys import ApiKey
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.create_delegation_token import (
    CreatableRenewer,
    CreateDelegationTokenRequest,
)
from protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from protocol.sasl.scram import ScramMechanism, salted_password
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import SHORT_LIVED
from tests.support.ports import free_port
from tests.support.sasl_probe import Probe, Seen
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.conformance

RIGHT = b"\0alice\0alice-secret"
SESSION_S = 3.0
_MODULE = "org.apache.kafka.common.security"
_OWN = "listener.name.sasl."
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    f"{_OWN}plain.sasl.jaas.config": f"{_MODULE}.plain.PlainLoginModule required"
    ' user_alice="alice-secret" user_bob="b";',
    f"{_OWN}scram-sha-256.sasl.jaas.config": f"{_MODULE}.scram.ScramLoginModule required;",
    f"{_OWN}scram-sha-512.sasl.jaas.config": f"{_MODULE}.scram.ScramLoginModule required;",
    "delegation.token.secret.key": "secret",
    "connections.max.reauth.ms": str(int(1000 * SESSION_S)),
}
VERSIONS, METADATA = ApiKey.API_VERSIONS, ApiKey.METADATA
NAMED = ApiVersionsRequest(client_software_name="a", client_software_version="1")
UNNAMED = ApiVersionsRequest(client_software_name="", client_software_version="")


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
        answer = client.call(METADATA, 12)
        self.saw(answer if isinstance(answer, str) else "served")

    def close(self) -> None:
        """Close all connections."""
        for probe in self._probes:
            probe.close()


CASES: dict[str, Callable[[Talk], None]] = {}
DIFFERENCES = {
    "during the exchange: Metadata": "Kafka answers with an error where the API has a place for"
    " one, here an empty answer; this broker closes without a word",
    "an unknown user of SCRAM": "Kafka refuses the first message, this broker the second (S-SEC-3)",
    "an unknown token": "the same",
    "a token that has expired": "the same",
    "an empty salted password": "Kafka fails to answer; this broker refuses it",
    "a mandatory extension of SCRAM": "Kafka ignores it",
    "an extension in the last message of SCRAM": "Kafka does not sign it",
    "again with an unknown mechanism": "Kafka closes without an answer",
}


def case(name: str) -> Callable[[Callable[[Talk], None]], Callable[[Talk], None]]:
    def add(act: Callable[[Talk], None]) -> Callable[[Talk], None]:
        assert name not in CASES
        CASES[name] = act
        return act

    return add


# ---- where nobody authenticates


@case("on a PLAINTEXT listener")
def _(talk: Talk) -> None:
    client = talk.client(plain=True)
    talk.saw(client.shake(), client.say(b"x"), client.shake("X", 0), client.say(b"x", 0))
    talk.served(client)


@case("delegation tokens on a PLAINTEXT listener")
def _(talk: Talk) -> None:
    client = talk.client(plain=True)
    for version in (1, 2, 3):
        talk.saw(
            client.call(ApiKey.CREATE_DELEGATION_TOKEN, version, creation()),
            client.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, version, description(None)),
        )
    for version in (1, 2):
        talk.saw(
            client.call(ApiKey.RENEW_DELEGATION_TOKEN, version, renewal(b"x")),
            client.call(ApiKey.EXPIRE_DELEGATION_TOKEN, version, expiry(b"x", 1)),
        )


# ---- before the handshake


@case("the usual way")
def _(talk: Talk) -> None:
    client = talk.client()
    answer = client.call(VERSIONS, 3, NAMED)
    ranges = {api.api_key: (api.min_version, api.max_version) for api in client.answer.api_keys}
    asked = (*range(17, 19), 36, *range(38, 42), 50, 51)
    talk.saw(isinstance(answer, str), *(ranges.get(key) for key in asked))
    talk.saw(client.shake(), client.say(RIGHT, 2))
    talk.served(client)


for _version in (0, 1, 2):

    @case(f"SaslAuthenticate {_version}")
    def _(talk: Talk, version: int = _version) -> None:
        talk.served(talk.let_in(version))
        client = talk.client()
        talk.saw(client.shake(), client.say(b"\0alice\0wrong", version), client.receive())


@case("ApiVersions twice")
def _(talk: Talk) -> None:
    client = talk.client()
    client.call(VERSIONS, 0)
    talk.saw(client.call(VERSIONS, 0))


@case("ApiVersions without names, then with")
def _(talk: Talk) -> None:
    client = talk.client()
    talk.saw(client.call(VERSIONS, 3, UNNAMED), client.call(VERSIONS, 3, UNNAMED))
    client.call(VERSIONS, 3, NAMED)
    talk.saw(client.answer.error_code, client.shake(), client.say(RIGHT))


@case("ApiVersions of a later version")
def _(talk: Talk) -> None:
    client = talk.client()
    for _ in range(2):
        client.raw(struct.pack(">hhih", 18, 99, 1, -1) + b"\0\5PLAIN")
    talk.saw(client.shake(), client.say(RIGHT))


for _name, _frame in (
    ("Metadata", struct.pack(">hhih", 3, 9, 1, -1) + b"\0\0\0\0"),
    ("SaslAuthenticate", struct.pack(">hhih", 36, 1, 1, -1) + b"\0\0\0\1x"),
    ("an unknown API", struct.pack(">hhih", 999, 0, 1, -1)),
    ("garbage", b"\x60garbagegarbage"),
    ("an empty frame", b""),
    ("one byte", b"x"),
    ("SaslHandshake of a later version", struct.pack(">hhih", 17, 9, 1, -1) + b"\0\5PLAIN"),
):

    @case(f"first: {_name}")
    def _(talk: Talk, frame: bytes = _frame) -> None:
        talk.saw(talk.client().raw(frame))
        client = talk.client()
        client.call(VERSIONS, 0)
        talk.saw(client.raw(frame))


for _size in (524_289, -1, 0x7FFFFFFF, -(1 << 31)):

    @case(f"a frame of {_size} bytes")
    def _(talk: Talk, size: int = _size) -> None:
        talk.saw(talk.client().bytes(struct.pack(">i", size) + b"x" * 100))


for _mechanism in ("GSSAPI", "plain", "", "x" * 200):

    @case(f"the mechanism {_mechanism[:10]}")
    def _(talk: Talk, mechanism: str = _mechanism) -> None:
        for version in (0, 1):
            client = talk.client()
            talk.saw(client.shake(mechanism, version), client.receive())


# ---- during the exchange

for _name, _act in (
    ("Metadata", lambda c: c.call(METADATA, 9)),
    ("SaslHandshake", lambda c: c.shake()),
    ("ApiVersions", lambda c: c.call(VERSIONS, 0)),
    ("ApiVersions 3", lambda c: c.call(VERSIONS, 3, NAMED)),
    ("Produce without acks", lambda c: c.call(ApiKey.PRODUCE, 9, ProduceRequest(acks=0))),
    ("garbage", lambda c: c.raw(b"\0\x63garbage")),
    ("a later version", lambda c: c.raw(struct.pack(">hhih", 36, 9, 1, -1) + b"\0\5PLAIN")),
):

    @case(f"during the exchange: {_name}")
    def _(talk: Talk, act: Callable[[Probe], Seen] = _act) -> None:
        client = talk.client()
        talk.saw(client.shake(), act(client), client.receive())


for _message in (
    b"\0alice\0wrong",
    b"\0nobody\0x",
    b"alice\0pw",
    b"\0\0x",
    b"\0alice\0",
    b"bob\0alice\0alice-secret",
    b"alice\0alice\0alice-secret",
    b"",
    b"\0a\0b\0c",
    b"\0a\0b\0c\0d",
    b"\0\xff\xfe\0x",
    b"\0alice\0alice-secret\0",
):

    @case(f"PLAIN {_message!r}")
    def _(talk: Talk, message: bytes = _message) -> None:
        client = talk.client()
        talk.saw(client.shake(), client.say(message), client.receive())


@case("messages without headers")
def _(talk: Talk) -> None:
    client = talk.client()
    talk.saw(client.shake(version=0), client.raw(RIGHT))
    talk.served(client)
    for message in (b"\0alice\0wrong", b"", struct.pack(">hhih", 36, 1, 1, -1) + b"\0\0\0\1x"):
        client = talk.client()
        talk.saw(client.shake(version=0), client.raw(message))


# ---- SCRAM


def scram(name: str, *args: Any, **more: Any) -> None:
    @case(name)
    def _(talk: Talk) -> None:
        client = talk.client()
        talk.saw(*client.scram(*args, **more))
        talk.served(client)


scram("SCRAM-SHA-256", "carol", "pw")
scram("SCRAM-SHA-512", "carol", "pw", "SCRAM-SHA-512")
scram("SCRAM with signs in the name", "a,b=c", "pw")
scram("a wrong password of SCRAM", "carol", "wrong")
scram("an unknown user of SCRAM", "nobody", "pw")
scram("a longer nonce", "carol", "pw", change=lambda m: m.replace(b"r=", b"r=x"))
scram("another nonce", "carol", "pw", change=lambda m: m.replace(b"r=abc", b"r="))
scram("no last message of SCRAM", "carol", "pw", change=lambda m: b"x")
scram("an empty last message of SCRAM", "carol", "pw", change=lambda m: b"")
scram("another channel binding", "carol", "pw", change=lambda m: m.replace(b"biws", b"eSws"))
scram(
    "an extension in the last message of SCRAM",
    *("carol", "pw"),
    change=lambda m: m.replace(b",p=", b",x=y,p="),
)

for _name, _first in (
    ("a first message that knows channel binding", b"y,,n=carol,r=abcdef"),
    ("a first message with channel binding", b"p=tls-unique,,n=carol,r=abcdef"),
    ("an authorization id in SCRAM", b"n,a=carol,n=carol,r=abcdef"),
    ("another authorization id in SCRAM", b"n,a=bob,n=carol,r=abcdef"),
    ("a mandatory extension of SCRAM", b"n,,m=x,n=carol,r=abcdef"),
    ("no nonce", b"n,,n=carol,r="),
    ("an extension of SCRAM", b"n,,n=carol,r=abcdef,x=y"),
    ("a user who says that it is no token", b"n,,n=carol,r=abcdef,tokenauth=false"),
    ("a wrong escape in a name", b"n,,n=car=2col,r=abcdef"),
    ("a name that is not ASCII in SCRAM", "n,,n=çarol,r=abcdef".encode()),
    ("an empty first message of SCRAM", b""),
    ("garbage of SCRAM", b"garbage"),
):

    @case(_name)
    def _(talk: Talk, first: bytes = _first) -> None:
        client = talk.client()
        talk.saw(client.shake("SCRAM-SHA-256"), client.say(first))


# ---- sessions (KIP-368)


@case("again")
def _(talk: Talk) -> None:
    client = talk.let_in()
    talk.saw(client.shake(), client.say(RIGHT))
    talk.served(client)
    talk.saw(client.shake(), client.say(RIGHT))  # too soon
    talk.served(client)


@case("again as somebody else")
def _(talk: Talk) -> None:
    client = talk.let_in()
    talk.saw(client.shake(), client.say(b"\0bob\0b"), client.receive())


@case("again with another mechanism")
def _(talk: Talk) -> None:
    client = talk.let_in()
    talk.saw(client.shake("SCRAM-SHA-256"), client.say(b"n,,n=alice,r=abcdef"), client.receive())


@case("again with an unknown mechanism")
def _(talk: Talk) -> None:
    client = talk.let_in()
    talk.saw(client.shake("X"), client.receive())


@case("again with a wrong password")
def _(talk: Talk) -> None:
    client = talk.let_in()
    talk.saw(client.shake(), client.say(b"\0alice\0x"), client.receive())


@case("again without headers")
def _(talk: Talk) -> None:
    client = talk.let_in()
    talk.saw(client.shake(version=0), client.raw(RIGHT))
    talk.served(client)


@case("again, and another request between")
def _(talk: Talk) -> None:
    client = talk.let_in()
    talk.saw(client.shake(), client.call(ApiKey.SASL_HANDSHAKE, 1), client.receive())


@case("sessions that are over")
def _(talk: Talk) -> None:
    clients = [talk.let_in(version) for version in (0, 0, 1)]
    time.sleep(SESSION_S + 0.3)
    talk.served(clients[0])
    talk.saw(clients[1].shake(), clients[1].say(RIGHT))
    talk.served(clients[1])
    talk.saw(clients[2].call(VERSIONS, 0))


# ---- users


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


def altered(name: str, *requests: tuple[Wish, ...]) -> None:
    @case(name)
    def _(talk: Talk) -> None:
        client = talk.client(plain=True)
        for wishes in requests:
            talk.saw(client.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, alteration(*wishes)))


altered("no change of users", ())
altered("iterations", (upsertion("i1", 1, 4095), upsertion("i2", 1, 16385), upsertion("i3", 2, 1)))
altered("users without a name", (upsertion(""), upsertion("n1")), (deletion(""),))
altered(
    "unknown mechanisms",
    (deletion("carol", 0),),
    (deletion("carol", 9), upsertion("m1", 9), upsertion("m2", 0)),
)
altered(
    "users who are named twice",
    (deletion("t1"), deletion("t1")),
    (deletion("carol", 1), deletion("carol", 2)),
    (upsertion("t1", 1), upsertion("t1", 2)),
    (deletion("carol", 1), upsertion("carol", 2)),
    (upsertion("t2"), upsertion("t3"), upsertion("t4", 3), upsertion("t2"), upsertion("")),
)
altered("users who are not there", (deletion("nobody"),), (deletion("dora", 2), upsertion("z1")))
altered("an empty salted password", (upsertion("p1", salt=b"", salted=b""),))


@case("users are described")
def _(talk: Talk) -> None:
    client = talk.client(plain=True)

    def described(*users: str) -> Seen:
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users])
        return client.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request)

    talk.saw(
        described("carol"),
        described("a,b=c", "dora"),
        described("carol", "nobody", "carol", "dora", ""),
        described("nobody", "nobody"),
    )


# ---- delegation tokens


def creation(**fields: Any) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        **{
            "renewers": [],
            "max_lifetime_ms": -1,
            "owner_principal_type": None,
            "owner_principal_name": None,
            **fields,
        }
    )


def description(owners: list[tuple[str, str]] | None) -> DescribeDelegationTokenRequest:
    named = [
        DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
        for kind, name in owners or ()
    ]
    return DescribeDelegationTokenRequest(owners=None if owners is None else named)


def renewal(secret: bytes, period_ms: int = -1) -> RenewDelegationTokenRequest:
    return RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms)


def expiry(secret: bytes, period_ms: int = -1) -> ExpireDelegationTokenRequest:
    return ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)


def renewer(kind: str, name: str) -> CreatableRenewer:
    return CreatableRenewer(principal_type=kind, principal_name=name)


@case("tokens are created")
def _(talk: Talk) -> None:
    client = talk.let_in()
    for fields in (
        {},
        {"max_lifetime_ms": 0},
        {"max_lifetime_ms": 1000},
        {"max_lifetime_ms": 1 << 62},
        {"max_lifetime_ms": -(1 << 63)},
        {"renewers": [renewer("User", "bob"), renewer("User", "")]},
        {"renewers": [renewer("Group", "x")]},
        {"owner_principal_type": "User", "owner_principal_name": "bob"},
        {"owner_principal_type": "Group", "owner_principal_name": "bob"},
        {"owner_principal_type": "User", "owner_principal_name": ""},
        {"owner_principal_type": "", "owner_principal_name": "alice"},
    ):
        talk.saw(client.call(ApiKey.CREATE_DELEGATION_TOKEN, 3, creation(**fields)))
    talk.saw(client.call(ApiKey.CREATE_DELEGATION_TOKEN, 1, creation()))


def made(talk: Talk, client: Probe, **fields: Any) -> Any:
    talk.saw(client.call(ApiKey.CREATE_DELEGATION_TOKEN, 3, creation(**fields)))
    return client.answer


def await_token(talk: Talk, token: Any, *, gone: bool = False) -> None:
    """Wait until Kafka's broker has read the token from its controller, or its end if `gone`."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        client = talk.client()
        client.shake()
        client.say(RIGHT)
        client.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, description(None))
        if gone != any(one.token_id == token.token_id for one in client.answer.tokens):
            return
        time.sleep(0.1)
    raise AssertionError("the token does not come, or go")


def by_token(talk: Talk, token: Any, mechanism: str, *, said: bool = True) -> Probe:
    client = talk.client()
    password = base64.b64encode(bytes(token.hmac)).decode()
    talk.saw(client.scram(token.token_id, password, mechanism, by_token=said)[2:])
    return client


@case("the life of a token")
def _(talk: Talk) -> None:
    client = talk.let_in()
    token = made(talk, client, renewers=[renewer("User", "bob")])
    secret = bytes(token.hmac)
    await_token(talk, token)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        holder = by_token(talk, token, mechanism)
        talk.served(holder)
        talk.saw(
            holder.call(ApiKey.CREATE_DELEGATION_TOKEN, 3, creation()),
            holder.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, description(None)),
            holder.call(ApiKey.RENEW_DELEGATION_TOKEN, 2, renewal(secret)),
            holder.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, expiry(secret)),
        )
    client = talk.let_in()
    for request in (renewal(secret), renewal(secret, 0), renewal(secret, 1 << 62), renewal(b"no")):
        talk.saw(client.call(ApiKey.RENEW_DELEGATION_TOKEN, 2, request))
    for again in (expiry(secret, 60_000), expiry(secret, 1 << 62), expiry(b"no", 1)):
        talk.saw(client.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, again))
    talk.saw(client.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, expiry(secret)))
    await_token(talk, token, gone=True)
    client = talk.let_in()
    talk.saw(
        client.call(ApiKey.RENEW_DELEGATION_TOKEN, 1, renewal(secret)),
        client.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, expiry(secret)),
    )


@case("tokens are described")
def _(talk: Talk) -> None:
    client = talk.let_in()
    await_token(talk, made(talk, client, renewers=[renewer("User", "zoe")]))
    client = talk.let_in()
    for owners in ([], [("User", "zoe")], [("User", "nn")], [("Group", "zoe")]):
        talk.saw(client.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, description(owners)))
    talk.saw(client.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, description([("User", "zoe")])))


scram("an unknown token", "xx", "pw", by_token=True)


@case("a token that has expired")
def _(talk: Talk) -> None:
    client = talk.let_in()
    token = made(talk, client, max_lifetime_ms=300)
    time.sleep(1)
    talk.saw(client.call(ApiKey.RENEW_DELEGATION_TOKEN, 2, renewal(bytes(token.hmac))))
    talk.saw(client.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, expiry(bytes(token.hmac), 5)))
    by_token(talk, token, "SCRAM-SHA-256")


# ---- the two brokers

Ports = tuple[int, int]
"""The ports of the PLAINTEXT listener and of the one that authenticates."""


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


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    with kafka_at(tmp_path_factory.mktemp("kafka"), SETTINGS) as ports:
        yield ports


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    with ours_at(tmp_path_factory.mktemp("ours"), SETTINGS) as ports:
        yield ports


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


def seen_at(ports: Ports, act: Callable[[Talk], None]) -> list[Seen]:
    with closing(Talk(*ports)) as talk:
        act(talk)
        return talk.seen


@pytest.mark.parametrize("name", CASES)
def test_both_do_the_same(kafka: Ports, ours: Ports, name: str) -> None:
    at_kafka, here = (seen_at(ports, CASES[name]) for ports in (kafka, ours))
    if name in DIFFERENCES:
        assert at_kafka != here, "no difference any more"
    else:
        assert here == at_kafka


# ---- with an authorizer

AUTHORIZED = {
    **SETTINGS,
    f"{_OWN}plain.sasl.jaas.config": f"{_MODULE}.plain.PlainLoginModule required"
    ' user_alice="alice-secret" user_bob="b" user_admin="a" user_eve="e";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
}
MAY_CREATE_FOR_BOB = AclCreation(
    resource_type=ResourceType.USER,
    resource_name="User:bob",
    principal="User:alice",
    host="*",
    operation=Operation.CREATE_TOKENS,
    permission_type=PermissionType.ALLOW,
)


def token_for_another_owner(talk: Talk) -> list[bool]:
    """Alice requests a token that Bob owns: who sees it, asked for which owners."""
    admin = talk.client(plain=True)
    rules = CreateAclsRequest(creations=[MAY_CREATE_FOR_BOB])
    admin.call(ApiKey.CREATE_ACLS, 3, rules)
    assert [result.error_code for result in admin.answer.results] == [0]
    time.sleep(1)
    for_bob = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    token = made(talk, talk.let_in(), **for_bob)
    await_token(talk, token)
    is_seen = []
    for login, owner in (
        (RIGHT, None),
        (RIGHT, "alice"),
        (RIGHT, "bob"),
        (b"\0bob\0b", "alice"),
        (b"\0admin\0a", "alice"),
        (RIGHT, "eve"),
        (b"\0eve\0e", "alice"),
    ):
        client = talk.client()
        talk.saw(client.shake(), client.say(login))
        asked = description(None if owner is None else [("User", owner)])
        talk.saw(client.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, asked))
        is_seen.append(any(one.token_id == token.token_id for one in client.answer.tokens))
    client = talk.let_in()
    talk.saw(
        client.call(ApiKey.RENEW_DELEGATION_TOKEN, 2, renewal(bytes(token.hmac))),
        client.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, expiry(bytes(token.hmac))),
    )
    return is_seen


def test_the_requester_of_a_token_sees_it_at_both(tmp_path: Path) -> None:
    seen = []
    for at, name in ((kafka_at, "kafka"), (ours_at, "ours")):
        with at(tmp_path / name, AUTHORIZED) as ports, closing(Talk(*ports)) as talk:
            assert token_for_another_owner(talk) == [True] * 5 + [False] * 2
            seen.append(talk.seen)
    assert seen[0] == seen[1]
