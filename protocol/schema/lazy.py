"""An array of a message whose elements are made while they are written, one at a time.

A reply may have a million elements: hundreds of megabytes as objects, tens as bytes. `Lazy` takes
the place of a list: it knows the number of elements, and makes each when the generated code reaches
it.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)
Item = TypeVar("Item")


class Elements(Protocol[T_co]):
    """The elements from which an array of a message is built."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


class Lazy(Generic[T_co]):
    """`make(item)` of each of `items`, called while iterating."""

    __slots__ = ("_items", "_make")

    def __init__(self, items: Elements[Item], make: Callable[[Item], T_co]) -> None:
        """`items` must not change any more, because their number is written first."""
        self._items: Elements[Any] = items
        self._make: Callable[[Any], T_co] = make

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T_co]:
        return map(self._make, self._items)


class Chained(Generic[T_co]):
    """The elements of several arrays, one array after the other."""

    __slots__ = ("_parts",)

    def __init__(self, *parts: Elements[T_co]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[T_co]:
        return chain.from_iterable(self._parts)
