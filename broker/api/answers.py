"""Where a coordinator's answer goes: to the handler at once, or later to the parked request.

A handler makes a `ParkedAnswer`, hands it to the coordinator and returns `handed_over()`. If the
coordinator has answered by then, that is the message itself, and the request is not parked.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import trio

from broker.request import Pending

T = TypeVar("T")


class AwaitedAnswer:
    """Takes one reply and gives it to the coroutine that waits for it."""

    __slots__ = ("_event", "_reply")

    def __init__(self) -> None:
        self._event = trio.Event()
        self._reply: Any = None

    def __call__(self, reply: Any) -> None:
        """Take the reply; called once, from the event loop."""
        self._reply = reply
        self._event.set()

    async def wait(self) -> Any:
        """Wait for the reply and return it."""
        await self._event.wait()
        return self._reply


class ParkedAnswer(Generic[T]):
    """Takes one reply, encodes it as a message and brings it to the connection."""

    __slots__ = ("_answered", "_encode", "_message", "_pending")

    def __init__(self, encode: Callable[[Any], T]) -> None:
        self._encode = encode
        self._pending: Pending | None = None
        self._message: T
        self._answered = False

    def __call__(self, reply: Any) -> None:
        """Take the reply; called once, from the event loop."""
        message = self._encode(reply)
        if self._pending is not None:
            self._pending.complete(message)
        else:
            self._message = message
            self._answered = True

    def handed_over(self) -> T | Pending:
        """Return what the handler returns: the message, or the `Pending` that will bring it."""
        if self._answered:
            return self._message
        self._pending = Pending()
        return self._pending
