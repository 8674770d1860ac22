"""One response combined from several results, each of which comes at once or later.

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
        """`response` is called once, after all `count` results, and makes the response."""
        self._left = count
        self._response = response
        self._pending: Pending | None = None

    def note_result(self) -> None:
        """Count one more result; the last one completes the response."""
        self._left -= 1
        if not self._left and self._pending is not None:
            self._pending.complete(self._response())

    def handed_over(self) -> T | Pending:
        """What the handler returns: the response, or the `Pending` that will bring it."""
        if not self._left:
            return self._response()
        self._pending = Pending()
        return self._pending
