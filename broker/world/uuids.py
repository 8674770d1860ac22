"""New ids out of the world's randomness: of clusters, topics, members of groups."""

from collections.abc import Callable
from random import Random

from protocol.types import ZERO_UUID, uuid_to_text

_RESERVED_UUIDS = (ZERO_UUID, bytes(15) + b"\x01")
"""Kafka's ids for "none" and for its own metadata topic."""

NewUuid = Callable[[], bytes]
"""Makes an id: `random_uuid` over the world's randomness."""


def random_uuid(random: Random) -> bytes:
    """16 random bytes as version 4 id; never a reserved one, and no text that starts with '-'.

    After Kafka's `Uuid.randomUuid`.
    """
    while True:
        raw = bytearray(random.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        value = bytes(raw)
        if value not in _RESERVED_UUIDS and not uuid_to_text(value).startswith("-"):
            return value
