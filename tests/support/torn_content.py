"""The states of one file or directory that a power loss may leave.

  * Content of a file: the content of the last fsync is kept. Any part of later operations (writes,
    stores through a mapping, truncations) may be kept: nothing; everything; the first few
    operations, the last of them cut at any byte; or any mixture of sectors (512 bytes) or pages
    (4 KB), each as of any moment, in a file as long as it was at any moment. If the length reached
    the disk and the data did not, there are zeros. Files are independent of each other.
  * Names in a directory: the names of the last fsync are kept, and the first few of the later
    creations, renames and removals, in their order (as in every journalling file system).
    Directories are independent of each other. A rename is kept as a whole or not at all.

A choice selects one of the legal states: `Everything`, `Nothing`, `NamesOnly`, or by `Chance`.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

SECTOR = 512
PAGE = 4096
_MOST_VERSIONS = 7
"""The most moments whose sectors of one file are mixed; more would only cost time."""


class Op(NamedTuple):
    """One operation on one file; `data` is None for a truncation to `position`."""

    at: int
    position: int
    data: bytes | None


class Everything:
    """Everything is kept, because only the process died."""

    def names(self, pending: int) -> int:
        return pending

    def content(self, synced: bytes, ops: Sequence[Op]) -> bytes:
        for op in ops:
            synced = applied(synced, op.position, op.data)
        return synced


class Nothing(Everything):
    """Only what was synced is kept."""

    def names(self, pending: int) -> int:
        return 0

    def content(self, synced: bytes, ops: Sequence[Op]) -> bytes:
        return synced


class NamesOnly(Nothing):
    """All names are kept, and the contents that were synced."""

    def names(self, pending: int) -> int:
        return pending


class Chance(Everything):
    """Each file and directory is drawn to be lost, kept or torn."""

    def __init__(self, random: Random, *, hollow: float = 0.3) -> None:
        """`hollow`: how often the last of a few operations has its length there, and not all of
        its data.
        """
        self._random = random
        self._hollow = hollow
        # Weights vary: if everything were torn, no state would mix torn and whole files.
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
        """Return the content after the first operations, the last cut at any byte or sector."""
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
