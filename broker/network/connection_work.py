"""One connection's work, and what ends it.

`ConnectionWork.end` throws `ConnectionEnded` into the work at its wait; at the broker's stop, `cut`
does. When the client has reset the connection (`reset`), the work gets `ClientGone`. The wait
decides when:

* for a call in a thread, because the code behind the call relies on its result: at a later wait;
* for bytes, or anything else of the connection's own: `end` and `cut` at once. After a reset the
  next receive or send fails by itself;
* parked (`Signal.parked`): at once;
* else in a request that changes nothing (`Route.ends_with_client`): at once;
* else in a request that changes something: `cut` at once, `end` when the request is parked or done.
  A reset ends it only where it is parked.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, TypeGuard

import trio

from broker.fairness import Client
from broker.network.endings import ClientGone, ConnectionEnded
from broker.network.routes import Route
from broker.world.transport import Stream
from storage.waits import PAUSE, Call, Place, Until, Wait, Work


def is_thread_call(wait: Wait | None) -> TypeGuard[Call[Any]]:
    """Whether work waits for a call in a thread, which is completed whatever happens."""
    return isinstance(wait, Call) and wait.place is Place.THREAD


def is_parked(wait: Wait | None) -> bool:
    """Whether work waits on behalf of its client (`Signal.parked`)."""
    return isinstance(wait, Until) and wait.parked


class DueLine:
    """The works that are due to be resumed, in the order in which they became due."""

    __slots__ = ("asleep", "at_work", "works")

    def __init__(self) -> None:
        self.works: deque[ConnectionWork] = deque()
        self.at_work = False
        """Whether the loop resumes works now, and so looks at the line again."""
        self.asleep = trio.lowlevel.ParkingLot()
        """The tasks that wait for a work to become due."""

    def add(self, work: "ConnectionWork") -> None:
        """Put `work` at the end of the line."""
        self.works.append(work)
        if not self.at_work:
            self.asleep.unpark()


class ConnectionWork:
    """One connection's work and its wait. Most fields are the loop's.

    The work of a request that runs beside its connection's (`ConnectionLoop.run_beside`) is one,
    too; it has no stream.
    """

    __slots__ = (
        "_line",
        "answer",
        "client",
        "coroutine",
        "ended",
        "error",
        "has_sent_all",
        "is_cut",
        "is_due",
        "is_opening",
        "is_reset",
        "key",
        "mask",
        "name",
        "request_work",
        "round",
        "route",
        "scope",
        "started",
        "stream",
        "to_throw",
        "took_long",
        "wait",
        "wanted",
    )

    def __init__(
        self,
        line: DueLine,
        stream: Stream | None,
        client: Client,
        name: Callable[[], str],
        ended: Callable[[], object],
    ) -> None:
        self._line = line
        self.stream = stream
        self.coroutine: Work[None]
        """The loop sets it."""
        self.client = client
        self.name = name
        self.ended = ended
        self.key = -1
        """The key of the stream at the readiness."""
        self.mask = 0
        """The events that the readiness reports of the stream."""
        self.wanted = 0
        """The events that resume the work; 0 while it does not wait for its stream."""
        self.wait: Wait | None = PAUSE
        """None while the work runs, or has not begun (`run_beside`)."""
        self.answer: Any = None
        self.error: BaseException | None = None
        """Thrown into the work when it is resumed, in place of an answer."""
        self.to_throw: BaseException | None = None
        """Why the work must end; it becomes `error` at the first wait where `may_end` holds."""
        self.is_cut = False
        """Whether even a request that changes something is ended."""
        self.route: Route | None = None
        """The route of the request whose handler decides what the work waits for; None if the
        connection decides. The connection sets it."""
        self.request_work: ConnectionWork | None = None
        """The request's work, if it runs beside this one. The connection sets it."""
        self.started: float | None = None
        """When a worker began the call of this work, in monotonic seconds."""
        self.is_due = False
        """Whether `wake` does nothing: the work stands in a line of the loop, has the turn for
        which it stood there, or has ended."""
        self.is_reset = False
        """Whether the connection was reset: nobody listens."""
        self.has_sent_all = False
        """Whether the end of the stream has come while nobody took the stream's bytes."""
        self.is_opening = False
        """Whether a handshake opens the stream, which needs more of the client: then the end of the
        stream counts as a reset. The connection sets it."""
        self.took_long = False
        """Whether its last turn for a ready stream took longer than `LONG_S`."""
        self.round = 0
        """The round of its last turn for a ready stream."""
        self.scope: trio.CancelScope | None = None
        """The scope of the task that serves the wait."""

    @property
    def is_answered(self) -> bool:
        """Whether what the work waits for has happened, so it resumes soon."""
        return isinstance(self.wait, Until) and self.wait.signal.fired

    def wake(self) -> None:
        """Put the work into the line of due ones."""
        if not self.is_due:
            self.is_due = True
            self._line.add(self)

    def answered(self, answer: Any, error: BaseException | None) -> None:
        """The call of the work is done."""
        self.answer, self.error = answer, error
        self.wake()

    def end(self, error: BaseException | None = None) -> None:
        """End the work: throw `error`, or `ConnectionEnded`, as soon as it may be."""
        if self.to_throw is None:
            self.to_throw = error or ConnectionEnded()
        self._throw_end()

    def cut(self) -> None:
        """End the work at its next wait but a call in a thread, even if it changes something."""
        self.is_cut = True
        self.end()

    def reset(self) -> None:
        """The client has reset the connection: end a request that is for that client alone."""
        if not self.is_reset:
            self.is_reset = True
            if self.request_work is not None:
                self.request_work.reset()
            if self.wait is not None and self.is_for_client(self.wait):
                self.end(ClientGone("the client went away"))

    def is_for_client(self, wait: Wait) -> bool:
        """Whether work that waits for `wait` ends with its client."""
        route = self.route
        return is_parked(wait) or (route is not None and route.ends_with_client)

    def may_end(self, wait: Wait | None) -> bool:
        """Whether an end may be thrown where the work waits for `wait`."""
        if is_thread_call(wait):
            return False
        route = self.route
        return route is None or route.ends_with_client or self.is_cut or is_parked(wait)

    def _throw_end(self) -> None:
        if self.wait is None or self.error is not None or not self.may_end(self.wait):
            return  # `ConnectionLoop._wait` throws it after this step, or at a later wait
        self.wanted = 0
        if self.scope is not None:
            self.scope.cancel()
        else:
            self.error = self.to_throw
            self.wake()
