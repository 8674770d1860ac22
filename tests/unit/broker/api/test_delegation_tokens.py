"""The four APIs of delegation tokens over the wire, in every version (KIP-48, KIP-373)."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from broker.api.create_delegation_token import API as CREATE
from broker.api.create_delegation_token import CreateDelegationTokenHandler
from broker.api.describe_delegation_token import API as DESCRIBE
from broker.api.describe_delegation_token import DescribeDelegationTokenHandler
from broker.api.expire_delegation_token import API as EXPIRE
from broker.api.expire_delegation_token import ExpireDelegationTokenHandler
from broker.api.renew_delegation_token import API as RENEW
from broker.api.renew_delegation_token import RenewDelegationTokenHandler
from broker.fairness import Lane
from broker.request import ConnectionInfo, RequestContext
from broker.security.access import Operation, ResourceType
from broker.security.delegation_tokens import DelegationTokens, TokenSettings
from protocol.errors import ErrorCode
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
from storage.waits import at_once
from tests.support.api_calls import CONNECTION, call
from tests.support.manual_clock import ManualClock
from tests.support.stores import new_uuid, open_store

HOUR_MS = 3_600_000
ALICE = replace(CONNECTION, security_protocol="SASL_PLAINTEXT", principal="User:alice")
BOB = replace(ALICE, principal="User:bob")
NOT_ALLOWED = [
    CONNECTION,
    replace(CONNECTION, security_protocol="SSL"),
    replace(ALICE, by_token=True),
]
"""Connections that have not proved who they are, or by a token."""
DISABLED = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
REFUSED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
MISMATCH = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
MISSING = ErrorCode.DELEGATION_TOKEN_NOT_FOUND


class Bench:
    """The tokens, and who asks for what."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.asked: list[tuple[str, Operation, ResourceType, str]] = []
        self.denied: set[tuple[Operation, str]] = set()
        self.tokens: DelegationTokens | None = DelegationTokens(
            at_once(open_store()),
            self.clock,
            TokenSettings(secret=b"key", max_lifetime_ms=24 * HOUR_MS, expiry_ms=HOUR_MS),
            new_id=new_uuid,
            random_bits=Random(1).getrandbits,
            lane=Lane(1),
        )
        at_once(self.tokens.load())
        self.allowed: Callable[..., bool] | None = None

    def authorize(self) -> None:
        """Ask for rights from now on; all are granted but those in `denied`."""

        def allowed(
            ctx: RequestContext, operation: Operation, kind: ResourceType, name: str
        ) -> bool:
            self.asked.append((ctx.connection.principal, operation, kind, name))
            return (operation, name) not in self.denied

        self.allowed = allowed

    def create(self, client: ConnectionInfo = ALICE, version: int = 3, **fields: Any) -> Any:
        renewers = [
            CreatableRenewer(principal_type=kind, principal_name=name)
            for kind, name in fields.pop("renewers", ())
        ]
        request = CreateDelegationTokenRequest(
            **{
                "owner_principal_type": None,
                "owner_principal_name": None,
                "renewers": renewers,
                "max_lifetime_ms": -1,
                **fields,
            }
        )
        handler = CreateDelegationTokenHandler(self.tokens, self.allowed)
        return call(handler, CREATE.key, version, request, connection=client)

    def renew(self, secret: bytes, client: ConnectionInfo = ALICE, version: int = 2) -> Any:
        request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=-1)
        handler = RenewDelegationTokenHandler(self.tokens)
        return call(handler, RENEW.key, version, request, connection=client)

    def expire(
        self, secret: bytes, period_ms: int = -1, client: ConnectionInfo = ALICE, version: int = 2
    ) -> Any:
        request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
        handler = ExpireDelegationTokenHandler(self.tokens)
        return call(handler, EXPIRE.key, version, request, connection=client)

    def describe(
        self, *owners: str, client: ConnectionInfo = ALICE, version: int = 3, every: bool = False
    ) -> Any:
        named = [
            DescribeDelegationTokenOwner(principal_type="User", principal_name=name)
            for name in owners
        ]
        request = DescribeDelegationTokenRequest(owners=None if every else named)
        handler = DescribeDelegationTokenHandler(self.tokens, self.allowed)
        return call(handler, DESCRIBE.key, version, request, connection=client)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def versions(api: Any) -> range:
    return range(api.versions[0], api.versions[1] + 1)


