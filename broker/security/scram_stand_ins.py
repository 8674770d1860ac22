"""SCRAM credentials that stand in for users who do not exist (S-SEC-3, decision 94). Pure.

The first answer to a client shows a salt and a count of iterations. Both tell how a credential was
made: Kafka's tools draw salts of 24 to 26 digits, librdkafka 64 random bytes. So a stand-in has the
shape of a credential that exists, each as often as it exists, and neither a common nor a rare shape
says more about a known user than about an unknown one.

The shape and all else follow from the name and a secret. Each shape has a digest of its own with
the name, and the lowest one wins, weighted by how many users have the shape (rendezvous hashing):
a user more or less moves as few names as can be. A name that gets another shape gets another salt,
so it looks like a user with a new password.

A salt that a person wrote or that a tool encoded (hexadecimal) is shown as random bytes of its
size.
"""

import hashlib
import hmac
import math
import re
from collections import Counter
from heapq import nsmallest
from typing import Final, NamedTuple

from protocol.sasl.scram import (
    DEFAULT_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    random_text,
)

MOST_SHAPES: Final = 16
"""The commonest are drawn from; each costs every login a digest, a microsecond or two."""
MOST_SALT_BYTES: Final = 1024
_TEXT: Final = re.compile(rb"[0-9a-z]{22,26}")
"""130 bits in base 36. One in two million has fewer digits than 22."""
_TEXT_BYTES: Final = 17
_DRAW_BYTES: Final = 8


class Shape(NamedTuple):
    """The parts of a credential that depend on the tool and not on the password."""

    salt_bytes: int
    """The size of a random salt; 0 for the texts of Kafka's tools, whose size varies."""
    iterations: int


USUAL: Final = Shape(0, DEFAULT_ITERATIONS)
"""By Kafka's tools with their defaults; delegation tokens have it, too."""


def shape_of(credential: ScramCredential) -> Shape:
    """Return the shape of a user's credential."""
    salt = credential.salt
    size = 0 if _TEXT.fullmatch(salt) else min(len(salt), MOST_SALT_BYTES)
    return Shape(size, credential.iterations)


class StandIns:
    """The stand-ins for one mechanism, after the credentials that exist for it."""

    def __init__(self, mechanism: ScramMechanism) -> None:
        self._mechanism = mechanism
        self._key_bytes = hashlib.new(mechanism.hash_name).digest_size
        self._counts: Counter[Shape] = Counter()
        self._drawn: list[tuple[Shape, int]] = []
        """The commonest shapes, with their counts; empty after a change."""

    def add(self, credential: ScramCredential) -> None:
        """A user has this credential now."""
        self._counts[shape_of(credential)] += 1
        self._drawn = []

    def remove(self, credential: ScramCredential) -> None:
        """A user who had this credential has it no more."""
        shape = shape_of(credential)
        self._counts[shape] -= 1
        if not self._counts[shape]:
            del self._counts[shape]
        self._drawn = []

    def stand_in(self, secret: bytes, user: str) -> ScramCredential:
        """Return a credential to which nobody knows a password, the same for the same user.

        The work is the same for every user.
        """
        if not self._drawn:
            self._drawn = self._commonest()
        _, (salt_bytes, iterations), digest = min(
            _draw(hmac.digest(secret, self._message(shape, user), "sha512"), shape, count)
            for shape, count in self._drawn
        )
        material = hashlib.shake_256(digest).digest(max(salt_bytes, _TEXT_BYTES))
        number = int.from_bytes(material[:_TEXT_BYTES], "big")
        text = random_text(lambda bits: number & ((1 << bits) - 1)).encode()
        return ScramCredential(
            salt=material[:salt_bytes] if salt_bytes else text,
            stored_key=digest[: self._key_bytes],
            server_key=digest[-self._key_bytes :],
            iterations=iterations,
        )

    def _message(self, shape: Shape, user: str) -> bytes:
        salt_bytes, iterations = shape
        return f"{self._mechanism.value} {salt_bytes} {iterations} {user}".encode()

    def _commonest(self) -> list[tuple[Shape, int]]:
        """At least one shape; the same ones at brokers with the same users."""
        counts = self._counts or {USUAL: 1}
        return nsmallest(MOST_SHAPES, counts.items(), key=lambda one: (-one[1], one[0]))


def _draw(digest: bytes, shape: Shape, count: int) -> tuple[float, Shape, bytes]:
    """The lot of a shape: the lowest wins, with a chance that is proportional to `count`."""
    chance = (int.from_bytes(digest[:_DRAW_BYTES], "big") + 1) / (1 << 8 * _DRAW_BYTES)
    return -math.log(chance) / count, shape, digest
