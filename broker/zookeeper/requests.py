"""Requests to ZooKeeper: pipelined, bounded (`zookeeper.max.in.flight.requests`), waited for.

A request is begun on the loop while the session is connected, and answered on the loop. Those
beyond the bound wait in line, so answers come in the order of the requests, as ZooKeeper promises.

While the session is suspended no request is begun. Requests under way are lost with the connection:
one that may be repeated (it reads) is begun again, any other is answered with the loss, because it
may have been done. Without a connection a caller waits for at most two session timeouts.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from broker.cluster.metadata_store import MetadataStoreError, StoreUnavailableError
from broker.zookeeper.session import Session, SessionState
from storage.clock import Clock
from storage.distribution import FOLD, Distribution, DistributionSnapshot
from storage.waits import PAUSE, Signal

Begin = Callable[[Any], Any]
"""Begins a request with kazoo's client; returns kazoo's asynchronous result."""
Answered = Callable[[Any, BaseException | None], None]
"""Called on the loop with the result, or the error."""


class Lost(Exception):
    """The connection was lost before the answer: the request may or may not have been done."""


_LOSSES: Final = frozenset(
    {
        *(
            "ConnectionLoss",
            "ConnectionClosedError",
            "SessionExpiredError",
            "OperationTimeoutError",
        ),
        *("ConnectionDropped", "SessionMovedError"),
    }
)
"""kazoo's errors for a lost connection, by name: kazoo is not imported before it is needed."""


def is_loss(error: BaseException) -> bool:
    """Whether an error of kazoo says that the connection is lost."""
    return isinstance(error, Lost) or any(kind.__name__ in _LOSSES for kind in type(error).__mro__)


class Request:
    """One request and the callback for its answer."""

    __slots__ = ("answered", "begin", "begun_at", "is_given_up", "repeatable")

    def __init__(self, begin: Begin, answered: Answered, *, repeatable: bool) -> None:
        self.begin = begin
        self.answered = answered
        self.repeatable = repeatable
        self.begun_at = 0.0
        self.is_given_up = False
        """Nobody waits for the answer any more: a request in line is not begun."""


class Waited:
    """The answer to one request, for work that waits."""

    __slots__ = ("_first", "error", "path", "request", "signal", "value")

    def __init__(
        self,
        begin: Begin,
        path: str,
        *,
        repeatable: bool = True,
        first: Callable[[Any], None] | None = None,
    ) -> None:
        """`first` is called with the result before later answers are handled."""
        self._first = first
        self.signal: Signal[None] = Signal()
        self.value: Any = None
        self.error: BaseException | None = None
        self.path = path
        self.request = Request(begin, self._answered, repeatable=repeatable)

    def _answered(self, value: Any, error: BaseException | None) -> None:
        self.value, self.error = value, error
        if error is None and self._first is not None:
            self._first(value)
        self.signal.fire()


class Requests:
    """The line of requests. Loop only."""

    def __init__(
        self, session: Session, most_in_flight: int, timeout_s: float, clock: Clock
    ) -> None:
        self.in_flight = 0
        self._latencies = Distribution()
        self._clock = clock
        self._session = session
        self._most = most_in_flight
        self._timeout_s = timeout_s
        self._line: deque[Request] = deque()
        session.watch(self._session_changed)

    def latencies(self) -> DistributionSnapshot:
        """Times from the begin of a request to its answer, on the loop."""
        return self._latencies.snapshot(self._clock.monotonic())

    def send(self, begin: Begin, answered: Answered, *, repeatable: bool = False) -> None:
        """Begin a request as soon as there is a place; `answered` is called once."""
        self._put(Request(begin, answered, repeatable=repeatable))

    def hand_over_event(self, fired: Callable[[Any], None], event: Any) -> None:
        """Call `fired` on the loop with an event of kazoo's. Called in kazoo's thread."""
        self._session.hand_over(partial(fired, event))

    def begin_all(self, waited: Sequence[Waited]) -> None:
        """Put requests in line, for `wait_for`."""
        for one in waited:
            self._put(one.request)

    async def wait_for(self, waited: Sequence[Waited]) -> None:
        """Wait until all are answered; each has its error. Raises StoreUnavailableError."""
        try:
            for one in waited:
                await self._wait(one)
                await PAUSE
        except BaseException:
            for one in waited:
                one.request.is_given_up = True
            raise

    async def _wait(self, waited: Waited) -> None:
        session = self._session
        while not waited.signal.fired:
            was_connected, times = session.is_connected, session.times_connected
            if await waited.signal.within(self._timeout_s):
                return
            if not was_connected and times == session.times_connected:
                raise StoreUnavailableError(
                    waited.path, f"no connection to ZooKeeper for {self._timeout_s:g} s"
                )

    def _put(self, request: Request) -> None:
        if self._session.state is SessionState.CLOSED:
            request.answered(None, closed_error())
            return
        self._line.append(request)
        self._begin_some()

    def _begin_some(self) -> None:
        while self._line and self.in_flight < self._most and self._session.is_connected:
            request = self._line.popleft()
            if request.is_given_up:
                continue
            try:
                result = request.begin(self._session.client)
            # kazoo does not take the path, or it is too late for the request.
            except (ValueError, TypeError, MetadataStoreError) as error:
                request.answered(None, error)
                continue
            self.in_flight += 1
            request.begun_at = self._clock.monotonic()
            result.rawlink(partial(self._completed, request))

    def _completed(self, request: Request, result: Any) -> None:
        # In kazoo's thread.
        self._session.hand_over(partial(self._finish, request, result))

    def _finish(self, request: Request, result: Any) -> None:
        self.in_flight -= 1
        now = self._clock.monotonic()
        self._latencies.note(now - request.begun_at)
        if len(self._latencies.waiting) >= FOLD:
            self._latencies.fold(now)
        error = result.exception
        if error is None:
            request.answered(result.value, None)
        elif not is_loss(error):
            request.answered(None, error)
        elif self._session.state is SessionState.CLOSED:
            request.answered(None, closed_error())
        elif request.repeatable and not request.is_given_up:
            self._line.append(request)
        else:
            request.answered(None, Lost())
        self._begin_some()

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.CLOSED:
            line, self._line = self._line, deque()
            for request in line:
                request.answered(None, closed_error())
        else:
            self._begin_some()


def closed_error() -> MetadataStoreError:
    """The error of all requests after `close`."""
    return StoreUnavailableError("/", "the store is closed")
