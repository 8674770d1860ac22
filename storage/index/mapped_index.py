"""The base of offset and time index: a sorted array of fixed-size entries in a mapped file.

Format: entries one after the other, big endian, no header. While a segment is active its index is
pre-sized to `max_size` rounded down to whole entries (S-ROLL-4 trims it), so the file's size gives
how many entries it *may* hold; the object that appends to it knows how many it holds.

Guaranteed after a crash: nothing. A log survives without its indexes, and the loader rebuilds what
lies above the recovery point. Below it, the zero padding of a pre-sized file must not count as
entries of offset `base_offset`: opening counts real entries only, and `sanity_check` then raises
CorruptIndex, because pages in the middle may be missing too (S-IDX-8).

Reading goes through a read-only mapping. Touching mapped pages of a file that somebody has cut
kills the process (SIGBUS), so each access first asks the file's size and then copies what it needs
at once: a file that has become shorter is a CorruptIndex. Only a cut between these two instructions
kills the broker (decision 48).

Appending never stores into a mapping, which on a full disk kills as well. Entries are gathered in
memory and written some dozens at a time over zeros that were written before, so a full disk shows
up as an OSError ahead of them. (Not by fallocate, which waits for ext4's journal.) If entries in
memory are lost, with the process or with this object, the index is sparser and still right.

An entry is not believed before it is used: `LogSegment` compares it with the log (decision 49).

Lazy (S-IDX-7): no file is touched before its first use; the first append makes it (or
`trim_to_valid_size`, so that a cleanly closed log has its index files). At most one descriptor is
held, the mapping's own, which `close` closes; renaming and deleting the file are safe.

Logs, recovery, the cleaner and the offline readers use indexes.
"""

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, ClassVar, Final

from storage.errors import CorruptIndex, IndexOffsetOverflow
from storage.filesystem import FileMapping, FileSystem

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy

MAX_RELATIVE_OFFSET: Final = 2**31 - 1

_UNWRITTEN_BYTES: Final = 1024
"""Appended entries are written once they take so many bytes: one system call per dozens of appends,
and little memory in thousands of active segments."""

_WARM_BYTES: Final = 4096
"""A search near the end reads only so many last bytes, so fetches of recent data always touch the
same few pages of a big index (Kafka's warm section)."""

_NONE: Final = (-1, b"")


