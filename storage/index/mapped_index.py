"""What offset and time index share: a sorted array of fixed-size entries in a memory-mapped file.

Format: entries one after the other, big endian, no header. While a segment is active its index is
pre-sized to `max_size` rounded down to whole entries (S-ROLL-4 trims it), so the file says how many
entries it *may* hold; how many it holds is known to the object that appends to it.

Guaranteed after a crash: nothing. An index is a shortcut into a log that survives without it; the
loader rebuilds what lies above the recovery point. Below it a pre-sized file with zeros at its end
must not be taken for entries at offset `base_offset`: opening counts real entries only, and
`sanity_check` then raises CorruptIndex, because pages in the middle may be missing too (S-IDX-8).

Reading goes through a read-only mapping. Touching mapped pages of a file that somebody has cut
kills the process (SIGBUS), so the file's size is asked before each access, and what is needed is
copied right after: a file that has become shorter is a CorruptIndex. Between the two lie some
instructions; whoever cuts the file just then is not survived (docs/decisions).

Appending stores into no mapping, which on a full disk kills as well: entries are gathered in memory
and written some dozens at a time, to where zeros were written before, so a disk that is full says
so ahead of them, as an OSError. (Not by fallocate, which waits for ext4's journal.) If they are
lost, with the process or by `release`, the index is sparser and still right.

What an entry says is not believed because it stands here: `LogSegment` holds it against the log.

Lazy (S-IDX-7): no file is touched before the first question; the file is made by the first append
(or by `trim_to_valid_size`, so that a cleanly closed log has its index files). One descriptor is
held at most, the mapping's own, and goes with `release`; renaming and deleting are safe.

Only `storage.log` calls this.
"""

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, ClassVar, Final

from storage.errors import CorruptIndex, IndexOffsetOverflow
from storage.filesystem import FileMapping, FileSystem
from storage.paths import file_name, join

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy

MAX_RELATIVE_OFFSET: Final = 2**31 - 1

_UNWRITTEN_BYTES: Final = 1024
"""Appended entries are written when they are so many: a call to the system per dozens of appends,
and not much memory in thousands of active segments."""

