"""TLS handshakes: how many, in how many threads, and for how long (decision 90).

A handshake costs the broker a signature, and fifty kilobytes until it is done, before the broker
knows its client. So these are its rules, and the event loop serves all others meanwhile:

1. A connection takes a place when its first bytes are there. There are `most` places, and at most
   `most_of_address` for one address. If none is free the addresses take turns, and the bytes stay
   in the socket. A client that sends its end meanwhile loses its turn, because it cannot shake
   hands any more.
2. Long computations run in threads (`TlsStream.advance`), `threads` at the same time, and the
   addresses take turns there, too. The end of a handshake of TLS 1.3 is cheap and runs at once.
3. While a connection waits for a place, handshakes end that have waited for their client for
   `SILENCE_S`: first those of the address that has most, and of these the one that has waited
   longest.
4. A handshake is done `longest_s` after the connection's first moment, and with `MOST_BYTES` of the
   client, or the connection ends.

A handshake that fails is counted, and logged in Kafka's words: a line for each kind of reason, at
most every ten seconds. The client has a moment to read the reason.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from broker.fairness import InTurn, Lane
from broker.network.endings import ClientGone
from broker.network.handshake_refusals import HandshakeRefusal, refusal_of
from broker.request import ConnectionInfo
from broker.world.tls_stream import NoTls, TlsFailure, TlsStream
from storage.clock import Clock
from storage.logging_limit import LoggingLimit
from storage.waits import Signal, sleep

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 64 * 1024
"""The most that a client sends: a chain of ten certificates has ten thousand bytes."""
SILENCE_S: Final = 1.0
LOOK_S: Final = 0.25
"""How often rules 3 and 4 are looked at while handshakes are under way."""
READING_S: Final = 1.0
"""How long a client that was refused may take to read why, before it is closed."""
_DRAINED: Final = memoryview(bytearray(4096))


class HandshakeFailed(ConnectionAbortedError):
    """A handshake failed, which is logged and counted; the connection ends."""


class Unacceptable(Exception):
    """Raised by `Judge.principal`: the handshake is done, but its client is not let in."""

    def __init__(self, refusal: HandshakeRefusal, detail: str = "") -> None:
        super().__init__(refusal, detail)
        self.refusal: Final = refusal
        self.detail: Final = detail


class Judge(Protocol):
    """The part of `broker.network.tls_listeners.TlsListener` that is used here."""

    def principal(self, stream: TlsStream) -> str | None:
        """Return the client's principal by its certificate; None if it has none.

        Raises Unacceptable.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeBounds:
    """How many handshakes may be under way, and for how long."""

    most: int = 512
    most_of_address: int = 256
    longest_s: float = 30.0
    threads: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeStatistics:
    """Numbers for metrics and tests."""

    under_way: int
    """Connections that have not shaken hands yet."""
    placed: int
    """Those that have a place."""
    waiting: int
    """Those that wait for one."""
    computing: int
    succeeded: Mapping[str, int]
    """Since the start, by listener."""
    failed: Mapping[str, int]
    refused: Mapping[HandshakeRefusal, int]
    """`failed`, by reason."""


class _Handshake:
    """One that is under way."""

    __slots__ = ("address", "ends", "give_up", "info", "is_refused", "waits_since")

    def __init__(self, info: ConnectionInfo, ends: float, give_up: Callable[[], object]) -> None:
        self.info = info
        self.address = info.peer_host
        self.ends = ends
        """When it has to be over."""
        self.give_up = give_up
        """Ends the connection."""
        self.waits_since: float | None = None
        """Since when it waits for its client; None while it does not."""
        self.is_refused = False
        """Whether it has failed, which is logged, and its client reads the reason."""


