"""Key -> latest offset, for as many keys as fit into a given memory (S-CMP-3).

A key is a hash of 16 bytes, so an entry takes 24 bytes whatever the key, as in Kafka's
`SkimpyOffsetMap`: 16 of hash, 8 of offset. Two keys of one hash would be taken for one, and the
older record would be lost. Kafka hashes with MD5. XXH3 takes a third of the time, and is no secret
either; so each map has a seed that whoever chooses keys cannot know, and keys that were made to
have one hash have two.

One row of a numpy table is an entry: both halves of the hash, and the offset plus one, so that a
row of zeros is an empty one. The table begins small and grows, up to what it may be: the map of a
small log lies in the processor's cache, and does not touch memory that it does not need. While it
moves, the old table is beside the new one, so only tables of up to `_MOVED` bytes move.

Keys are put and asked in columns:
all of them look at their first row at once, those that are not at their goal at their next one,
and so on (open addressing). The distance between a key's rows comes from the second half of its
hash; after `_STRIDES` rows it looks at each row from there on, so that it finds a free one wherever
that is. Rows are never freed.

Offsets rise from call to call and within one call, as in a log.
"""

from collections.abc import Iterable
from itertools import repeat
from typing import Final

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_digest

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
"""Shape (keys, 2)."""

ENTRY_BYTES: Final = 24

_STRIDES: Final = 64
_FIRST_ROWS: Final = 1 << 12
_GROWTH: Final = 4
_FILLED: Final = 0.7
"""Of a table that may still grow."""
_MOVED: Final = 16 << 20
_AT_ONCE: Final = 1 << 16
"""Entries that are moved at once."""
_ABSENT: Final = -1


