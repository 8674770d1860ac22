"""Clients of every kind at a listener that authenticates: Apache Kafka and this broker see them.

Each case runs against both brokers, on connections of its own. Their answers are compared field by
field, without times and random values. `DIFFERENCES` lists the cases in which the two differ.
"""

import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from protocol.messages.produce import ProduceRequest
from tests.support.sasl_probe import Probe, Seen
from tests.support.sasl_talk import (
    RIGHT,
    SESSION_S,
    SETTINGS,
    Both,
    Cases,
    Talk,
    Wish,
    alteration,
    both_at,
    compare,
    deletion,
    upsertion,
)

pytestmark = pytest.mark.conformance

VERSIONS, METADATA = ApiKey.API_VERSIONS, ApiKey.METADATA
NAMED = ApiVersionsRequest(client_software_name="a", client_software_version="1")
UNNAMED = ApiVersionsRequest(client_software_name="", client_software_version="")


CASES = Cases()
DIFFERENCES = {
    "during the exchange: Metadata": "Kafka answers with an error where the API has a place for"
    " one, here an empty answer; this broker closes without a word",
    "an unknown user of SCRAM": "Kafka refuses the first message, this broker the second (S-SEC-3)",
    "an empty salted password": "Kafka fails to answer; this broker refuses it",
    "a mandatory extension of SCRAM": "Kafka ignores it",
    "an extension in the last message of SCRAM": "Kafka does not sign it",
    "again with an unknown mechanism": "Kafka closes without an answer",
}


case = CASES.add


# ---- where nobody authenticates


@case("on a PLAINTEXT listener")
def _(talk: Talk) -> None:
    client = talk.client(plain=True)
    talk.saw(client.shake(), client.say(b"x"), client.shake("X", 0), client.say(b"x", 0))
    talk.served(client)


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


# ---- the two brokers


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with both_at(tmp_path_factory.mktemp("both"), SETTINGS) as both:
        yield both


@pytest.mark.parametrize("name", CASES)
def test_both_do_the_same(both: Both, name: str) -> None:
    compare(both, CASES[name], differs=name in DIFFERENCES)
