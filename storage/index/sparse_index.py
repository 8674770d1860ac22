"""What offset and time index share: a sorted array of fixed-size entries in a file.

Format: entries one after the other, big endian, no header. While a segment is active its index is
pre-sized to `max_size` rounded down to whole entries (S-ROLL-4 trims it), so the file says how many
entries it *may* hold; how many it holds is known to the object that appends to it.

Guaranteed after a crash: nothing. An index is a shortcut into a log that survives without it; the
loader rebuilds what lies above the recovery point. Below it a pre-sized file with zeros at its end
must not be taken for entries at offset `base_offset`: opening counts real entries only, and
`sanity_check` then raises CorruptIndex, because pages in the middle may be missing too (S-IDX-8).

The file is read and written, never mapped: touching a mapped page of a file that somebody has cut
kills the process (SIGBUS), and so does storing into a hole on a full disk. A file that has become
shorter is a CorruptIndex here, a full disk an OSError. A lookup reads the last entries at once (the
warm section), and only if it has to look before them one entry per step and then one block.
Entries are appended in memory and written some dozens at a time, to where zeros were written
before: a disk that is full says so ahead of them. (Not by fallocate, which waits for ext4's
journal.) If they are lost, with the process or by `release`, the index is sparser and still right.

What an entry says is not believed because it stands here: `LogSegment` holds it against the log.

Lazy (S-IDX-7): no file is touched before the first question; the file is made by the first append
(or by `trim_to_valid_size`, so that a cleanly closed log has its index files). The descriptor goes
with `release`; renaming and deleting an open index are safe.

Only `storage.log` calls this.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Final

from storage.errors import CorruptIndex, IndexOffsetOverflow
from storage.filesystem import File, FileSystem
from storage.paths import file_name, join

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy

MAX_RELATIVE_OFFSET: Final = 2**31 - 1

_UNWRITTEN_BYTES: Final = 1024
"""Appended entries are written when they are so many: a call to the system per dozens of appends,
and not much memory in thousands of active segments."""

_WARM_BYTES: Final = 4096
"""Searches for something near the end read only this, at once."""

_NONE: Final = (0, b"")


class SparseIndex:
    """Base of OffsetIndex and TimeIndex; see the module's essay."""

    ENTRY_SIZE: ClassVar[int]

    __slots__ = (
        "_entries",
        "_file",
        "_fs",
        "_length",
        "_loaded",
        "_max_entries",
        "_padded",
        "_recent",
        "_tail",
        "_unwritten",
        "_writable",
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
        self._file: File | None = None
        self._writable = False
        self._entries = 0
        self._tail = bytearray()
        """The last entries, those that are not in the file yet."""
        self._unwritten = 0
        """How many bytes of `_tail` may still be added before it is written; 0: ask `_reserve`."""
        self._length = -1  # bytes of the file; -1: there is none
        self._padded = False
        self._recent: tuple[int, bytes] = _NONE
        """The block before the warm section that was searched last, and its first slot: who reads
        on from there finds his next place in it as well."""

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
    def max_entries(self) -> int:
        """Entries the index may hold."""
        return self._max_entries

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
        self._writable = False
        self._recent = _NONE
        self._length = -1
        self._entries = 0
        try:
            self._file = self._fs.open(self.path, writable=False)
        except FileNotFoundError:
            self._file = None
        else:
            self._length = self._file.size()
            self._entries = self._length // self.ENTRY_SIZE
            last = self._entries - 1
            if last >= 0 and self._is_padding(self._block(last, 1), last):
                self._entries = self._count_real_entries()
                self._padded = True
        self._loaded = True
        self._refresh_last()

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
        file, entry_size = self._file, self.ENTRY_SIZE
        if file is None:
            return b""
        data = file.pread(count * entry_size, first * entry_size)
        if len(data) < count * entry_size:
            raise CorruptIndex(self.path, f"was cut to less than {first + count} entries")
        return data

    def _entry(self, slot: int) -> bytes | bytearray:
        """The bytes of one entry, which exists."""
        stored = self._stored
        if slot < stored:
            return self._block(slot, 1)
        start = (slot - stored) * self.ENTRY_SIZE
        return self._tail[start : start + self.ENTRY_SIZE]

    def _floor(
        self, unpack: "Callable[[bytes | bytearray, int], tuple[int, ...]]", field: int, target: int
    ) -> int:
        """Slot of the largest entry whose field (at byte `field`) is <= target; -1 when none.

        The warm section changes no answer (S-IDX-3).
        """
        size, stored, tail = self.ENTRY_SIZE, self._stored, self._tail
        if tail and unpack(tail, field)[0] <= target:
            return stored + floor_slot(unpack, tail, size, field, target)
        first, block = self._recent
        if (
            block
            and unpack(block, field)[0] <= target < unpack(block, len(block) - size + field)[0]
        ):
            return first + floor_slot(unpack, block, size, field, target)
        warm = _WARM_BYTES // size
        first = max(stored - warm, 0)
        block = self._block(first, stored - first)
        if not block:
            return -1
        if unpack(block, field)[0] > target:
            # Which block may hold it: the last one whose first entry is not beyond the target.
            low, high = 0, -(-first // warm) - 1
            if high < 0 or unpack(self._block(0, 1), field)[0] > target:
                return -1
            while low < high:
                middle = (low + high + 1) >> 1
                if unpack(self._block(middle * warm, 1), field)[0] <= target:
                    low = middle
                else:
                    high = middle - 1
            first = low * warm
            block = self._block(first, min(warm, stored - first))
            if unpack(block, field)[0] > target:
                return -1  # changed under our hands
            self._recent = first, block
        return first + floor_slot(unpack, block, size, field, target)

    def _all_bytes(self) -> bytes:
        """Every entry."""
        if not self._loaded:
            self._load()
        return self._block(0, self._stored) + bytes(self._tail)

    # --- appending, shrinking

    def _reserve(self) -> None:
        """Make room for further entries in `_tail`: file made, pre-sized, what it held written.

        Raises OSError; then nothing has changed for the caller.
        """
        file = self._open_to_write()
        full = max(self._max_entries, self._entries + 1) * self.ENTRY_SIZE
        if self._length < full:
            file.truncate(full)
            self._length = full
        size = self.ENTRY_SIZE
        room = min(_UNWRITTEN_BYTES // size * size, full - self._entries * size)
        # With zeros after it: the blocks that the next entries need are taken while it can fail.
        file.pwrite(self._tail + bytes(room), self._stored * size)
        self._tail = bytearray()
        self._unwritten = room

    def _open_to_write(self) -> File:
        if self._file is None or not self._writable:
            self._file = self._fs.open(self.path, create=True)
            self._writable = True
            self._length = max(self._length, 0)
        return self._file

    def write_entries(self) -> None:
        """All that were appended are in the file when this returns. Raises OSError."""
        tail = self._tail
        if tail:
            self._open_to_write().pwrite(tail, self._stored * self.ENTRY_SIZE)
            self._tail = bytearray()
            self._unwritten = 0

    def _shrink_to(self, entries: int) -> None:
        if not self._loaded:
            self._load()
        if entries >= self._entries:
            return
        kept = max(entries - self._stored, 0) * self.ENTRY_SIZE
        del self._tail[kept:]
        self._recent = _NONE
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
        self._open_to_write().truncate(size)
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
        self._file = None
        self._recent = _NONE

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
        """A read-only structured numpy array of the entries as of now, big endian.

        For whole-column work (checks, dumps).
        """
        import numpy

        return numpy.frombuffer(self._all_bytes(), dtype=self._dtype())

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
