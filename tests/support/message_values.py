"""Random values for any construct tree, and lists of all messages.

`random_value` takes anything with the methods of `random.Random`: Hypothesis' randoms in property
tests, or a seeded one if an oracle in another process needs a fixed list.
"""

import struct
from collections.abc import Iterator
from random import Random
from typing import Any

from protocol.messages import coordinator_records
from protocol.messages.registry import SPECS, request_api, response_api
from protocol.schema import Api
from protocol.schema.constructs import ArrayOf, Blob, Fields, Prefixed, Text, Wire

TEXTS = ("", "a", "topic-1", "größer", "日本", "x" * 126, "y" * 127, "é" * 64, "z" * 300)
SIZES = (0, 0, 1, 5, 126, 127, 128, 300)
COUNTS = (0, 1, 1, 2, 3)


def all_apis() -> Iterator[Api]:
    """Yield every declared message: requests, responses, records."""
    for key in SPECS:
        yield request_api(key)
        yield response_api(key)
    yield from (value for value in vars(coordinator_records).values() if isinstance(value, Api))


def all_codecs() -> Iterator[tuple[Api, int]]:
    """Yield every message in every version."""
    for api in all_apis():
        for version in api.versions:
            yield api, version


def codec_id(value: object) -> str:
    """Return the name of a parameter for pytest."""
    return value.name if isinstance(value, Api) else f"v{value}"


def random_value(node: Wire, rng: Random) -> Any:
    """Return a random value for `node`, often an edge case."""
    if node.code is not None:
        return random_fixed(node.code, rng)
    if isinstance(node, Fields):
        return None if node.nullable and rng.random() < 0.3 else random_fields(node, rng)
    assert isinstance(node, Prefixed)
    if node.nullable and rng.random() < 0.3:
        return None
    if isinstance(node, Text):
        return rng.choice(TEXTS)
    if isinstance(node, Blob):
        return bytes([rng.randrange(256)]) * rng.choice(SIZES)
    assert isinstance(node, ArrayOf)
    return [random_value(node.element, rng) for _ in range(rng.choice(COUNTS))]


def random_fields(node: Fields, rng: Random) -> Any:
    """Return a random group; about half of its tagged fields stay at their defaults."""
    value: Any = node.cls()
    for name, member in node.fields:
        setattr(value, name, random_value(member, rng))
    for field in node.tagged:
        if rng.random() < 0.5:
            setattr(value, field.name, random_value(field.node, rng))
    return value


def random_fixed(code: str, rng: Random) -> Any:
    """Return a random value for a `struct` code."""
    if code == "16s":
        return bytes(16) if rng.random() < 0.2 else bytes([rng.randrange(256)]) * 16
    if code == "?":
        return rng.random() < 0.5
    if code == "d":
        return float(rng.randrange(1 << 20)) / 4
    bits = 8 * struct.calcsize(">" + code)
    low, high = (0, (1 << bits) - 1) if code.isupper() else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return rng.choice((low, -1 if low else 0, 0, 1, high, rng.randrange(low, high + 1)))
