"""Delegation tokens at a listener that authenticates: Apache Kafka and this broker see them.

As `test_sasl_against_kafka.py` has it.
"""

import base64
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from protocol.acls.vocabulary import SUPPORTED, Operation, PermissionType, ResourceType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
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
    Both,
    Cases,
    Talk,
    both_at,
    compare,
    seen_at_both,
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


def await_token(talk: Talk, token: Any, *, gone: bool = False, login: bytes = RIGHT) -> None:
    """Wait until Kafka's broker has read the token from its controller, or its end if `gone`."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        client = talk.client()
        client.shake()
        client.say(login)
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
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with both_at(tmp_path_factory.mktemp("both"), SETTINGS) as both:
        yield both


@pytest.mark.parametrize("name", CASES)
def test_both_do_the_same(both: Both, name: str) -> None:
    compare(both, CASES[name], differs=name in REFUSED_LATER)


# ---- with an authorizer

Grant = tuple[ResourceType, Operation]
KINDS = (ResourceType.USER, ResourceType.DELEGATION_TOKEN)
GRANTS: tuple[Grant, ...] = tuple(
    (kind, operation) for kind in KINDS for operation in (*SUPPORTED[kind], Operation.ALL)
)
CLIENTS: dict[str, tuple[Grant, PermissionType] | None] = {
    "none": None,
    **{f"may{n}": (grant, PermissionType.ALLOW) for n, grant in enumerate(GRANTS)},
    **{f"not{n}": (grant, PermissionType.DENY) for n, grant in enumerate(GRANTS)},
}
"""The only grant of each client, or the only operation that is denied to it."""
AUTHORIZED = {
    **SETTINGS,
    f"{OWN}plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required"
    ' user_alice="alice-secret" user_bob="b" user_admin="a" user_eve="e"'
    + "".join(f' user_{name}="x"' for name in CLIENTS)
    + ";",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
}
FOR_BOB = {"owner_principal_type": "User", "owner_principal_name": "bob"}


def rule(client: str, grant: Grant, permission: PermissionType) -> AclCreation:
    kind, operation = grant
    is_about_bob = kind is ResourceType.USER and permission is PermissionType.ALLOW
    return AclCreation(
        resource_type=kind,
        resource_name="User:bob" if is_about_bob and operation is not Operation.ALL else "*",
        principal=f"User:{client}",
        host="*",
        operation=operation,
        permission_type=permission,
    )


def make_rules(talk: Talk, rules: Sequence[AclCreation]) -> None:
    admin = talk.client(plain=True)
    admin.call(ApiKey.CREATE_ACLS, 3, CreateAclsRequest(creations=rules))
    assert {result.error_code for result in admin.answer.results} == {0}
    time.sleep(1)  # Kafka's broker reads them from its controller


def log_in(talk: Talk, login: bytes) -> Probe:
    client = talk.client()
    talk.saw(client.shake(), client.say(login))
    return client


def token_for_another_owner(talk: Talk) -> list[bool]:
    """Alice requests a token that Bob owns: who sees it, asked for which owners."""
    make_rules(
        talk,
        [rule("alice", (ResourceType.USER, Operation.CREATE_TOKENS), PermissionType.ALLOW)],
    )
    token = made(talk, talk.let_in(), **FOR_BOB)
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
        client = log_in(talk, login)
        asked = description(None if owner is None else [("User", owner)])
        talk.saw(client.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, asked))
        is_seen.append(any(one.token_id == token.token_id for one in client.answer.tokens))
    client = talk.let_in()
    talk.saw(
        client.call(ApiKey.RENEW_DELEGATION_TOKEN, 2, renewal(bytes(token.hmac))),
        client.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, expiry(bytes(token.hmac))),
    )
    owner_of_it = log_in(talk, b"\0bob\0b")
    talk.saw(owner_of_it.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, expiry(bytes(token.hmac))))
    await_token(talk, token, gone=True)
    return is_seen


def tokens_by_grants(talk: Talk) -> dict[str, tuple[int, list[list[str]]]]:
    """Each client requests a token that Bob owns, and asks for tokens.

    Return the error of the request and, for each question, the requesters of the tokens seen.
    """
    rules = [rule(name, *given) for name, given in CLIENTS.items() if given is not None]
    rules += [
        rule(name, (kind, Operation.ALL), PermissionType.ALLOW)
        for name in CLIENTS
        if name.startswith("not")
        for kind in KINDS
    ]
    make_rules(talk, rules)
    logins = {name: f"\0{name}\0x".encode() for name in CLIENTS}
    answers = [made(talk, log_in(talk, login), **FOR_BOB) for login in logins.values()]
    for answer in answers:
        if answer.error_code == ErrorCode.NONE:
            await_token(talk, answer, login=b"\0admin\0a")
    questions: list[list[tuple[str, str]] | None] = [None, [("User", "bob")], [("User", "alice")]]
    found = {}
    for (name, login), answer in zip(logins.items(), answers, strict=True):
        client = log_in(talk, login)
        seen: list[list[str]] = []
        for owners in questions:
            talk.saw(client.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, description(owners)))
            seen.append(sorted(one.token_requester_principal_name for one in client.answer.tokens))
        found[name] = (answer.error_code, seen)
    return found


@pytest.fixture(scope="module")
def authorized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Apache Kafka and this broker, with an authorizer."""
    with both_at(tmp_path_factory.mktemp("authorized"), AUTHORIZED) as both:
        yield both


def test_the_requester_of_a_token_sees_it_at_both(authorized: Both) -> None:
    def act(talk: Talk) -> None:
        assert token_for_another_owner(talk) == [True] * 5 + [False] * 2

    compare(authorized, act, differs=False)


def test_s_acl_1_rules_about_users_and_tokens_allow_the_same(authorized: Both) -> None:
    found = []
    seen = seen_at_both(authorized, lambda talk: found.append(tokens_by_grants(talk)))
    assert found[0] == found[1]
    assert seen[0] == seen[1]
    # The table tells each grant from none.
    assert len({repr(one) for one in found[0].values()}) >= 4
