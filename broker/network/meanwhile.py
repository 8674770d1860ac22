"""A request's work goes on while its client is slow to take the replies before that request's.

Work that waits may hold locks and places, or stand in a line for them. If it stood still until the
client reads, everybody else who needs these would wait for that client.
"""

from collections.abc import Callable
from contextlib import suppress

import trio

from broker.network.asides import Asides
from broker.network.unanswered import Unanswered, is_asleep
from storage.waits import Signal, Until


class Meanwhile:
    """The work of one request, while the replies before its own are sent."""

    __slots__ = ("_asides", "_done", "_going_on", "_parked", "_waiting")

    def __init__(self, waiting: Unanswered, asides: Asides, done: Callable[[], object]) -> None:
        """`done` is called when the work is, if the replies have not left before."""
        self._waiting = waiting
        self._asides = asides
        self._done = done
        self._parked: Signal[None] | None = None
        """For which the request is parked."""
        self._going_on: Signal[None] | None = None
        """Fires when a task aside has done the work, or the request is parked."""

    def begin(self) -> None:
        """Go on with the work, aside, whenever it can; see `end`."""
        self._going_on = self._parked = None
        wait = self._waiting.wait
        if is_asleep(wait):
            assert isinstance(wait, Until)
            self._parked = wait.signal
            self._parked.wake = self._go_on
        elif wait is not None:
            self._go_on()
        else:
            self._done()

    def _go_on(self) -> None:
        with suppress(trio.ClosedResourceError):  # the broker stops: the work is dropped
            self._going_on = self._asides.begin(self._waiting)
            self._going_on.wake = self.begin

    def end(self) -> Signal[None] | None:
        """The replies have left: leave the work to the connection.

        Returns what fires when a task aside has gone on with it; None if none is at it.
        """
        awaited = self._going_on or self._parked
        if awaited is not None:
            awaited.wake = None
        return self._going_on

    def leave(self) -> None:
        """The client has gone: drop the work, unless it must be finished."""
        if self._going_on is None and self._parked is None:
            self.begin()
        if self.end() is not None:
            self._waiting.leave(ends=self._waiting.route.ends_with_client)
        elif self._parked is not None:
            self._waiting.close()
