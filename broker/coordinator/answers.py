"""Where a coordinator's answer goes: to the handler at once, or later to the parked request.

A handler makes a `ParkedAnswer`, hands it to the coordinator and returns `handed_over()`. When the
coordinator has answered by then, nothing was parked and the message itself is returned.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import trio

from broker.request import Pending

T = TypeVar("T")


class AwaitedAnswer:
    """Takes one reply, for a coroutine that waits for it."""

    __slots__ = ("_event", "_reply")

    def __init__(self) -> None:
        self._event = trio.Event()
        self._reply: Any = None

    def __call__(self, reply: Any) -> None:
        """The reply; called once, from the event loop."""
        self._reply = reply
        self._event.set()

    async def wait(self) -> Any:
        """The reply, when it is there."""
        await self._event.wait()
        return self._reply


class ParkedAnswer(Generic[T]):
    """Takes one reply, turns it into a message, brings it to the connection."""

    __slots__ = ("_answered", "_encode", "_message", "_pending")

    def __init__(self, encode: Callable[[Any], T]) -> None:
        self._encode = encode
        self._pending: Pending | None = None
        self._message: T
        self._answered = False

    def __call__(self, reply: Any) -> None:
        """The reply; called once, from the event loop."""
        message = self._encode(reply)
        if self._pending is not None:
            self._pending.complete(message)
        else:
            self._message = message
            self._answered = True

    def handed_over(self) -> T | Pending:
        """What the handler returns: the message, or the `Pending` that will bring it."""
        if self._answered:
            return self._message
        self._pending = Pending()
        return self._pending
