"""What offset and time index share: a sorted array of fixed-size entries in a memory-mapped file.

Format: entries one after the other, big endian, no header. While a segment is active its index is
pre-sized to `max_size` rounded down to whole entries (S-ROLL-4 trims it), so the file says how many
entries it *may* hold; how many it holds is known to the object that appends to it.

Guaranteed after a crash: nothing. An index is a shortcut into a log that survives without it; the
loader rebuilds what lies above the recovery point. Below it a pre-sized file with zeros at its end
must not be taken for entries at offset `base_offset`: opening counts real entries only, and
`sanity_check` then raises CorruptIndex, because pages in the middle may be missing too (S-IDX-8).

Disk space: Kafka pre-sizes to 10 MB, sparse. A store into a hole of a mapped file on a full disk
kills the process (SIGBUS), so space is taken ahead of the entries by writing zeros: one page first,
then doubling, at most 64 KB at a time. (Not by fallocate, which waits for ext4's journal.) A full
disk is an OSError out of `append`, and thousands of small partitions do not occupy gigabytes.

Lazy (S-IDX-7): no file is touched before the first question; the file is made by the first append
(or by `trim_to_valid_size`, so that a cleanly closed log has its index files). No descriptor stays
open besides the one of the mapping; renaming and deleting under a mapping are safe.

Only `storage.log` calls this.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Final

from storage.errors import CorruptIndex, IndexOffsetOverflow
from storage.filesystem import FileSystem
from storage.paths import file_name, join

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy

MAX_RELATIVE_OFFSET: Final = 2**31 - 1

_PAGE: Final = 4096
_LARGEST_STEP: Final = 64 * 1024
_WARM_BYTES: Final = 8192
"""Searches for something near the end look only here, so the pages of a big index that fetches of
recent data touch are always the same few (Kafka's warm section)."""

_NOTHING: Final = memoryview(b"")


class MappedIndex:
    """Base of OffsetIndex and TimeIndex; see the module's essay."""

    ENTRY_SIZE: ClassVar[int]

    __slots__ = (
        "_entries",
        "_fs",
        "_length",
        "_map",
        "_max_entries",
        "_padded",
        "_reserved",
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
        self._map: memoryview | None = None  # None: the file was not asked yet
        self._entries = 0
        self._length = -1  # bytes of the file; -1: there is none
        self._reserved = 0  # bytes that may be stored into without asking the file system
        self._padded = False

    def __repr__(self) -> str:
        state = f"{self._entries} entries" if self._map is not None else "not opened"
        return f"{type(self).__name__}({self.path!r}, base_offset={self.base_offset}, {state})"

    # --- what subclasses say about their entries

    def _is_padding(self, view: memoryview, slot: int) -> bool:
        """Whether the entry at `slot` can only be the zeros a file is pre-sized with."""
        raise NotImplementedError

    def _refresh_last(self, view: memoryview) -> None:
        """`_entries` changed: look the last entry up again."""
        raise NotImplementedError

    def _dtype(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    # --- sizes

    @property
    def entries(self) -> int:
        """Entries in the index."""
        if self._map is None:
            self._load()
        return self._entries

    @property
    def max_entries(self) -> int:
        """Entries the index may hold."""
        return self._max_entries

    @property
    def is_full(self) -> bool:
        """Whether the segment must roll because no further entry fits."""
        if self._map is None:
            self._load()
        return self._entries >= self._max_entries

    @property
    def free(self) -> int:
        """Entries that can be appended before it is full."""
        if self._map is None:
            self._load()
        return max(self._max_entries - self._entries, 0)

    @property
    def size_in_bytes(self) -> int:
        """Bytes of real entries, without the pre-sized rest."""
        return self.entries * self.ENTRY_SIZE

    def relative_offset(self, offset: int) -> int:
        """`offset` as stored. Raises IndexOffsetOverflow when 31 bits do not hold it (S-IDX-4)."""
        relative = offset - self.base_offset
        if 0 <= relative <= MAX_RELATIVE_OFFSET:
            return relative
        raise IndexOffsetOverflow(self.path, self.base_offset, offset)

    def can_append_offset(self, offset: int) -> bool:
        """Whether `offset` can be expressed relative to this index's base."""
        return 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET

    # --- opening, growing, shrinking

    def _load(self) -> memoryview:
        """Open and map what is on disk. Raises OSError."""
        self._reserved = 0
        self._padded = False
        try:
            file = self._fs.open(self.path, writable=False)
        except FileNotFoundError:
            self._length = -1
            self._entries = 0
            view = _NOTHING
        else:
            self._length = file.size()
            self._entries = self._length // self.ENTRY_SIZE
            view = file.map(self._length, writable=False) if self._entries else _NOTHING
            file.close()
        if self._entries and self._is_padding(view, self._entries - 1):
            self._entries = self._count_real_entries(view)
            self._padded = True
        self._map = view
        self._refresh_last(view)
        return view

    def _count_real_entries(self, view: memoryview) -> int:
        # Real entries are never padding, so "is padding" is sorted: search for where it begins.
        low, high = 0, self._entries
        while low < high:
            middle = (low + high) // 2
            if self._is_padding(view, middle):
                high = middle
            else:
                low = middle + 1
        return low

    def _reserve(self) -> memoryview:
        """Make the next slot safe to store into: file made, pre-sized, blocks held, writable map.

        Raises OSError; then nothing has changed for the caller.
        """
        used = self._entries * self.ENTRY_SIZE
        needed = used + self.ENTRY_SIZE
        page_end = -(-needed // _PAGE) * _PAGE
        full = max(self._max_entries * self.ENTRY_SIZE, needed)
        reserve = max(page_end, self._reserved + min(self._reserved, _LARGEST_STEP))
        reserve = min(reserve, full)
        file = self._fs.open(self.path, create=True)
        try:
            if self._length < full:
                file.truncate(full)
                self._length = full
            start = max(used, self._reserved)
            file.pwrite(bytes(reserve - start), start)
            if not self._reserved:
                self._map = file.map(self._length, writable=True)
        finally:
            file.close()
        self._reserved = reserve
        assert self._map is not None
        return self._map

    def _shrink_to(self, entries: int) -> None:
        view = self._map if self._map is not None else self._load()
        if entries >= self._entries:
            return
        self._entries = entries
        self._refresh_last(view)
        # What was cut must not come back as entries after a crash.
        self.trim_to_valid_size()

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
        if self._map is None:
            self._load()
        size -= size % self.ENTRY_SIZE
        if size < self._entries * self.ENTRY_SIZE:
            raise ValueError(f"{self.path}: {size} bytes do not hold {self._entries} entries")
        if size == self._length:
            return False
        file = self._fs.open(self.path, create=True)
        try:
            # Pages past the new end are gone: forget the mapping first. Readers that still hold a
            # view look at entries only, and those stay.
            self._map = None
            file.truncate(size)
            self._length = size
            self._map = file.map(size, writable=False) if size else _NOTHING
            self._reserved = 0
            self._padded = False
        finally:
            file.close()
        return True

    def trim_to_valid_size(self) -> bool:
        """Cut the file to its entries (S-ROLL-4), making an empty one if need be; False if it was.

        Raises OSError.
        """
        return self.resize(self.entries * self.ENTRY_SIZE)

    def release(self) -> None:
        """Forget the mapping of an index nobody appends to; the next question opens it again."""
        if self._map is not None and self._length == self._entries * self.ENTRY_SIZE:
            self._map = None

    # --- life of the file

    def flush(self) -> None:
        """Make the entries durable. Raises OSError."""
        if self._map is None or self._length <= 0:
            return
        try:
            file = self._fs.open(self.path)
        except FileNotFoundError:
            # Renamed or deleted meanwhile, together with its segment. Whoever did that cares for
            # durability if it matters; an index that is lost is rebuilt.
            return
        try:
            file.fsync()  # covers stores through the mapping
        finally:
            file.close()

    def close(self) -> None:
        """Trim and forget. An index that was never asked is left as it is. Raises OSError."""
        if self._map is not None:
            self.trim_to_valid_size()
            self._map = None

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
        """A read-only structured numpy view of the entries, in place and big endian.

        For whole-column work (checks, dumps). It does not follow later appends.
        """
        import numpy

        view = self._map if self._map is not None else self._load()
        data = view[: self._entries * self.ENTRY_SIZE].toreadonly()
        return numpy.frombuffer(data, dtype=self._dtype())

    # --- checks

    def sanity_check(self) -> None:
        """Raises CorruptIndex when the file cannot be right as a whole (S-IDX-6, S-IDX-8)."""
        if self._map is None:
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
        if self._map is None:
            return
        used = self._entries * self.ENTRY_SIZE
        assert 0 <= self._entries <= max(self._max_entries, self._length // self.ENTRY_SIZE)
        assert used <= max(self._length, 0)
        assert len(self._map) <= max(self._length, 0)  # shorter after a failed reservation
        assert used <= len(self._map)
        assert self._reserved == 0 or used <= self._reserved <= self._length
        assert self._fs.exists(self.path) or self._length == -1


def floor_slot(
    unpack: "Callable[[memoryview, int], tuple[int, ...]]",
    view: memoryview,
    entry_size: int,
    field: int,
    entries: int,
    target: int,
) -> int:
    """Slot of the largest entry whose field (at byte `field`) is <= target; -1 when there is none.

    Binary search with a warm section at the end: the result is the same as without (S-IDX-3).
    A plain loop: numpy's searchsorted copies a big-endian column whole before it searches.
    """
    if not entries:
        return -1
    low = entries - 1 - _WARM_BYTES // entry_size
    if low > 0 and unpack(view, low * entry_size + field)[0] <= target:
        high = entries - 1
    else:
        high = low if low > 0 else entries - 1
        low = 0
        if unpack(view, field)[0] > target:
            return -1
    while low < high:
        middle = (low + high + 1) >> 1
        if unpack(view, middle * entry_size + field)[0] <= target:
            low = middle
        else:
            high = middle - 1
    return low
