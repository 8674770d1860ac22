"""Responses with many elements: each is made while it is encoded, and the encoding goes in turns.

A handler that answers for a few items makes a plain message. For many items that would take long
and cost hundreds of bytes each: `results` are then `Lazy`, and the handler sets `ctx.large` if the
request itself may be small. It must fix the items first (in a list of its own); the result of each
is made when its turn comes.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from protocol.schema.lazy import Elements, Lazy

Item = TypeVar("Item")
Result = TypeVar("Result")

MANY: Final = 256
"""Items that are handled in one go: less than a millisecond, whatever their kind."""


def results(items: Elements[Item], make: Callable[[Item], Result]) -> Elements[Result]:
    """Return `make(item)` of each item: a list, or `Lazy` for more than `MANY` items."""
    return [make(item) for item in items] if len(items) <= MANY else Lazy(items, make)