class OffsetMap:
    """A hash table of fixed memory; keys are given as what `hashes_of` makes of them."""

    __slots__ = ("_hash_seed", "_table", "capacity", "latest_offset", "size", "slots")

    def __init__(self, slots: int, load_factor: float = 0.9, *, hash_seed: int = 0) -> None:
        """Raises ValueError when there is room for less than two keys: no cleaning would end."""
        self.slots = slots
        self.capacity = int(slots * load_factor)
        """So many keys may be in it (`log.cleaner.io.buffer.load.factor`)."""
        if slots * load_factor <= 1:
            raise ValueError(
                f"An offset map of {slots} entries is too small: a cleaning would never get "
                "further. Raise log.cleaner.dedupe.buffer.size or lower log.cleaner.threads."
            )
        self._hash_seed = hash_seed
        self._table = _new_table(min(slots, _FIRST_ROWS))
        self.size = 0
        """Keys in it."""
        self.latest_offset = -1
        """Up to here the log is in the map; records above are none of its business."""

    @classmethod
    def of_bytes(cls, size: int, load_factor: float = 0.9, *, hash_seed: int = 0) -> "OffsetMap":
        """One that takes `size` bytes."""
        return cls(size // ENTRY_BYTES, load_factor, hash_seed=hash_seed)

    @property
    def utilization(self) -> float:
        """Keys to slots."""
        return self.size / self.slots

    def clear(self) -> None:
        """Forget everything, and give the memory back."""
        self._table = _new_table(min(self.slots, _FIRST_ROWS))
        self.size = 0
        self.latest_offset = -1

    def hashes_of(self, keys: Iterable[bytes]) -> Hashes:
        """What the map knows these keys by, in their order."""
        digests = map(xxh3_128_digest, keys, repeat(self._hash_seed))
        return np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)

    def put_all(self, hashes: Hashes, offsets: Ints) -> int:
        """Put keys at their offsets, which rise; of a key that comes twice the last one counts.

        Ends where the map is full: before the first key that comes when `capacity` keys are in it,
        known or not. Returns how many were put.
        """
        count = len(offsets)
        if self.size + count > self.capacity:
            count = self._room_for(hashes)
        if count:
            self._make_room(count)
            self._put(hashes[:count], offsets[:count].astype(np.uint64) + np.uint64(1))
        return count

    def latest_of(self, hashes: Hashes) -> Ints:
        """The offset of each key, -1 of one that is not in the map."""
        found = np.full(len(hashes), _ABSENT, np.int64)
        probe = _Probe(hashes, len(self._table))
        while probe.waiting.size:
            rows = self._table.take(probe.at, axis=0)
            stored = rows[:, 2]
            is_used = stored != 0
            same = is_used & _equal(rows, hashes.take(probe.waiting, axis=0))
            found[probe.waiting[same]] = stored[same].astype(np.int64) - 1
            probe.go_on(is_used & ~same)
        return found

    def _room_for(self, hashes: Hashes) -> int:
        """How many keys can be put, in order, before the map is full."""
        is_new = self.latest_of(hashes) == _ABSENT
        pairs = hashes.copy().view([("high", np.uint64), ("low", np.uint64)])[:, 0]
        _, firsts = np.unique(pairs, return_index=True)
        is_first = np.zeros(len(hashes), np.bool_)
        is_first[firsts] = True
        sizes = self.size + np.cumsum(is_new & is_first)
        before = np.concatenate(([self.size], sizes[:-1]))
        full = np.flatnonzero(before >= self.capacity)
        return int(full[0]) if full.size else len(hashes)

    def _make_room(self, count: int) -> None:
        """The table has rows for so many further keys."""
        rows = len(self._table)
        wanted = self.size + count
        while rows < self.slots and wanted > rows * _FILLED:
            rows = min(rows * _GROWTH, self.slots)
            if rows * ENTRY_BYTES > _MOVED:
                rows = self.slots
        if rows == len(self._table):
            return
        old, self._table, self.size = self._table, _new_table(rows), 0
        for at in range(0, len(old), _AT_ONCE):
            some = old[at : at + _AT_ONCE]
            used = some[some[:, 2] != 0]
            self._put(used[:, :2], used[:, 2])

    def _put(self, hashes: Hashes, stored: Hashes) -> None:
        table, flat = self._table, self._table.reshape(-1)
        probe = _Probe(hashes, len(table))
        while probe.waiting.size:
            waiting, at = probe.waiting, probe.at
            rows = table.take(at, axis=0)
            is_free = rows[:, 2] == 0
            same = ~is_free & _equal(rows, hashes.take(waiting, axis=0))
            # Of equal indexes numpy's assignment leaves the last one's value: the latest offset.
            flat[at[same] * 3 + 2] = stored[waiting[same]]
            goes_on = ~(same | is_free)
            if is_free.any():
                here, claimed = waiting[is_free], at[is_free]
                # Several keys may want one free row: the last one to write its number gets it.
                numbers = claimed * 3 + 2
                flat[numbers] = (here + 1).view(np.uint64)
                owners = flat[numbers].view(np.int64) - 1
                won = owners == here
                winners, places = here[won], numbers[won]
                flat[places - 2] = hashes[:, 0][winners]
                flat[places - 1] = hashes[:, 1][winners]
                flat[places] = stored[winners]
                self.size += int(won.sum())
                # An earlier record of the winner's key has nothing left to do.
                mine, theirs = hashes.take(here, axis=0), hashes.take(owners, axis=0)
                goes_on[is_free] = ~_equal(mine, theirs)
            probe.go_on(goes_on)

    def _check(self) -> None:
        used = self._table[:, 2] != 0
        assert int(used.sum()) == self.size <= max(self.capacity, 0)
        hashes = np.ascontiguousarray(self._table[used][:, :2])
        offsets = self._table[used, 2].astype(np.int64) - 1
        assert (self.latest_of(hashes) == offsets).all()
        assert self.latest_offset >= int(offsets.max(initial=-1))


def _new_table(rows: int) -> Hashes:
    return np.zeros((rows, 3), np.uint64)


class _Probe:
    """Keys on the way to their rows: which of them `waiting`, and where each looks now (`at`)."""

    __slots__ = ("_attempts", "_slots", "_strides", "at", "waiting")

    def __init__(self, hashes: Hashes, slots: int) -> None:
        self._slots = slots
        self._attempts = 0
        self._strides = (hashes[:, 1] % np.uint64(slots)).astype(np.int64) + 1
        self.waiting = np.arange(len(hashes))
        self.at = (hashes[:, 0] % np.uint64(slots)).astype(np.int64)

    def go_on(self, unfinished: npt.NDArray[np.bool_]) -> None:
        """Those look at their next row; all after the last row are done."""
        self._attempts += 1
        if self._attempts > _STRIDES + self._slots:
            unfinished = np.zeros_like(unfinished)
        self.waiting = self.waiting[unfinished]
        strides = self._strides = self._strides[unfinished]
        at = self.at[unfinished] + (strides if self._attempts <= _STRIDES else 1)
        at[at >= self._slots] -= self._slots
        self.at = at


def _equal(rows: Hashes, hashes: Hashes) -> npt.NDArray[np.bool_]:
    same: npt.NDArray[np.bool_] = (rows[:, 0] == hashes[:, 0]) & (rows[:, 1] == hashes[:, 1])
    return same
