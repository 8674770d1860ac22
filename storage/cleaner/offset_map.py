"""Key -> latest offset, for as many keys as fit into a given memory (S-CMP-3).

A key is stored as a hash of 16 bytes, so an entry takes 24 bytes whatever the key, as in Kafka's
`SkimpyOffsetMap`: 16 of hash, 8 of offset. Two keys with one hash would count as one key, and the
older record would be lost. Kafka hashes with MD5. XXH3 takes a third of the time (decision 23). A
client could compute keys that collide under either, so each map has a seed that clients cannot
know: keys made to share a hash do not.

One row of a numpy table is an entry: both halves of the hash, and the offset plus one, so that a
row of zeros is free. The table begins small and grows up to its limit: the map of a small log fits
into the processor's cache, and touches no further memory. While a table grows, the old one is in
memory beside the new one, so growing in steps ends at `_MOVED` bytes; the next size is the limit.

Keys are put and looked up in columns: all of them probe their first row at once, those that are not
done probe their next one, and so on (open addressing). The second half of a key's hash gives the
distance between its rows; after `_STRIDES` rows it probes each following row, so that it finds a
free one wherever that is. Rows are never freed.

Offsets rise from call to call and within one call, as in a log.
"""

from collections.abc import Iterable
from itertools import repeat
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_digest

Ints: TypeAlias = npt.NDArray[np.int64]
Hashes: TypeAlias = npt.NDArray[np.uint64]
"""Shape (keys, 2)."""

ENTRY_BYTES: Final = 24

_STRIDES: Final = 64
_FIRST_ROWS: Final = 1 << 12
_GROWTH: Final = 4
_FILLED: Final = 0.7
"""The greatest share of used rows in a table that may still grow."""
_MOVED: Final = 16 << 20
_AT_ONCE: Final = 1 << 16
"""How many entries are moved at once."""
_ABSENT: Final = -1


class OffsetMap:
    """A hash table with a memory limit; keys are given as hashes by `hashes_of`."""

    __slots__ = ("_hash_seed", "_table", "capacity", "latest_offset", "size", "slots")

    def __init__(self, slots: int, load_factor: float = 0.9, *, hash_seed: int = 0) -> None:
        """Raises ValueError when there is no room for two keys: no cleaning would get further."""
        self.slots = slots
        room = min(slots * load_factor, slots)
        if not room > 1:  # nor of NaN
            raise ValueError(
                f"An offset map of {slots} entries is too small: a cleaning would never get "
                "further. Raise log.cleaner.dedupe.buffer.size or lower log.cleaner.threads."
            )
        self.capacity = int(room)
        """The most keys it may hold (`log.cleaner.io.buffer.load.factor`)."""
        self._hash_seed = hash_seed
        self._table = _new_table(min(slots, _FIRST_ROWS))
        self.size = 0
        """How many keys it holds."""
        self.latest_offset = -1
        """The map covers the dirty part up to this offset; records above it are all kept."""

    @classmethod
    def of_bytes(cls, size: int, load_factor: float = 0.9, *, hash_seed: int = 0) -> "OffsetMap":
        """A map of at most `size` bytes."""
        return cls(size // ENTRY_BYTES, load_factor, hash_seed=hash_seed)

    @property
    def utilization(self) -> float:
        """Keys per slot, 0 to 1."""
        return self.size / self.slots

    def hashes_of(self, keys: Iterable[bytes]) -> Hashes:
        """The hashes of these keys, in their order."""
        digests = map(xxh3_128_digest, keys, repeat(self._hash_seed))
        return np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)

    def put_all(self, hashes: Hashes, offsets: Ints) -> int:
        """Put keys with their offsets, which rise; for a repeated key the last offset counts.

        Stops where the map is full: once it holds `capacity` keys, before the next key, new or not.
        Returns how many were put.
        """
        count = len(offsets)
        if self.size + count > self.capacity:
            count = self._room_for(hashes)
        if count:
            self._make_room(count)
            self._put(hashes[:count], offsets[:count].astype(np.uint64) + np.uint64(1))
        return count

    def latest_of(self, hashes: Hashes) -> Ints:
        """The offset of each key, -1 for keys that are not in the map."""
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
        """Let the table grow until it has rows for `count` further keys, up to its limit."""
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
            # For equal indexes numpy assigns the last value: the latest offset.
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
                # Earlier records of the winner's key are done.
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
    """The probing of many keys: those still `waiting`, and the row that each probes (`at`)."""

    __slots__ = ("_attempts", "_slots", "_strides", "at", "waiting")

    def __init__(self, hashes: Hashes, slots: int) -> None:
        self._slots = slots
        self._attempts = 0
        self._strides = (hashes[:, 1] % np.uint64(slots)).astype(np.int64) + 1
        self.waiting = np.arange(len(hashes))
        self.at = (hashes[:, 0] % np.uint64(slots)).astype(np.int64)

    def go_on(self, unfinished: npt.NDArray[np.bool_]) -> None:
        """Move the unfinished keys to their next row; keys that have probed every row are done."""
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