class Handshakes:
    """The handshakes of one broker. Event loop only."""

    def __init__(self, clock: Clock, bounds: HandshakeBounds) -> None:
        self._clock = clock
        self._bounds = bounds
        self._under_way: dict[_Handshake, None] = {}
        self._placed: dict[_Handshake, None] = {}
        self._of_address: Counter[str] = Counter()
        """`_placed`, by address."""
        self._waiting: InTurn[_Handshake] = InTurn(self._may_have_one_more)
        self._threads = Lane(bounds.threads)
        self._begun: Signal[None] = Signal()
        self._logging = {refusal: LoggingLimit(clock) for refusal in HandshakeRefusal}
        self._refused: Counter[HandshakeRefusal] = Counter()
        self._succeeded: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()

    def statistics(self) -> HandshakeStatistics:
        """A snapshot."""
        return HandshakeStatistics(
            under_way=len(self._under_way),
            placed=len(self._placed),
            waiting=len(self._waiting),
            computing=self._threads.busy,
            succeeded=dict(self._succeeded),
            failed=dict(self._failed),
            refused=dict(self._refused),
        )

    async def shake(
        self, stream: TlsStream, info: ConnectionInfo, judge: Judge, give_up: Callable[[], object]
    ) -> str | None:
        """Shake hands with a client; return its principal, if its certificate has one.

        `give_up` ends the connection. Raises HandshakeFailed, after the alert was sent, and
        OSError.
        """
        now = self._clock.monotonic()
        shake = _Handshake(info, now + self._bounds.longest_s, give_up)
        self._under_way[shake] = None
        self._begun.fire()
        try:
            await stream.readable
            try:
                await self._enter(shake)
            except ClientGone:
                self._note(info, HandshakeRefusal.CLOSED, "")
                raise
            try:
                refusal, detail = await self._carry_out(stream, shake)
                if refusal is None:
                    principal = judge.principal(stream)
                    self._succeeded[info.listener_name] += 1
                    return principal
            except Unacceptable as unacceptable:
                refusal, detail = unacceptable.refusal, unacceptable.detail
            except HandshakeFailed:
                raise
            except OSError:  # it was reset
                if shake.is_refused:
                    raise
                refusal, detail = HandshakeRefusal.CLOSED, ""
        finally:
            del self._under_way[shake]
            self._leave(shake)
        self._note(info, refusal, detail)
        raise HandshakeFailed(refusal.value)

    # ---- one handshake

    async def _carry_out(
        self, stream: TlsStream, shake: _Handshake
    ) -> tuple[HandshakeRefusal, str] | tuple[None, str]:
        """Shake hands; return why it failed, or None. Raises OSError."""
        outcome: bool | TlsFailure = False
        while not outcome:
            try:
                size = stream.feed()
            except BlockingIOError:
                size = -1
            except NoTls as error:
                return HandshakeRefusal.NO_TLS, _guess(error.first, shake.info.security_protocol)
            if size < 0:  # not above: the exception would be kept while this waits
                await self._wait(shake, stream)
                continue
            if not size:
                if not stream.fed:  # somebody tried whether the port is open
                    raise HandshakeFailed("it said nothing")
                return HandshakeRefusal.CLOSED, ""
            if stream.is_cheap(size):
                outcome = stream.advance()
            else:
                outcome = await self._threads.call(stream.advance)
            if isinstance(outcome, TlsFailure):
                refusal, detail = refusal_of(outcome)
                shake.is_refused = True
                self._note(shake.info, refusal, detail)
                await self._end(stream, shake)
                raise HandshakeFailed(refusal.value)
            # The last bytes that were fed may be requests already.
            if not outcome and stream.fed > MOST_BYTES:
                return HandshakeRefusal.TOO_MUCH, ""
            stream.flush()
        while not stream.flush():
            await self._wait(shake, stream)
        return None, ""

    async def _wait(self, shake: _Handshake, stream: TlsStream) -> None:
        """Wait for the client: for its bytes, or until it takes ours."""
        shake.waits_since = self._clock.monotonic()
        await stream.readable
        shake.waits_since = None
        stream.flush()

    async def _end(self, stream: TlsStream, shake: _Handshake) -> None:
        """Let the client read the alert: closing over its unread bytes would take it away."""
        shake.ends = min(shake.ends, self._clock.monotonic() + READING_S)
        with suppress(OSError):
            stream.flush()
            while True:
                try:
                    size = stream.below.recv_into(_DRAINED)
                except BlockingIOError:
                    size = -1
                if size < 0:
                    await self._wait(shake, stream)
                elif not size:
                    return

    # ---- places

    async def _enter(self, shake: _Handshake) -> None:
        if len(self._placed) < self._bounds.most and self._may_have_one_more(shake.address):
            self._place(shake)
        else:  # a handshake that ends after it was called gives its place back in `_leave`
            await self._waiting.wait(shake, lambda: None, parked=True)

    def _may_have_one_more(self, address: str) -> bool:
        return self._of_address[address] < self._bounds.most_of_address

    def _place(self, shake: _Handshake) -> None:
        self._placed[shake] = None
        self._of_address[shake.address] += 1

    def _leave(self, shake: _Handshake) -> None:
        if shake in self._placed:
            del self._placed[shake]
            self._of_address[shake.address] -= 1
            if not self._of_address[shake.address]:
                del self._of_address[shake.address]
            self._give_places()

    def _give_places(self) -> None:
        while len(self._placed) < self._bounds.most:
            following = self._waiting.next()
            if following is None:
                return
            self._place(following.who)
            self._waiting.admit(following)

    # ---- rules 3 and 4

    async def run(self) -> None:
        """Look after the handshakes until ended."""
        while True:
            if not self._under_way:
                self._begun = Signal()
                await self._begun
            await sleep(LOOK_S)
            self.relieve()

    def relieve(self) -> None:
        """End handshakes that take too long, or keep others waiting."""
        now = self._clock.monotonic()
        for shake in [shake for shake in self._under_way if shake.ends <= now]:
            self._give_up(shake, HandshakeRefusal.SLOW)
        if not self._waiting:
            return
        full = len(self._placed) >= self._bounds.most
        wanted = self._waiting.addresses
        stalled = [
            (-self._of_address[shake.address], shake.waits_since, number, shake)
            for number, shake in enumerate(self._placed)
            if shake.waits_since is not None
            and now - shake.waits_since >= SILENCE_S
            and (full or shake.address in wanted)
        ]
        for *_, shake in sorted(stalled)[: len(self._waiting)]:
            self._give_up(shake, HandshakeRefusal.CROWD)

    def _give_up(self, shake: _Handshake, refusal: HandshakeRefusal) -> None:
        shake.ends = float("inf")  # once
        shake.waits_since = None
        if not shake.is_refused:
            self._note(shake.info, refusal, "")
        shake.give_up()

    # ---- logged and counted

    def _note(self, info: ConnectionInfo, refusal: HandshakeRefusal, detail: str) -> None:
        self._failed[info.listener_name] += 1
        self._refused[refusal] += 1
        events = self._logging[refusal].count_event()
        if events:
            logger.info(
                "Failed authentication with /%s (SSL handshake failed: %s%s) on listener %s (%d"
                " times)",
                info.peer_host,
                refusal.value,
                f": {detail}" if detail else "",
                info.listener_name,
                events,
            )


def _guess(first: bytes, protocol: str) -> str:
    """Describe a client that does not speak TLS, by its first bytes."""
    if first[:1] == b"\0":
        return f"it is a Kafka client without TLS, which needs security.protocol={protocol} here"
    if first[:4] in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI"):
        return "it asks for a page, by HTTP"
    return "its first bytes are " + first.hex()