@pytest.mark.parametrize("version", versions(CREATE))
def test_a_token_is_made_in_every_version(bench: Bench, version: int) -> None:
    made = bench.create(version=version, renewers=[("User", "carol")], max_lifetime_ms=2 * HOUR_MS)
    now = bench.clock.wall_ms()
    assert made.error_code == 0
    assert (made.principal_type, made.principal_name) == ("User", "alice")
    assert made.issue_timestamp_ms == now
    assert (made.expiry_timestamp_ms, made.max_timestamp_ms) == (now + HOUR_MS, now + 2 * HOUR_MS)
    assert (len(made.token_id), len(made.hmac)) == (22, 64)
    if version >= 3:
        asked = made.token_requester_principal_type, made.token_requester_principal_name
        assert asked == ("User", "alice")


@pytest.mark.parametrize("version", versions(DESCRIBE))
def test_a_token_is_described_in_every_version(bench: Bench, version: int) -> None:
    made = bench.create(
        renewers=[("User", "carol")], owner_principal_type="User", owner_principal_name="bob"
    )
    (token,) = bench.describe(every=True, version=version).tokens
    assert (token.principal_type, token.principal_name) == ("User", "bob")
    assert (token.token_id, bytes(token.hmac)) == (made.token_id, bytes(made.hmac))
    times = token.issue_timestamp, token.expiry_timestamp, token.max_timestamp
    now = bench.clock.wall_ms()
    assert times == (now, now + HOUR_MS, now + 24 * HOUR_MS)
    renewers = [(one.principal_type, one.principal_name) for one in token.renewers]
    assert renewers == [("User", "carol")]
    if version >= 3:
        assert token.token_requester_principal_name == "alice"


@pytest.mark.parametrize("version", versions(RENEW))
def test_a_token_is_renewed_and_expired_in_every_version(bench: Bench, version: int) -> None:
    secret = bytes(bench.create().hmac)
    bench.clock.advance(60)
    answer = bench.renew(secret, version=version)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, bench.clock.wall_ms() + HOUR_MS)
    answer = bench.expire(secret, 1000, version=version)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, bench.clock.wall_ms() + 1000)
    answer = bench.expire(secret, -1, version=version)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, bench.clock.wall_ms())
    assert bench.expire(secret, -1, version=version).error_code == MISSING
    assert bench.renew(secret, version=version).error_code == MISSING
    assert list(bench.describe(every=True).tokens) == []


@pytest.mark.parametrize("client", NOT_ALLOWED)
def test_a_client_without_a_login_or_with_a_token_as_login_is_refused(
    bench: Bench, client: ConnectionInfo
) -> None:
    secret = bytes(bench.create().hmac)
    made = bench.create(client)
    assert (made.error_code, made.token_id, made.hmac) == (REFUSED, "", b"")
    times = made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms
    assert times == (-1, -1, -1)
    assert bench.renew(secret, client).error_code == REFUSED
    assert bench.expire(secret, client=client).error_code == REFUSED
    described = bench.describe(every=True, client=client)
    assert (described.error_code, list(described.tokens)) == (REFUSED, [])


def test_a_client_with_a_certificate_has_proved_who_it_is(bench: Bench) -> None:
    by_certificate = replace(CONNECTION, security_protocol="SSL", principal="User:CN=alice")
    made = bench.create(by_certificate)
    assert (made.error_code, made.principal_name) == (0, "CN=alice")
    so_called = replace(ALICE, principal="User:ANONYMOUS")
    assert bench.create(so_called).error_code == 0


def test_without_a_secret_tokens_are_disabled(bench: Bench) -> None:
    bench.tokens = None
    assert bench.create().error_code == DISABLED
    assert bench.renew(b"x").error_code == DISABLED
    assert bench.expire(b"x").error_code == DISABLED
    assert bench.describe(every=True).error_code == DISABLED
    # Kafka checks first that the connection may ask at all, and that each renewer is a user.
    assert bench.create(CONNECTION).error_code == REFUSED
    group = bench.create(renewers=[("Group", "x")])
    assert group.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_renewers_are_users() -> None:
    made = Bench().create(renewers=[("User", "bob"), ("Group", "x")])
    assert (made.error_code, made.principal_name) == (ErrorCode.INVALID_PRINCIPAL_TYPE, "alice")


