"""The offset index of a segment: which batch starts where, every few kilobytes.

Entry (8 bytes, big endian):

    int32  relative offset    last offset of a batch minus the segment's base offset
    int32  position           where that batch *starts* in the record file (S-IDX-1)

Offsets and positions rise strictly. The first batch of a segment is never indexed, so a position is
never 0 and an entry of zeros is padding. Kafka's OffsetIndex.
"""

from struct import Struct
from typing import ClassVar, Final

from storage.errors import CorruptIndex, IndexOffsetOverflow, InvalidIndexAppend
from storage.filesystem import FileSystem
from storage.index.mapped_index import MAX_RELATIVE_OFFSET, MappedIndex

ENTRY_SIZE: Final = 8

_ENTRY: Final = Struct(">ii")
pack_entry = _ENTRY.pack
_unpack_entry = _ENTRY.unpack_from
_unpack_int = Struct(">i").unpack_from
_POSITION: Final = 4


class OffsetIndex(MappedIndex):
    """Sparse map from offset to file position. Raises CorruptIndex when the file was cut."""

    ENTRY_SIZE: ClassVar[int] = ENTRY_SIZE

    __slots__ = ("_last_offset", "_last_position")

    def __init__(self, fs: FileSystem, path: str, base_offset: int, max_size: int) -> None:
        super().__init__(fs, path, base_offset, max_size)
        self._last_offset = base_offset
        self._last_position = 0

    @property
    def last_offset(self) -> int:
        """Offset of the last entry; the base offset when there is none."""
        if not self._loaded:
            self._load()
        return self._last_offset

    def lookup(self, target: int) -> tuple[int, int]:
        """(offset, position) of the largest entry <= `target` (S-IDX-3).

        (base offset, 0) when there is none.
        """
        if not self._loaded:
            self._load()
        last = self._last_offset
        if target >= last:
            # No search for consumers that keep up; right for an empty index as well.
            return last, self._last_position
        base = self.base_offset
        slot, entry = self._floor(_unpack_int, 0, target - base)
        if slot < 0:
            return base, 0
        relative, position = _unpack_entry(entry)
        return base + relative, position

    def upper_bound(self, position: int, size: int) -> tuple[int, int] | None:
        """First entry whose position is >= `position + size`; None when there is none.

        Its offset bounds from above the offsets in the `size` bytes at `position`, so that aborted
        transactions are found without reading the data.
        """
        if not self._loaded:
            self._load()
        slot = self._floor(_unpack_int, _POSITION, position + size - 1)[0] + 1
        return self.entry(slot) if slot < self._entries else None

    def entry(self, slot: int) -> tuple[int, int]:
        """(offset, position) of one entry, counted from 0. Raises IndexError."""
        if not self._loaded:
            self._load()
        if not 0 <= slot < self._entries:
            raise IndexError(f"{self.path} has {self._entries} entries, no entry {slot}")
        relative, position = _unpack_entry(self._entry(slot))
        return self.base_offset + relative, position

    def append(self, offset: int, position: int) -> None:
        """Add an entry for the batch that ends at `offset` and starts at `position`.

        Raises InvalidIndexAppend when full or when the offset does not rise, IndexOffsetOverflow,
        CorruptIndex, OSError (disk full); then nothing was added.
        """
        if not self._loaded:
            self._load()
        entries = self._entries
        if entries >= self._max_entries:
            raise InvalidIndexAppend(f"{self.path} is full ({entries} entries)")
        if entries and offset <= self._last_offset:
            raise InvalidIndexAppend(
                f"{self.path}: offset {offset} (entry {entries}) is not larger than the last "
                f"offset {self._last_offset}"
            )
        relative = offset - self.base_offset
        if not 0 <= relative <= MAX_RELATIVE_OFFSET:
            raise IndexOffsetOverflow(self.path, self.base_offset, offset)
        if self._unwritten <= 0:
            self._reserve()
        self._tail += pack_entry(relative, position)
        self._unwritten -= ENTRY_SIZE
        self._entries = entries + 1
        self._last_offset = offset
        self._last_position = position

    def truncate_to(self, offset: int) -> None:
        """Drop every entry at or above `offset` (S-IDX-5)."""
        if not self._loaded:
            self._load()
        self._shrink_to(self._floor(_unpack_int, 0, offset - self.base_offset - 1)[0] + 1)

    def sanity_check(self, *, log_size: int | None = None, full: bool = False) -> None:
        """Raises CorruptIndex when the file contradicts itself, or the record file's size.

        `full` looks at every entry instead of at the last one.
        """
        super().sanity_check()
        if self._entries and self._last_offset <= self.base_offset:
            raise CorruptIndex(
                self.path,
                f"last offset {self._last_offset} is not above base offset {self.base_offset}",
            )
        if self._entries and log_size is not None and self._last_position >= log_size:
            raise CorruptIndex(
                self.path, f"points to {self._last_position} in a log of {log_size} bytes"
            )
        if full and self._entries:
            self._check_order()

    def _check_order(self) -> None:
        import numpy

        table = self.as_array()
        for column in ("relative_offset", "position"):
            values = table[column].astype(numpy.int64)
            if values[0] <= 0 or bool((numpy.diff(values) <= 0).any()):
                raise CorruptIndex(self.path, f"{column} does not rise strictly")

    def _is_padding(self, entry: bytes, slot: int) -> bool:
        return _unpack_entry(entry) == (0, 0)

    def _refresh_last(self) -> None:
        if self._entries:
            relative, position = _unpack_entry(self._entry(self._entries - 1))
            self._last_offset = self.base_offset + relative
            self._last_position = position
        else:
            self._last_offset = self.base_offset
            self._last_position = 0

    def _dtype(self) -> list[tuple[str, str]]:
        return [("relative_offset", ">i4"), ("position", ">i4")]

    def _check(self) -> None:
        super()._check()
        if self._loaded and self._entries:
            self._check_order()
            assert self.entry(self._entries - 1) == (self._last_offset, self._last_position)
