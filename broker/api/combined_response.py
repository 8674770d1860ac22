"""One response combined from results of which each comes at once or later.

A handler makes a `CombinedResponse`, calls `note_result` for each result (on the event loop), and
returns `handed_over()`: the response if all results have come by then, else a `Pending` that the
last result completes.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from broker.request import Pending

T = TypeVar("T")


class CombinedResponse(Generic[T]):
    """A response that is complete when its last result has come."""

    __slots__ = ("_left", "_pending", "_response")

    def __init__(self, count: int, response: Callable[[], T]) -> None:
        """`response` makes it, once, after all `count` results."""
        self._left = count
        self._response = response
        self._pending: Pending | None = None

    def note_result(self) -> None:
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
