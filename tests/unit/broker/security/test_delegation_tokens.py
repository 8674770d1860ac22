import base64
import hashlib
import hmac
import json
import logging
from dataclasses import replace
from random import Random

import pytest

from broker.cluster.embedded_store import EmbeddedStore
from broker.fairness import Lane
from broker.security.authentication.outcomes import AuthenticatedUser
from broker.security.delegation_tokens import (
    LAST_MOMENT_MS,
    DelegationToken,
    DelegationTokens,
    TokenSettings,
)
from broker.security.principal import Principal
from protocol.errors import ErrorCode, KafkaError
from protocol.sasl.scram import ScramMechanism, new_credential
from storage.waits import Call, Work, at_once
from tests.support.begun import begin
from tests.support.manual_clock import ManualClock
from tests.support.stores import new_uuid, open_store, value_of

ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))
DAY_MS = 86_400_000
SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512


def refused(work: Work[object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        at_once(work)
    return caught.value.code


class Bench:
    """Tokens over a store, and a clock."""

    def __init__(self, secret: bytes = b"key") -> None:
        self.store: EmbeddedStore = at_once(open_store())
        self.clock = ManualClock()
        self.secret = secret
        self.tokens = self.another()

    def another(self) -> DelegationTokens:
        """Another broker's, or this one's after a restart."""
        tokens = DelegationTokens(
            self.store,
            self.clock,
            TokenSettings(secret=self.secret, max_lifetime_ms=7 * DAY_MS, expiry_ms=DAY_MS),
            new_id=new_uuid,
            random_bits=Random(1).getrandbits,
            lane=Lane(1),
        )
        at_once(tokens.load())
        return tokens

    def create(self, max_lifetime_ms: int = -1) -> DelegationToken:
        return at_once(self.tokens.create(ALICE, BOB, [CAROL], max_lifetime_ms))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_token_has_the_times_of_the_settings(bench: Bench) -> None:
    token, now = bench.create(), bench.clock.wall_ms()
    assert (token.owner, token.requester, token.renewers) == (ALICE, BOB, (CAROL,))
    times = token.issued_ms - now, token.expires_ms - now, token.max_ms - now
    assert times == (0, DAY_MS, 7 * DAY_MS)
    assert len(token.token_id) == 22


@pytest.mark.parametrize(
    ("wish", "expires", "most"),
    [
        (0, DAY_MS, 7 * DAY_MS),
        (1000, 1000, 1000),
        (2 * DAY_MS, DAY_MS, 2 * DAY_MS),
        (1 << 62, DAY_MS, 7 * DAY_MS),
    ],
)
def test_a_client_may_wish_for_a_shorter_life(
    bench: Bench, wish: int, expires: int, most: int
) -> None:
    token, now = bench.create(wish), bench.clock.wall_ms()
    assert (token.expires_ms - now, token.max_ms - now) == (expires, most)


def test_moments_end_where_a_long_ends(bench: Bench) -> None:
    bench.clock.set_wall_ms(LAST_MOMENT_MS - 5)
    token = bench.create()
    assert token.max_ms == token.expires_ms == LAST_MOMENT_MS


def test_it_is_stored_as_kafkas_zookeeper_mode_does_and_without_its_secret(bench: Bench) -> None:
    token = bench.create()
    value = at_once(value_of(bench.store, f"/delegation_token/tokens/{token.token_id}"))
    assert json.loads(value) == {
        "version": 3,
        "owner": "User%3Aalice",
        "tokenRequester": "User%3Abob",
        "renewers": ["User%3Acarol"],
        "issueTimestamp": token.issued_ms,
        "maxTimestamp": token.max_ms,
        "expiryTimestamp": token.expires_ms,
        "tokenId": token.token_id,
    }
    secret = bench.tokens.hmac(token)
    assert secret == hmac.new(b"key", token.token_id.encode(), hashlib.sha512).digest()
    assert base64.b64encode(secret) not in value
    assert at_once(bench.another().all()) == [token]


def test_tokens_of_kafkas_older_versions_are_read(bench: Bench) -> None:
    old = {
        "version": 1,
        "owner": "User%3Aalice",
        "renewers": [],
        "issueTimestamp": 1,
        "maxTimestamp": 3,
        "expiryTimestamp": 2,
        "tokenId": "t",
    }
    at_once(bench.store.create("/delegation_token/tokens/t", json.dumps(old).encode()))
    (token,) = at_once(bench.another().all())
    assert (token.owner, token.requester) == (ALICE, ALICE)


def test_a_node_that_cannot_be_read_is_logged(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    for number, value in enumerate((b"x", b"{}", b'{"tokenId":"t","owner":"alice"}')):
        at_once(bench.store.create(f"/delegation_token/tokens/{number}", value))
    assert at_once(bench.another().all()) == []
    assert caplog.text.count("/delegation_token/tokens/") == 3


def test_it_authenticates_its_owner_by_the_base64_of_its_hmac(bench: Bench) -> None:
    token = bench.create()
    for tokens in (bench.tokens, bench.another()):
        password = base64.b64encode(tokens.hmac(token)).decode()
        for mechanism in (SHA_256, SHA_512):
            found = at_once(tokens.authenticating(mechanism, token.token_id))
            assert found is not None
            credential, user = found
            salt = credential.salt
            assert credential == new_credential(mechanism, password, salt, 4096)
            assert user == AuthenticatedUser("alice", by_token=True, expires_ms=token.expires_ms)
            assert at_once(tokens.authenticating(mechanism, token.token_id)) == found
    assert at_once(bench.tokens.authenticating(SHA_256, "unknown")) is None


def test_the_password_is_salted_in_a_thread_once(bench: Bench) -> None:
    creating = begin(bench.tokens.create(ALICE, BOB, [], -1))
    token = creating.reply
    assert creating.calls.count(new_credential) == 2
    assert begin(bench.tokens.authenticating(SHA_256, token.token_id)).calls == []
    later = bench.another()
    assert begin(later.authenticating(SHA_256, token.token_id)).calls == [new_credential]
    assert begin(later.authenticating(SHA_256, token.token_id)).calls == []


def test_an_expired_token_authenticates_nobody(bench: Bench) -> None:
    token = bench.create(1000)
    bench.clock.advance(1)
    assert at_once(bench.tokens.authenticating(SHA_256, token.token_id)) is not None
    bench.clock.advance(ms=1)
    assert at_once(bench.tokens.authenticating(SHA_256, token.token_id)) is None
    assert at_once(bench.tokens.all()) == [token]  # until the task comes by


def test_either_time_ends_it() -> None:
    token = replace(Bench().create(), expires_ms=10, max_ms=20)
    assert [token.has_expired(now) for now in (9, 10, 11, 20, 21)] == [False, False, *[True] * 3]
    of_others = replace(token, expires_ms=20, max_ms=10)
    assert [of_others.has_expired(now) for now in (10, 11)] == [False, True]


def test_a_token_that_goes_while_it_is_salted_leaves_nothing_behind(bench: Bench) -> None:
    token = bench.create()
    later = bench.another()
    salting = later.authenticating(SHA_256, token.token_id)
    wait = salting.send(None)
    assert isinstance(wait, Call)
    at_once(later.expire(ALICE, later.hmac(token), -1))
    with pytest.raises(StopIteration) as end:
        salting.send(wait.work(*wait.values))
    assert end.value.value is not None
    assert later._credentials == {}


@pytest.mark.parametrize(
    ("period_ms", "later"),
    [(-1, DAY_MS), (0, DAY_MS), (1000, 1000), (1 << 62, DAY_MS)],
)
@pytest.mark.parametrize("who", [ALICE, CAROL])
def test_owner_and_renewers_renew_it(
    bench: Bench, who: Principal, period_ms: int, later: int
) -> None:
    token = bench.create()
    bench.clock.advance(5)
    secret = bench.tokens.hmac(token)
    expires_ms = at_once(bench.tokens.renew(who, secret, period_ms))
    assert expires_ms == bench.clock.wall_ms() + later
    assert [one.expires_ms for one in at_once(bench.another().all())] == [expires_ms]


def test_it_is_never_renewed_beyond_its_life(bench: Bench) -> None:
    token = bench.create(2 * DAY_MS)
    secret = bench.tokens.hmac(token)
    bench.clock.advance(DAY_MS / 1000)
    assert at_once(bench.tokens.renew(ALICE, secret, -1)) == token.max_ms
    bench.clock.advance(DAY_MS / 1000, ms=1)
    assert refused(bench.tokens.renew(ALICE, secret, -1)) is ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_it_is_made_to_expire_earlier_or_at_once(bench: Bench) -> None:
    token = bench.create()
    secret, now = bench.tokens.hmac(token), bench.clock.wall_ms()
    assert at_once(bench.tokens.expire(CAROL, secret, 5000)) == now + 5000
    assert at_once(bench.tokens.expire(ALICE, secret, 1 << 62)) == token.max_ms
    assert at_once(bench.tokens.expire(ALICE, secret, 0)) == now
    assert [one.expires_ms for one in at_once(bench.tokens.all())] == [now]
    assert at_once(bench.tokens.expire(ALICE, secret, -1)) == now
    assert at_once(bench.tokens.all()) == []
    assert at_once(bench.another().all()) == []
    not_found = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert refused(bench.tokens.expire(ALICE, secret, -1)) is not_found
    assert refused(bench.tokens.renew(ALICE, secret, -1)) is not_found


def test_the_order_in_which_refusals_are_told_is_kafkas(bench: Bench) -> None:
    token = bench.create(1000)
    secret = bench.tokens.hmac(token)
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    expired = ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert refused(bench.tokens.renew(BOB, secret, -1)) is mismatch
    assert refused(bench.tokens.expire(BOB, secret, -1)) is mismatch
    bench.clock.advance(2)
    assert refused(bench.tokens.renew(BOB, secret, -1)) is expired
    assert refused(bench.tokens.expire(BOB, secret, 5)) is mismatch
    assert refused(bench.tokens.expire(ALICE, secret, 5)) is expired
    assert at_once(bench.tokens.expire(ALICE, secret, -1)) == bench.clock.wall_ms()


def test_the_task_removes_what_has_expired(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    short, long = bench.create(1000), bench.create()
    task = bench.tokens.task(60_000)
    assert (task.name, task.period_ms) == ("delete-expired-tokens", 60_000)
    bench.clock.advance(1, ms=1)
    assert at_once(task.run()) is None
    assert at_once(bench.another().all()) == [long]
    assert f"Delegation token expired for token: {short.token_id} for owner: User:alice" in (
        caplog.text
    )


def test_what_another_broker_writes_is_known(bench: Bench) -> None:
    other = bench.another()
    token = bench.create()
    assert at_once(other.authenticating(SHA_256, token.token_id)) is not None
    at_once(other.expire(ALICE, other.hmac(token), -1))
    assert at_once(bench.tokens.authenticating(SHA_256, token.token_id)) is None
