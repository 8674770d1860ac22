"""What a power loss may leave of work that was not synced: the rules, for one file or directory.

  * Content of a file: what was there at its last fsync is there. Of what was done to it afterwards
    (writes, stores through a mapping, truncations) any part may be there: nothing; everything; the
    first few operations, the last one cut at any byte; or any mixture of sectors (512 bytes) or
    pages (4 KB), each as of any moment, in a file as long as it was at any moment. Where the length
    reached the disk and the data did not, there are zeros. Files are independent of each other.
  * Names in a directory: what was there at its last fsync is there; of later creations, renames and
    removals the first few, in the order they were made (as every journalling file system does it).
    Directories are independent of each other. A rename is there as a whole or not at all.

A choice says which of the legal states it is: `Everything`, `Nothing`, `NamesOnly`, or by `Chance`.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

SECTOR = 512
PAGE = 4096
_MOST_VERSIONS = 7
"""Moments between which the sectors of one file are mixed: more would only cost time."""


class Op(NamedTuple):
    """One thing that was done to one file; `data` is None for a truncation to `position`."""

    at: int
    position: int
    data: bytes | None


class Everything:
    """Only the process died."""

    def names(self, pending: int) -> int:
        return pending

    def content(self, synced: bytes, ops: Sequence[Op]) -> bytes:
        for op in ops:
            synced = applied(synced, op.position, op.data)
        return synced


class Nothing(Everything):
    """What was synced, and no more."""

    def names(self, pending: int) -> int:
        return 0

    def content(self, synced: bytes, ops: Sequence[Op]) -> bytes:
        return synced


class NamesOnly(Nothing):
    """All names, and of the contents what was synced."""

    def names(self, pending: int) -> int:
        return pending


class Chance(Everything):
    """Some files and directories are lost or kept whole, some are torn: drawn anew for each."""

    def __init__(self, random: Random, *, hollow: float = 0.3) -> None:
        """`hollow`: how often the last of a few operations has its length there, and not all of
        its data.
        """
        self._random = random
        self._hollow = hollow
        # A state in which all are torn has no room for the interplay of torn and whole ones.
        self._weights = random.choice([(1, 1, 2, 2), (0, 3, 1, 1), (3, 1, 1, 1), (0, 0, 1, 1)])

    def names(self, pending: int) -> int:
        return self._random.choice((0, pending, self._random.randint(0, pending)))

    def content(self, synced: bytes, ops: Sequence[Op]) -> bytes:
        random = self._random
        (kind,) = random.choices(("lost", "kept", "prefix", "mixed"), self._weights)
        if kind == "lost":
            return synced
        if kind == "kept":
            return super().content(synced, ops)
        if kind == "prefix":
            return self._prefix_of(synced, ops)
        return self._mixed(synced, ops)

    def _prefix_of(self, synced: bytes, ops: Sequence[Op]) -> bytes:
        """The first operations in order, the last of them cut at any byte or sector."""
        count = self._random.randint(1, len(ops))
        content = super().content(synced, ops[: count - 1])
        last = ops[count - 1]
        data = last.data
        if data is None:
            return applied(content, last.position, None)
        cut = self._random.randint(0, len(data))
        if self._random.random() < 0.5:
            cut = max(0, (last.position + cut) // SECTOR * SECTOR - last.position)
        if self._random.random() < self._hollow:
            content = content.ljust(last.position + len(data), b"\0")
        return applied(content, last.position, data[:cut])

    def _mixed(self, synced: bytes, ops: Sequence[Op]) -> bytes:
        random = self._random
        moments = sorted(random.sample(range(len(ops)), min(len(ops), _MOST_VERSIONS)))
        versions, done = [synced], 0
        content = synced
        for moment in moments:
            content = super().content(content, ops[done : moment + 1])
            done = moment + 1
            versions.append(content)
        size = len(random.choice(versions))
        unit = random.choice((SECTOR, PAGE))
        pieces = []
        for start in range(0, size, unit):
            length = min(unit, size - start)
            piece = random.choice(versions)[start : start + length]
            pieces.append(piece.ljust(length, b"\0"))
        return b"".join(pieces)


def applied(content: bytes, position: int, data: bytes | None) -> bytes:
    head = content[:position].ljust(position, b"\0")
    if data is None:
        return head
    return head + data + content[position + len(data) :] if data else content
