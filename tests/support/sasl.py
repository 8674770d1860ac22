"""Clients and listeners of SASL, for tests without a network."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from broker.deadlines import Deadlines
from broker.request import RequestContext
from broker.security.authentication.authenticator import Authenticator
from broker.security.authentication.limited_lines import LimitedLines
from broker.security.authentication.mechanism import Exchange, Mechanism
from broker.security.authentication.outcomes import (
    AuthenticatedUser,
    Progress,
    RefusedError,
)
from broker.security.authentication.sasl_listener import SaslListener, SaslSurroundings
from protocol.api_keys import ApiKey
from protocol.sasl.scram import ScramMechanism, random_text, salted_password, server_key_of
from protocol.sasl.scram_messages import (
    build_client_final,
    build_client_first,
    parse_server_final,
    parse_server_first,
)
from storage.waits import Signal
from tests.support.api_calls import context
from tests.support.manual_clock import ManualClock

_RANDOM = Random(7)


def scram_messages(
    mechanism: ScramMechanism,
    user: str,
    password: str,
    *,
    by_token: bool = False,
    change: Callable[[bytes], bytes] = lambda message: message,
) -> Iterator[bytes]:
    """Yield the messages of a client; `send` it the answers. Asserts the server's signature.

    `change` is applied to the last message.
    """
    first = build_client_first(user, random_text(_RANDOM.getrandbits), by_token=by_token)
    answer = parse_server_first((yield first.data), first)  # type: ignore[misc]
    salted = salted_password(mechanism, password, answer.salt, answer.iterations)
    final, signed = build_client_final(mechanism, first, answer, salted)
    end: bytes = yield change(final)  # type: ignore[misc]
    signature = mechanism.hmac(server_key_of(mechanism, salted), signed)
    assert parse_server_final(end) == signature


@dataclass
class FakeMechanism:
    """A mechanism of which a client says `who`, `who more`, or a word that has a meaning below."""

    name: str = "FAKE"
    max_reauth_ms: int = 0
    expires_ms: int | None = None
    waits_for: Signal[None] | None = None
    """Fired by the test, before a message is evaluated."""

    def begin(self) -> Exchange:
        return _FakeExchange(self)


class _FakeExchange:
    def __init__(self, mechanism: FakeMechanism) -> None:
        self._mechanism = mechanism

    async def evaluate(self, message: bytes) -> Progress:
        if self._mechanism.waits_for is not None:
            await self._mechanism.waits_for
        text = message.decode()
        if text.endswith(" more"):
            return Progress(b"go on")
        if text == "bad":
            return Progress(b"bad", refusal="bad: it has expired")
        if text == "heard":
            raise RefusedError("bad", is_logged=True)
        if text == "crash":
            raise RuntimeError("a bug")
        if text == "told":
            raise RefusedError("the client learns this")
        if text == "wrong":
            raise RefusedError(why="the client does not learn this")
        user = AuthenticatedUser(text, expires_ms=self._mechanism.expires_ms)
        return Progress(b"welcome", user)


@dataclass
class Door:
    """A listener with fake mechanisms, and what its connections do."""

    mechanisms: tuple[Mechanism, ...] = (FakeMechanism(), FakeMechanism("OTHER"))
    delay_s: float = 0.0
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.deadlines = Deadlines(self.clock)  # type: ignore[arg-type]
        self.listener = SaslListener(
            "SASL",
            self.mechanisms,
            SaslSurroundings(
                clock=self.clock,
                deadlines=self.deadlines,
                lines=LimitedLines(self.clock),
                delay_s=self.delay_s,
            ),
            max_receive_bytes=1000,
        )

    def authenticator(self) -> Authenticator:
        return Authenticator(self.listener, "1.2.3.4:9092-5.6.7.8:5000-1", "5.6.7.8")


def handshake_context(version: int = 1) -> RequestContext:
    return context(ApiKey.SASL_HANDSHAKE, version)


def token_context(version: int = 1) -> RequestContext:
    return context(ApiKey.SASL_AUTHENTICATE, version)