_WARM_BYTES: Final = 4096
"""Searches for something near the end look only here, so the pages of a big index that fetches of
recent data touch are always the same few (Kafka's warm section)."""

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
        self._tops: dict[int, array[int]] = {}
        self._entries = 0
        self._tail = bytearray()
        """The last entries, those that are not in the file yet."""
        self._unwritten = 0
        """How many bytes of `_tail` may still be added before it is written; 0: ask `_reserve`."""
        self._length = -1  # bytes of the file; -1: there is none
        self._padded = False

    def __repr__(self) -> str:
        state = f"{self._entries} entries" if self._loaded else "not opened"
        return f"{type(self).__name__}({self.path!r}, base_offset={self.base_offset}, {state})"

    # --- what subclasses say about their entries

    def _is_padding(self, entry: bytes, slot: int) -> bool:
        """Whether the entry at `slot` can only be the zeros a file is pre-sized with."""
        raise NotImplementedError

    def _refresh_last(self) -> None:
        """`_entries` changed: look the last entry up again."""
        raise NotImplementedError

    def _dtype(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    # --- sizes

    @property
    def entries(self) -> int:
        """Entries in the index."""
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
        """Entries that can be appended before it is full."""
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
        """Entries that are in the file."""
        return self._entries - len(self._tail) // self.ENTRY_SIZE

    def _load(self) -> None:
        """Look at what is on disk. Raises OSError, CorruptIndex when it is cut meanwhile."""
        self._padded = False
        self._unwritten = 0
        self._tail.clear()
        self._tops.clear()
        self._length = self._map_file()
        self._entries = max(self._length, 0) // self.ENTRY_SIZE
        last = self._entries - 1
        if last >= 0 and self._is_padding(self._block(last, 1), last):
            self._entries = self._count_real_entries()
            self._padded = True
        self._loaded = True
        self._refresh_last()

    def _map_file(self) -> int:
        """Map all of it, if it holds anything. Its length, -1 if there is none. Raises OSError."""
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
        low, high = 0, self._entries
        while low < high:
            middle = (low + high) // 2
            if self._is_padding(self._block(middle, 1), middle):
                high = middle
            else:
                low = middle + 1
        return low

    def _block(self, first: int, count: int) -> bytes:
        """`count` entries of the file. Raises CorruptIndex when they are not there any more."""
        start, end = first * self.ENTRY_SIZE, (first + count) * self.ENTRY_SIZE
        return self._mapped(end)[start:end]

    def _mapped(self, size: int) -> FileMapping:
        """The mapping, of whose first `size` bytes copies may be made right now.

        Raises CorruptIndex when the file was cut to less, OSError.
        """
        mapping = self._map
        if mapping is None or len(mapping) < size:
            mapping = self._mapping_of(size)
        if mapping.size() < size:
            raise self._was_cut(size)
        return mapping

    def _mapping_of(self, size: int) -> FileMapping:
        """One that reaches as far: the file was made, or has grown, since it was mapped."""
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
                # Which block may hold it: the last one whose first entry is not beyond the target.
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
        """That field of the first entry of so many blocks at least: searched without the mapping.

        8 bytes for 4 KB of index. If the file is changed meanwhile it leads to a wrong block, as
        any wrong entry does.
        """
        tops = self._tops.get(field)
        if tops is None:
            tops = self._tops[field] = array("q")
        if len(tops) < blocks:
            size = self.ENTRY_SIZE
            step = _WARM_BYTES // size * size
            starts = range(len(tops) * step, blocks * step, step)
            tops.extend(unpack(mapping[at : at + size], field)[0] for at in starts)
        return tops

    # --- appending, truncating

    def _reserve(self) -> None:
        """Make room for further entries in `_tail`: file made, pre-sized, what it held written.

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
            # With zeros after it: the blocks of the next entries are taken while it can fail.
            file.pwrite(self._tail + bytes(room), stored * size)
        finally:
            file.close()
        self._tail = bytearray()
        self._unwritten = room

    def write_entries(self) -> None:
        """All that were appended are in the file when this returns. Raises OSError."""
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
        self._tops.clear()
        self._entries = entries
        # What was cut must not come back as entries after a crash.
        self.trim_to_valid_size()
        self._refresh_last()

    def ensure_exists(self) -> None:
        """Make an empty file where there is none, as a segment without entries has on disk."""
        if not self._fs.exists(self.path):
            self._fs.open(self.path, create=True).close()

    def keep(self, entries: int) -> None:
        """Drop all but the first `entries`."""
        self._shrink_to(entries)

    def truncate(self) -> None:
        """Drop all entries."""
        self._shrink_to(0)

    def resize(self, size: int) -> bool:
        """Cut or extend the file to `size`, rounded down to whole entries; False if it has that.

        Appending pre-sizes by itself, so this is for those who want Kafka's file sizes at once.
        Raises OSError, ValueError when entries would be lost.
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
        """Cut the file to its entries (S-ROLL-4), making an empty one if need be; False if it was.

        Raises OSError.
        """
        return self.resize(self.entries * self.ENTRY_SIZE)

    def release(self) -> None:
        """Let go of the file of an index nobody appends to; the next question opens it again."""
        if self._length == self._entries * self.ENTRY_SIZE and not self._tail:
            self._forget()

    def _forget(self) -> None:
        self._loaded = False
        self._map = None
        self._tops.clear()

    # --- life of the file

    def flush(self) -> None:
        """Make the entries durable. Raises OSError."""
        if not self._loaded or self._length <= 0:
            return
        self.write_entries()
        try:
            file = self._fs.open(self.path)
        except FileNotFoundError:
            # Renamed or deleted meanwhile, together with its segment. Whoever did that cares for
            # durability if it matters; an index that is lost is rebuilt.
            return
        try:
            file.fsync()
        finally:
            file.close()

    def close(self) -> None:
        """Trim and forget. An index that was never asked is left as it is. Raises OSError."""
        if self._loaded:
            self.trim_to_valid_size()
            self._forget()

    def rename(self, path: str) -> None:
        """Give the file another name; nothing happens on disk if it was never made."""
        try:
            self._fs.rename(self.path, path)
        except FileNotFoundError:
            if self._fs.exists(self.path):
                raise  # it is the target's directory that is missing
        self.path = path

    def update_parent_dir(self, directory: str) -> None:
        """The partition directory was renamed."""
        self.path = join(directory, file_name(self.path))

    def delete(self) -> None:
        """Remove the file. Who holds this index may go on asking it."""
        self._fs.unlink(self.path, missing_ok=True)

    # --- bulk access

    def as_array(self) -> "numpy.ndarray[Any, Any]":
        """A structured numpy array of the entries as of now, big endian.

        For whole-column work (checks, dumps). It is a copy: a view of the mapping would have to
        trust that nobody cuts the file for as long as it lives. Raises CorruptIndex, OSError.
        """
        import numpy

        if not self._loaded:
            self._load()
        table = numpy.zeros(self._entries, dtype=self._dtype())
        stored = self._stored
        if stored:
            mapping = self._mapped(stored * self.ENTRY_SIZE)
            table[:stored] = numpy.frombuffer(mapping.view(), table.dtype, stored)
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
    """Number of the largest entry of a block whose field is <= target; its first one is.

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
