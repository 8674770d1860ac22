"""An array of a message whose elements are made while they are written, one at a time.

A reply may have a million elements; as objects they would be hundreds of megabytes, as bytes they
are tens. `Lazy` stands where a list would: it says how many there will be, and makes each when the
generated code comes to it.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any


class Lazy:
    """`make(item)` for each of `items`, when it is asked for."""

    __slots__ = ("_items", "_make")

    def __init__(self, items: Sequence[Any], make: Callable[[Any], Any]) -> None:
        """`items` must not change any more: there are as many elements as were promised."""
        self._items = items
        self._make = make

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return map(self._make, self._items)


class Chained:
    """The elements of one array behind those of another."""

    __slots__ = ("_parts",)

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._parts)
