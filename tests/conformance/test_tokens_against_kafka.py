"""Delegation tokens at a listener that authenticates: Apache Kafka and this broker see them.

As `test_sasl_against_kafka.py` has it.
"""

import base64
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from protocol.acls.vocabulary import Operation, PermissionType, ResourceType
from protocol.api_keys import ApiKey
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.create_delegation_token import (
    CreatableRenewer,
    CreateDelegationTokenRequest,
)
from protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.support.sasl_probe import Probe
from tests.support.sasl_talk import (
    MODULES,
    OWN,
    RIGHT,
    SETTINGS,
    Cases,
    Ports,
    Talk,
    kafka_at,
    ours_at,
    seen_at,
)

pytestmark = pytest.mark.conformance

CASES = Cases()
REFUSED_LATER = ("an unknown token", "a token that has expired")
"""Kafka refuses the first message of SCRAM, this broker the second (S-SEC-3)."""
case = CASES.add


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


@case("an unknown token")
def _(talk: Talk) -> None:
    client = talk.client()
    talk.saw(*client.scram("xx", "pw", by_token=True))
    talk.served(client)


@case("a token that has expired")
def _(talk: Talk) -> None:
    client = talk.let_in()
    token = made(talk, client, max_lifetime_ms=300)
    time.sleep(1)
    talk.saw(client.call(ApiKey.RENEW_DELEGATION_TOKEN, 2, renewal(bytes(token.hmac))))
    talk.saw(client.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, expiry(bytes(token.hmac), 5)))
    by_token(talk, token, "SCRAM-SHA-256")


# ---- the two brokers


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    with kafka_at(tmp_path_factory.mktemp("kafka"), SETTINGS) as ports:
        yield ports


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    with ours_at(tmp_path_factory.mktemp("ours"), SETTINGS) as ports:
        yield ports


@pytest.mark.parametrize("name", CASES)
def test_both_do_the_same(kafka: Ports, ours: Ports, name: str) -> None:
    at_kafka, here = (seen_at(ports, CASES[name]) for ports in (kafka, ours))
    if name in REFUSED_LATER:
        assert at_kafka != here, "no difference any more"
    else:
        assert here == at_kafka


# ---- with an authorizer

AUTHORIZED = {
    **SETTINGS,
    f"{OWN}plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required"
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
