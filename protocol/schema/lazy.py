"""An array of a message whose elements are made while they are written, one at a time.

A reply may have a million elements; as objects they would be hundreds of megabytes, as bytes they
are tens. `Lazy` stands where a list would: it says how many there will be, and makes each when the
generated code comes to it.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)
Item = TypeVar("Item")


class Elements(Protocol[T_co]):
    """What an array of a message is built from."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


class Lazy(Generic[T_co]):
    """`make(item)` for each of `items`, when it is asked for."""

    __slots__ = ("_items", "_make")

    def __init__(self, items: Elements[Item], make: Callable[[Item], T_co]) -> None:
        """`items` must not change any more: there are as many elements as were promised."""
        self._items: Elements[Any] = items
        self._make: Callable[[Any], T_co] = make

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T_co]:
        return map(self._make, self._items)


class Chained(Generic[T_co]):
    """The elements of one array behind those of another."""

    __slots__ = ("_parts",)

    def __init__(self, *parts: Elements[T_co]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[T_co]:
        return chain.from_iterable(self._parts)
