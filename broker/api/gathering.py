"""One response made of results that come one by one, at once or later.

A handler makes a `Gathering`, says `one_is_there` for each result (from the event loop), and
returns `handed_over()`: the response when the last one was there by then, else the `Pending` that
will bring it.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from broker.request import Pending

T = TypeVar("T")


class Gathering(Generic[T]):
    """A response in the making: results take their places, and the last one completes it."""

    __slots__ = ("_left", "_pending", "_response")

    def __init__(self, count: int, response: Callable[[], T]) -> None:
        """`response` is asked once, when all `count` results are there."""
        self._left = count
        self._response = response
        self._pending: Pending | None = None

    def one_is_there(self) -> None:
        """One more result."""
        self._left -= 1
        if not self._left and self._pending is not None:
            self._pending.complete(self._response())

    def handed_over(self) -> T | Pending:
        """What the handler returns."""
        if not self._left:
            return self._response()
        self._pending = Pending()
        return self._pending