def test_another_owner_is_told_with_the_error(bench: Bench) -> None:
    bench.authorize()
    bench.denied.add((Operation.CREATE_TOKENS, "User:bob"))
    owner = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    made = bench.create(**owner)
    assert made.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (made.principal_name, made.token_requester_principal_name) == ("bob", "alice")
    assert bench.asked == [("User:alice", Operation.CREATE_TOKENS, ResourceType.USER, "User:bob")]
    bench.denied.clear()
    assert bench.create(**owner).error_code == 0
    bench.asked.clear()
    assert bench.create(**{**owner, "owner_principal_name": "alice"}).error_code == 0
    assert bench.create().error_code == 0
    assert bench.asked == []


def test_owner_and_renewers_may_renew_and_expire_and_others_not(bench: Bench) -> None:
    secret = bytes(bench.create(renewers=[("User", "bob")]).hmac)
    carol = replace(ALICE, principal="User:carol")
    assert bench.renew(secret, BOB).error_code == 0
    assert bench.renew(secret, carol).error_code == MISMATCH
    assert bench.expire(secret, client=carol).error_code == MISMATCH
    assert bench.expire(secret, client=BOB).error_code == 0


def test_a_user_sees_its_own_tokens_and_those_that_rules_allow(bench: Bench) -> None:
    alices = bench.create(renewers=[("User", "bob")]).token_id
    bobs = bench.create(BOB).token_id
    carol = replace(ALICE, principal="User:carol")
    carols = bench.create(carol).token_id

    def seen(*owners: str, client: ConnectionInfo, every: bool = False) -> set[str]:
        answer = bench.describe(*owners, client=client, every=every)
        assert answer.error_code == 0
        return {token.token_id for token in answer.tokens}

    assert seen(client=ALICE, every=True) == {alices, bobs, carols}
    assert seen(client=ALICE) == set()
    assert seen("bob", client=ALICE) == {alices, bobs}  # as renewer, too
    assert seen("carol", "nobody", client=ALICE) == {carols}
    bench.authorize()
    for token, owner in ((alices, "alice"), (bobs, "bob"), (carols, "carol")):
        bench.denied |= {
            (Operation.DESCRIBE, token),
            (Operation.DESCRIBE_TOKENS, f"User:{owner}"),
        }
    assert seen(client=BOB, every=True) == {alices, bobs}
    assert seen(client=carol, every=True) == {carols}
    assert bench.asked[:2] == [
        ("User:bob", Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, carols),
        ("User:bob", Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:carol"),
    ]
    bench.denied.discard((Operation.DESCRIBE, carols))
    assert seen(client=BOB, every=True) == {alices, bobs, carols}
    bench.denied.discard((Operation.DESCRIBE_TOKENS, "User:alice"))
    assert seen(client=carol, every=True) == {alices, carols}
    assert seen("bob", client=carol) == {alices}


def test_the_requester_sees_a_token_that_it_made_for_another_owner_and_may_not_renew_it(
    bench: Bench,
) -> None:
    bench.authorize()
    made = bench.create(owner_principal_type="User", owner_principal_name="bob")
    secret = bytes(made.hmac)
    bench.denied |= {(Operation.DESCRIBE, made.token_id), (Operation.DESCRIBE_TOKENS, "User:bob")}

    def seen(*owners: str, client: ConnectionInfo, every: bool = False) -> bool:
        tokens = bench.describe(*owners, client=client, every=every).tokens
        return [token.token_id for token in tokens] == [made.token_id]

    assert seen(client=ALICE, every=True)
    assert seen("alice", client=ALICE)
    assert seen("bob", client=ALICE)
    assert seen("alice", client=BOB)
    assert not seen("carol", client=ALICE)
    carol = replace(ALICE, principal="User:carol")
    assert not seen("alice", client=carol)
    bench.denied.clear()
    assert seen("alice", client=carol)
    assert bench.renew(secret).error_code == MISMATCH
    assert bench.expire(secret).error_code == MISMATCH
    assert bench.renew(secret, BOB).error_code == 0
