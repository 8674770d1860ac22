"""One peer's life.

    nothing  ->  (back-off)  ->  opening  ->  connected  ->  nothing

A task lives from the first request to the end of the connection; without requests there is none.
Requests that come before there is a connection queue, and go out in their order when it is open. If
opening it fails, all of the queue get the reason. The next attempt then waits, 50 ms at first and
twice as long each time up to a second, plus or minus a fifth by chance (Kafka's
`ExponentialBackoff` with `reconnect.backoff.ms` and `.max.ms` of `ControllerChannelManager` and
`BrokerBlockingSender`). So a caller that tries again and again needs no pause of its own.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from broker.peers.asked import LATE, Frame, PeerRequest
from broker.peers.connection import PeerConnection, VersionRanges, common_versions
from broker.peers.opening import OpenedPeer, Opener
from broker.peers.peer import PeerError
from broker.peers.surroundings import PeerSurroundings
from broker.peers.traffic import PeerTraffic
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.errors import ProtocolError
from protocol.schema import Message
from tls.problems import TlsProblem

logger = logging.getLogger(__name__)

BACKOFF_S: Final = 0.05
MOST_BACKOFF_S: Final = 1.0
_JITTER: Final = 0.2
_MOST_FAILURES: Final = 10
"""More change nothing: back-off and timeout are at their limits."""
_NONE: Final = (None, None)
_CLOSED: Final = "this broker needs the connection no more"
_STOPS: Final = "this broker stops"
_RENEWED: Final = "the session ends"


class BrokerPeer:
    """See `broker.peers.peer.Peer`."""

    def __init__(
        self,
        broker_id: int,
        endpoint: Listener,
        client_id: str,
        *,
        opener: Opener,
        around: PeerSurroundings,
        setup_s: tuple[float, float],
        start: Callable[["BrokerPeer"], bool],
        traffic: PeerTraffic,
    ) -> None:
        """`setup_s`: how long opening may take, at first and at most. `traffic` is counted in.

        `start` runs `live` in a task; it returns False if this broker starts no more.
        """
        self.broker_id: Final = broker_id
        self.endpoint: Final = endpoint
        self._client_id: Final = client_id.encode()
        self._name: Final = f"broker {broker_id} at {endpoint.host}:{endpoint.port}"
        self._opener: Final = opener
        self._clock: Final = around.clock
        self._deadlines: Final = around.deadlines
        self._driver: Final = around.driver
        self._random: Final = around.random
        self._setup_s: Final = setup_s
        self._start: Final = start
        self._traffic: Final = traffic
        self._connection: PeerConnection | None = None
        self._versions: VersionRanges | None = None
        """The versions that both brokers know, of the last connection."""
        self._queue: deque[PeerRequest] = deque()
        self._scope: trio.CancelScope | None = None
        """The cancel scope of the task, while there is one."""
        self._failures = 0
        """Attempts that failed since the last one that succeeded."""
        self._next_attempt = 0.0
        self._renew_at: float | None = None
        self._is_closed = False

    # ---- see `Peer`

    async def ask(
        self, key: ApiKey, request: Message, *, version: int | None = None, timeout_s: float
    ) -> Message:
        """See `Peer`."""
        asked = PeerRequest(key, request, version)
        frame = await self._reply(asked, timeout_s)
        assert frame is not None
        return await asked.parsed(frame)

    async def ready(self, *, timeout_s: float) -> None:
        """See `Peer`."""
        await self._reply(PeerRequest(ApiKey.API_VERSIONS, None, None), timeout_s)

    def version_of(self, key: ApiKey) -> int | None:
        """See `Peer`."""
        if self._versions is None:
            return None
        return self._versions.get(key, _NONE)[1]

    def close(self) -> None:
        """See `Peer`."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._connection is not None:
            self._connection.end(_CLOSED)
        elif self._scope is not None:
            self._scope.cancel()
        self._fail_queue(_CLOSED)

    # ---- asking

    async def _reply(self, asked: PeerRequest, timeout_s: float) -> Frame | None:
        """Wait for the frame of the reply. Raises PeerError."""
        self._begin(asked)
        # A timer in the heap of all costs a tenth of a wait that is limited.
        timer = self._deadlines.schedule(timeout_s, lambda: asked.reply.fire(LATE))
        try:
            outcome = await asked.reply
        except BaseException:  # the caller's work was ended
            self._drop(asked)
            raise
        finally:
            timer.cancel()
        if outcome is LATE:
            self._drop(asked)
            raise self._late(asked, timeout_s)
        if isinstance(outcome, PeerError):
            raise outcome
        return outcome

    def _begin(self, asked: PeerRequest) -> None:
        if self._is_closed:
            raise PeerError(f"{self._name}: {_CLOSED}")
        connection = self._connection
        if connection is not None and connection.ended is None and not self._renews(connection):
            connection.submit(asked)
            return
        if self._scope is None:
            if not self._start(self):
                raise PeerError(f"{self._name}: {_STOPS}")
            self._scope = trio.CancelScope()
        self._queue.append(asked)

    def _renews(self, connection: PeerConnection) -> bool:
        """Whether the session is nearly over; then the connection ends, and another one begins."""
        if self._renew_at is None or self._clock.monotonic() < self._renew_at:
            return False
        if not connection.is_idle:
            return False
        connection.end(_RENEWED)
        return True

    def _drop(self, asked: PeerRequest) -> None:
        """Nobody waits for the reply any more; a request that has not gone out is not sent."""
        asked.dropped = True
        if asked in self._queue:
            self._queue.remove(asked)

    def _late(self, asked: PeerRequest, timeout_s: float) -> PeerError:
        if asked.correlation_id < 0:
            return PeerError(f"{self._name}: no connection within {timeout_s:g} s")
        why = f"no answer to {asked.name} within {timeout_s:g} s"
        if self._connection is not None:
            self._connection.end(why)
        return PeerError(f"{self._name}: {why}")

    def _fail_queue(self, why: str) -> None:
        queue, self._queue = self._queue, deque()
        for asked in queue:
            asked.reply.fire(PeerError(f"{self._name}: {why}"))

    # ---- the task

    async def live(self) -> None:
        """Connect and serve as long as requests queue; then end. One task at a time."""
        assert self._scope is not None
        try:
            with self._scope:
                while self._queue:
                    opened = await self._opened()
                    if opened is not None:
                        await self._serve(opened)
        finally:
            self._scope = None
            self._fail_queue(_STOPS)  # it is empty, unless the task was cancelled

    async def _opened(self) -> OpenedPeer | None:
        """Connect, when the back-off is over; None if that failed, and the queue got the reason."""
        delay_s = self._next_attempt - self._clock.monotonic()
        if delay_s > 0:
            await self._clock.sleep(delay_s)
        first_s, most_s = self._setup_s
        timeout_s = min(first_s * 2**self._failures, most_s)
        why = f"no connection within {timeout_s:g} s"
        try:
            with self._clock.timeout(timeout_s):
                return await self._opener.open(self.endpoint, self._client_id)
        except (PeerError, OSError, ProtocolError, TlsProblem) as error:
            why = str(error)
        if not self._failures:
            logger.warning("Cannot connect to %s: %s", self._name, why)
        self._next_attempt = self._clock.monotonic() + self._backoff_s()
        self._failures = min(self._failures + 1, _MOST_FAILURES)
        self._fail_queue(why)
        return None

    async def _serve(self, opened: OpenedPeer) -> None:
        """Send the requests that queue and those that come, until the connection ends."""
        if self._failures:
            logger.info("Connected to %s", self._name)
        self._failures = 0
        versions = self._versions = common_versions(opened.versions)
        now = self._clock.monotonic()
        self._renew_at = None if opened.session_s is None else now + opened.session_s
        connection = PeerConnection(
            opened.stream, versions, self._client_id, self._driver, self._name, self._traffic
        )
        self._connection = connection
        self._traffic.connections += 1
        self._traffic.connected += 1
        queue, self._queue = self._queue, deque()
        for asked in queue:
            connection.submit(asked)
        try:
            await connection.run()
        finally:
            self._connection = None
            self._traffic.connected -= 1
            opened.stream.close()
        if connection.ended != _RENEWED:
            self._next_attempt = self._clock.monotonic() + self._backoff_s()

    def _backoff_s(self) -> float:
        pause_s: float = min(BACKOFF_S * 2**self._failures, MOST_BACKOFF_S)
        return pause_s * self._random.uniform(1 - _JITTER, 1 + _JITTER)