class MappedIndex:
    """Base of OffsetIndex and TimeIndex: their entries as a sorted, memory-mapped array."""

    ENTRY_SIZE: ClassVar[int]

    __slots__ = (
        "_entries",
        "_fs",
        "_length",
        "_loaded",
        "_map",
        "_max_entries",
        "_padded",
        "_tail",
        "_tops",
        "_unwritten",
        "base_offset",
        "max_size",
        "path",
    )

    def __init__(self, fs: FileSystem, path: str, base_offset: int, max_size: int) -> None:
        if max_size < self.ENTRY_SIZE:
            raise ValueError(f"Invalid max index size: {max_size}")
        self._fs = fs
        self.path = path
        self.base_offset = base_offset
        self.max_size = max_size
        self._max_entries = max_size // self.ENTRY_SIZE
        self._loaded = False
        self._map: FileMapping | None = None
        self._tops: dict[int, array[int]] | None = None
        """See `_tops_of`; None until a search needs it, and whenever entries have gone."""
        self._entries = 0
        self._tail = bytearray()
        """The last entries, which are not in the file yet."""
        self._unwritten = 0
        """How many bytes `_tail` may still grow before it is written; 0: call `_reserve`."""
        self._length = -1  # bytes of the file; -1: there is none
        self._padded = False

    def __repr__(self) -> str:
        state = f"{self._entries} entries" if self._loaded else "not opened"
        return f"{type(self).__name__}({self.path!r}, base_offset={self.base_offset}, {state})"

    # --- for subclasses

    def _is_padding(self, entry: bytes, slot: int) -> bool:
        """Whether the entry at `slot` can only be the zeros a file is pre-sized with."""
        raise NotImplementedError

    def _refresh_last(self) -> None:
        """Read the last entry again, after `_entries` has changed."""
        raise NotImplementedError

    def _dtype(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    # --- sizes

    @property
    def entries(self) -> int:
        """How many entries the index has."""
        if not self._loaded:
            self._load()
        return self._entries

    @property
    def is_full(self) -> bool:
        """Whether the segment must roll because no further entry fits."""
        if not self._loaded:
            self._load()
        return self._entries >= self._max_entries

    @property
    def free(self) -> int:
        """How many entries can be appended before it is full."""
        if not self._loaded:
            self._load()
        return max(self._max_entries - self._entries, 0)

    def relative_offset(self, offset: int) -> int:
        """`offset` as stored. Raises IndexOffsetOverflow when 31 bits do not hold it (S-IDX-4)."""
        relative = offset - self.base_offset
        if 0 <= relative <= MAX_RELATIVE_OFFSET:
            return relative
        raise IndexOffsetOverflow(self.path, self.base_offset, offset)

    # --- reading

    @property
    def _stored(self) -> int:
        """How many entries are in the file."""
        return self._entries - len(self._tail) // self.ENTRY_SIZE

    def _load(self) -> None:
        """Map the file and count its entries. Raises OSError, CorruptIndex if cut meanwhile."""
        self._padded = False
        self._unwritten = 0
        self._tail.clear()
        self._tops = None
        self._length = self._map_file()
        self._entries = max(self._length, 0) // self.ENTRY_SIZE
        last = self._entries - 1
        if last >= 0 and self._is_padding(self._block(last, 1), last):
            self._entries = self._count_real_entries()
            self._padded = True
        self._loaded = True
        self._refresh_last()

    def _map_file(self) -> int:
        """Map the file, unless it is empty; returns its length, -1 without file. Raises OSError."""
        self._map = None
        try:
            file = self._fs.open(self.path, writable=False)
        except FileNotFoundError:
            return -1
        try:
            length = file.size()
            if length:
                self._map = file.map(length)
        finally:
            file.close()
        return length

    def _count_real_entries(self) -> int:
        # Real entries are never padding, so "is padding" is sorted: search for where it begins.
        return bisect_left(
            range(self._entries),
            True,
            key=lambda slot: self._is_padding(self._block(slot, 1), slot),
        )

    def _block(self, first: int, count: int) -> bytes:
        """The bytes of `count` entries of the file. Raises CorruptIndex when the file was cut."""
        start, end = first * self.ENTRY_SIZE, (first + count) * self.ENTRY_SIZE
        return self._mapped(end)[start:end]

    def _mapped(self, size: int) -> FileMapping:
        """The mapping, whose first `size` bytes may be copied right now.

        Raises CorruptIndex when the file was cut to less, OSError.
        """
        mapping = self._map
        if mapping is None or len(mapping) < size:
            mapping = self._mapping_of(size)
        if mapping.size() < size:
            raise self._was_cut(size)
        return mapping

    def _mapping_of(self, size: int) -> FileMapping:
        """Map the file again, which was made or has grown since, to at least `size` bytes."""
        self._map_file()
        mapping = self._map
        if mapping is None or len(mapping) < size:
            raise self._was_cut(size)
        return mapping

    def _was_cut(self, size: int) -> CorruptIndex:
        return CorruptIndex(self.path, f"was cut to less than {size // self.ENTRY_SIZE} entries")

    def _entry(self, slot: int) -> bytes | bytearray:
        """The bytes of one entry, which exists."""
        stored = self._stored
        if slot < stored:
            return self._block(slot, 1)
        start = (slot - stored) * self.ENTRY_SIZE
        return self._tail[start : start + self.ENTRY_SIZE]

    def _floor(
        self, unpack: "Callable[[bytes | bytearray, int], tuple[int, ...]]", field: int, target: int
    ) -> tuple[int, bytes | bytearray]:
        """Slot and bytes of the largest entry whose field (at byte `field`) is <= target.

        Slot -1 when there is none. The warm section changes no answer (S-IDX-3). Raises
        CorruptIndex when the file was cut.
        """
        size, tail = self.ENTRY_SIZE, self._tail
        stored = self._entries - len(tail) // size
        if tail and unpack(tail, field)[0] <= target:
            at = floor_slot(unpack, tail, size, field, target)
            return stored + at, tail[at * size : at * size + size]
        if not stored:
            return _NONE
        mapping = self._mapped(stored * size)
        warm = _WARM_BYTES // size
        first, end = 0, stored
        if stored > warm:
            first = stored - warm
            if unpack(mapping[first * size : first * size + size], field)[0] > target:
                # Only the last block whose first entry is not above the target may hold it.
                tops = self._tops_of(field, -(-first // warm), mapping, unpack)
                number = bisect_right(tops, target, 0, -(-first // warm)) - 1
                if number < 0:
                    return _NONE
                first = number * warm
                end = first + warm
        block = mapping[first * size : end * size]
        if unpack(block, field)[0] > target:
            return _NONE
        at = floor_slot(unpack, block, size, field, target)
        return first + at, block[at * size : at * size + size]

    def _tops_of(
        self,
        field: int,
        blocks: int,
        mapping: FileMapping,
        unpack: "Callable[[bytes | bytearray, int], tuple[int, ...]]",
    ) -> "array[int]":
        """The `field` of the first entry of each of at least `blocks` blocks, cached.

        The cache takes 8 bytes per 4 KB of index, and is searched without the mapping. If somebody
        changes the file, the cache leads to a wrong block, which is noticed as any wrong entry is.
        """
        if self._tops is None:
            self._tops = {}
        tops = self._tops.setdefault(field, array("q"))
        if len(tops) < blocks:
            size = self.ENTRY_SIZE
            step = _WARM_BYTES // size * size
            starts = range(len(tops) * step, blocks * step, step)
            tops.extend(unpack(mapping[at : at + size], field)[0] for at in starts)
        return tops

    # --- appending, truncating

    def _reserve(self) -> None:
        """Make room for further entries in `_tail`: make and pre-size the file, write the tail.

        Raises OSError; then nothing has changed for the caller. CorruptIndex when it was cut.
        """
        size, stored = self.ENTRY_SIZE, self._stored
        full = max(self._max_entries, self._entries + 1) * size
        room = min(_UNWRITTEN_BYTES // size * size, full - self._entries * size)
        file = self._fs.open(self.path, create=True)
        try:
            there = file.size()
            if there < stored * size:
                raise self._was_cut(stored * size)
            if there < full:
                file.truncate(full)
            self._length = max(there, full)
            # Zeros behind it allocate the blocks of the next entries now, while failing is safe.
            file.pwrite(self._tail + bytes(room), stored * size)
        finally:
            file.close()
        self._tail = bytearray()
        self._unwritten = room

    def write_entries(self) -> None:
        """Write the entries that are held in memory to the file. Raises OSError."""
        tail = self._tail
        if tail:
            file = self._fs.open(self.path, create=True)
            try:
                file.pwrite(tail, self._stored * self.ENTRY_SIZE)
            finally:
                file.close()
            self._tail = bytearray()
            self._unwritten = 0

    def _shrink_to(self, entries: int) -> None:
        if not self._loaded:
            self._load()
        if entries >= self._entries:
            return
        kept = max(entries - self._stored, 0) * self.ENTRY_SIZE
        del self._tail[kept:]
        self._tops = None
        self._entries = entries
        # After a crash the dropped entries must not come back.
        self.trim_to_valid_size()
        self._refresh_last()

    def ensure_exists(self) -> None:
        """Make an empty file if there is none."""
        self._fs.open(self.path, create=True).close()

    def keep(self, entries: int) -> None:
        """Drop all but the first `entries`."""
        self._shrink_to(entries)

    def truncate(self) -> None:
        """Drop all entries."""
        self._shrink_to(0)

    def resize(self, size: int) -> bool:
        """Cut or extend the file to `size`, rounded down to whole entries; False if it has that.

        Appending pre-sizes by itself; this makes Kafka's file sizes at once. Raises OSError,
        ValueError when entries would be lost.
        """
        if not self._loaded:
            self._load()
        size -= size % self.ENTRY_SIZE
        if size < self._entries * self.ENTRY_SIZE:
            raise ValueError(f"{self.path}: {size} bytes do not hold {self._entries} entries")
        self.write_entries()
        if size == self._length:
            return False
        file = self._fs.open(self.path, create=True)
        try:
            file.truncate(size)
        finally:
            file.close()
        self._length = size
        self._unwritten = 0
        self._padded = False
        return True

    def trim_to_valid_size(self) -> bool:
        """Cut the file to its entries, or make an empty one (S-ROLL-4); True if that changed it.

        Raises OSError.
        """
        return self.resize(self.entries * self.ENTRY_SIZE)

    def _forget(self) -> None:
        self._loaded = False
        self._map = None
        self._tops = None

    # --- life of the file

    def close(self) -> None:
        """Trim and close the file. An index that was never used stays as it is. Raises OSError."""
        if self._loaded:
            self.trim_to_valid_size()
            self._forget()

    # --- bulk access

    def as_array(self) -> "numpy.ndarray[Any, Any]":
        """A structured numpy array of the entries as of now, big endian.

        For whole-column work (checks, dumps). A copy, because a view of the mapping would kill the
        process if somebody cut the file while it lives. Raises CorruptIndex, OSError.
        """
        import numpy

        if not self._loaded:
            self._load()
        table = numpy.zeros(self._entries, dtype=self._dtype())
        stored = self._stored
        if stored:
            table[:stored] = numpy.frombuffer(self._block(0, stored), table.dtype)
        if self._tail:
            table[stored:] = numpy.frombuffer(self._tail, table.dtype)
        table.flags.writeable = False
        return table

    # --- checks

    def sanity_check(self) -> None:
        """Raises CorruptIndex when the file cannot be right as a whole (S-IDX-6, S-IDX-8)."""
        if not self._loaded:
            self._load()
        if self._length > 0 and self._length % self.ENTRY_SIZE:
            raise CorruptIndex(
                self.path, f"{self._length} bytes are not a multiple of {self.ENTRY_SIZE}"
            )
        if self._padded:
            raise CorruptIndex(
                self.path, f"ends in zeros after {self._entries} entries: it was not closed cleanly"
            )

    def _check(self) -> None:
        if not self._loaded:
            return
        stored = self._stored
        assert 0 <= stored <= self._entries
        assert self._entries <= max(self._max_entries, self._length // self.ENTRY_SIZE)
        assert self._entries * self.ENTRY_SIZE <= max(self._length, 0)
        assert len(self._tail) % self.ENTRY_SIZE == 0
        assert len(self._tail) <= _UNWRITTEN_BYTES
        assert self._fs.exists(self.path) or self._length == -1


def floor_slot(
    unpack: "Callable[[bytes | bytearray, int], tuple[int, ...]]",
    block: bytes | bytearray,
    entry_size: int,
    field: int,
    target: int,
) -> int:
    """Number of the largest entry of a block whose field is <= target; the first one's must be.

    A plain loop: numpy's searchsorted copies a big-endian column whole before it searches.
    """
    low, high = 0, len(block) // entry_size - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if unpack(block, middle * entry_size + field)[0] <= target:
            low = middle
        else:
            high = middle - 1
    return low
