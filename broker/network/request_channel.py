"""The queue between connections and handler workers.

Kafka's channel holds whole requests. Here a request waits in the stream of its connection, and the
connection itself calls the handler in its turn (`RequestHandling.handle`), because a task switch
would cost more than most requests. A function that blocks, or computes in C, is called in a thread:
such a call stands in this queue until a worker of the `HandlerPool` is free. Only APIs that
producers and consumers use all the time (`Route.in_workers`) use it.

The queue needs no limit of its own, because a connection has at most one request in work, and
receives nothing meanwhile; a request whose client has left may be in work, too. Kafka's
`queued.max.requests` bounds a queue into which its connections go on reading.
"""

from collections import deque
from typing import Any, Protocol

import trio

from broker.fairness import Client
from broker.network.endings import ConnectionEnded
from storage.waits import Call


class Caller(Protocol):
    """A connection whose request waits for a call."""

    client: Client
    started: float | None
    """The time at which a worker began the call, in monotonic seconds."""

    def answered(self, answer: Any, error: BaseException | None) -> None:
        """The call is done, with an answer or an error."""
        ...


class RequestChannel:
    """Calls that wait for a worker, first come, first served. Event loop only."""

    def __init__(self) -> None:
        self._queue: deque[tuple[Call[Any], Caller]] = deque()
        self._idle = trio.lowlevel.ParkingLot()
        """The workers that wait for a call."""
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, call: "Call[Any]", caller: Caller) -> None:
        """Have a worker make the call, and then call `caller.answered`.

        The error is ConnectionEnded if the channel is closed, or the workers end before.
        """
        if self._is_closed:
            caller.answered(None, ConnectionEnded())
            return
        self._queue.append((call, caller))
        self._idle.unpark()

    async def take(self) -> tuple["Call[Any]", Caller] | None:
        """Wait for the next call; return None if the channel is closed and empty."""
        while not self._queue:
            if self._is_closed:
                return None
            await self._idle.park()
        await trio.lowlevel.checkpoint_if_cancelled()
        return self._queue.popleft()

    def close(self) -> None:
        """Take no new calls; the workers end when none is left."""
        self._is_closed = True
        self._idle.unpark_all()

    def drop(self) -> None:
        """Take no new calls, and end the callers that wait, because the workers have ended."""
        self.close()
        while self._queue:
            self._queue.popleft()[1].answered(None, ConnectionEnded())
