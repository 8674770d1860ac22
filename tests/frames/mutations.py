"""Values that a field can have and nobody expects there: numbers at their ends, empty, null, twice.

A `Place` is one field of a request that was filled: it can be read and set in any request of the
same shape. `odd_values` lists what to try there, `all_places` where. The message stays well formed,
so that it tries the broker behind the codec, not the codec.
"""

import copy
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from protocol.schema.constructs import ArrayOf, Blob, Fields, Text, Wire

ILLEGAL_NAME = "no topic's name/@"
UNKNOWN = "unknown"
LONG_NAME = "x" * 250
"""One letter more than a topic's name may have."""
SMALL = (-2, -1, 0, 1, 2, 5, 99)
CODES = tuple(range(-6, 40))
"""For one byte: numbers that may stand for something, and their neighbours."""


@dataclass(frozen=True, slots=True)
class Place:
    """A field, by the way to it: names, and indexes of arrays."""

    path: tuple[str | int, ...]
    node: Wire

    @property
    def label(self) -> str:
        """Names joined by dots, without indexes."""
        return ".".join(step for step in self.path if isinstance(step, str))

    def get(self, request: Any) -> Any:
        """The value there."""
        for step in self.path:
            request = request[step] if isinstance(step, int) else getattr(request, step)
        return request

    def set(self, request: Any, value: Any) -> None:
        """Put a value there, in place."""
        *way, last = self.path
        for step in way:
            request = request[step] if isinstance(step, int) else getattr(request, step)
        if isinstance(last, int):
            request[last] = value
        else:
            setattr(request, last, value)


def all_places(tree: Wire, request: Any, path: tuple[str | int, ...] = ()) -> Iterator[Place]:
    """Every field and element that `request` has, outer ones first."""
    if isinstance(tree, Fields):
        if request is None:
            return
        for name, node in tree.fields:
            yield Place((*path, name), node)
            yield from all_places(node, getattr(request, name), (*path, name))
        for tagged in tree.tagged:
            yield Place((*path, tagged.name), tagged.node)
    elif isinstance(tree, ArrayOf):
        for index, element in enumerate(request or ()):
            if not isinstance(tree.element, Fields):
                yield Place((*path, index), tree.element)
            yield from all_places(tree.element, element, (*path, index))


def odd_values(place: Place, request: Any) -> list[Any]:
    """Return the values to try at a place instead of its own."""
    now = place.get(request)
    return [value for value in every_odd_value(place, request) if not _same(value, now)]


def every_odd_value(place: Place, request: Any) -> list[Any]:
    """Return `odd_values` and those that are there already: as many for every valid request."""
    node, now = place.node, place.get(request)
    values: list[Any] = []
    if getattr(node, "nullable", False):
        values.append(None)
    if isinstance(node, Text):
        values += ["", UNKNOWN, ILLEGAL_NAME, LONG_NAME, "ü", "."]
        if now:
            values.append(now + now)
    elif isinstance(node, Blob):
        values += [b"", b"\0", b"garbage of no use" * 4]
        if now:
            values += [bytes(now)[:-1], bytes(now) + b"\0", bytes(now) * 2]
    elif isinstance(node, ArrayOf):
        values.append([])
        if now:
            values += [[*now, *now], [*copy.deepcopy(now), *copy.deepcopy(now), *now]]
        else:
            values += [[element] for element in _elements(node.element)]
    elif isinstance(node, Fields):
        pass
    elif node.code == "?":
        values.append(not now)
    elif node.code == "16s":
        values += [bytes(16), b"\xff" * 16, bytes(15) + b"\1"]
    elif node.code == "b":
        values += CODES
        values += (-128, 127)
    else:
        assert node.code is not None
        ends = number_ends(node.code)
        values += SMALL
        values += ends
        values.append(now - 1 if now == max(ends) else now + 1)
    return values


def _elements(node: Wire) -> Sequence[Any]:
    """Return elements for an array that was empty."""
    if isinstance(node, Text):
        return ("", UNKNOWN)
    return (0, *number_ends(node.code)) if node.code else ()


def number_ends(code: str) -> tuple[Any, ...]:
    """The least and the greatest numbers of a `struct` code, and their neighbours."""
    if code == "d":
        return (float("-inf"), float("inf"), float("nan"), 1e308)
    if code in ("?", "16s"):
        return ()
    bits = 8 * struct.calcsize(">" + code)
    if code.isupper():
        return ((1 << bits) - 1, (1 << bits) - 2)
    end = 1 << bits - 1
    return (-end, -end + 1, end - 2, end - 1)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def random_changes(tree: Wire, request: Any, rng: Random, count: int) -> list[tuple[Place, Any]]:
    """Draw up to `count` changes, which the caller makes in the request itself."""
    places = list(all_places(tree, request))
    changes = []
    for place in rng.sample(places, min(count, len(places))):
        values = odd_values(place, request)
        if values:
            changes.append((place, rng.choice(values)))
    # Inner places first: an outer change may take them away.
    changes.sort(key=lambda change: -len(change[0].path))
    return changes


def damaged(data: bytes, rng: Random, pieces: Sequence[bytes], times: Sequence[int]) -> bytes:
    """Return `data` after so many changes: `pieces` put in or over it, bytes cut, a bit turned."""
    out = bytearray(data)
    for _ in range(rng.choice(times)):
        at = rng.randrange(len(out) + 1)
        piece = rng.choice(pieces)
        what = rng.randrange(5)
        if what == 0:
            out[at:at] = piece
        elif what == 1:
            del out[at : at + rng.randrange(1, 9)]
        elif what == 2 and out:
            out[min(at, len(out) - 1)] ^= 1 << rng.randrange(8)
        else:
            out[at : at + len(piece)] = piece
    return bytes(out)
