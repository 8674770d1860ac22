"""The time index of a segment: the largest timestamp seen up to an offset.

Entry (12 bytes, big endian):

    int64  timestamp          milliseconds since the epoch
    int32  relative offset    offset of the record with that timestamp, minus the base offset

An entry says: no record at or before `offset` in this segment is later than `timestamp`. Timestamps
rise strictly, offsets do not fall (S-IDX-2). One slot is kept free for the entry that is added when
the segment rolls (S-ROLL-4). Kafka's TimeIndex.
"""

from struct import Struct
from typing import ClassVar, Final

from protocol.types import NO_TIMESTAMP
from storage.errors import CorruptIndex, InvalidIndexAppend
from storage.filesystem import FileSystem
from storage.index.mapped_index import MappedIndex

ENTRY_SIZE: Final = 12

LOOKED_AT: Final = 1024 * 1024
"""Bytes of the log after the last entry in which a later timestamp is looked for. If timestamps
rise with offsets and an entry is missing, the next batch has one."""

_ENTRY: Final = Struct(">qi")
pack_entry = _ENTRY.pack
_unpack_entry = _ENTRY.unpack_from
_unpack_long = Struct(">q").unpack_from
_unpack_int = Struct(">i").unpack_from
_OFFSET: Final = 8


class TimeIndex(MappedIndex):
    """Sparse map from timestamp to offset. Raises CorruptIndex when the file was cut."""

    ENTRY_SIZE: ClassVar[int] = ENTRY_SIZE

    __slots__ = ("_last_offset", "_last_timestamp")

    def __init__(self, fs: FileSystem, path: str, base_offset: int, max_size: int) -> None:
        super().__init__(fs, path, base_offset, max_size)
        self._last_timestamp = NO_TIMESTAMP
        self._last_offset = base_offset

    @property
    def is_full(self) -> bool:
        """Whether the segment must roll; one slot stays free for the roll itself."""
        if not self._loaded:
            self._load()
        return self._entries >= self._max_entries - 1

    @property
    def free(self) -> int:
        """Entries that can be appended before it is full; the reserved slot does not count."""
        return max(super().free - 1, 0)

    @property
    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) when there is none."""
        if not self._loaded:
            self._load()
        return self._last_timestamp, self._last_offset

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """(timestamp, offset) of the largest entry <= `timestamp`; (-1, base offset) if none."""
        if not self._loaded:
            self._load()
        if timestamp >= self._last_timestamp:
            return self._last_timestamp, self._last_offset
        slot, entry = self._floor(_unpack_long, 0, timestamp)
        if slot < 0:
            return NO_TIMESTAMP, self.base_offset
        known, relative = _unpack_entry(entry)
        return known, self.base_offset + relative

    def entry(self, slot: int) -> tuple[int, int]:
        """(timestamp, offset) of one entry, counted from 0. Raises IndexError."""
        if not self._loaded:
            self._load()
        if not 0 <= slot < self._entries:
            raise IndexError(f"{self.path} has {self._entries} entries, no entry {slot}")
        timestamp, relative = _unpack_entry(self._entry(slot))
        return timestamp, self.base_offset + relative

    def maybe_append(self, timestamp: int, offset: int, *, skip_full_check: bool = False) -> bool:
        """Add an entry if `timestamp` is later than the last one's (S-IDX-2); True when added.

        `skip_full_check`: the roll may use the reserved slot (S-ROLL-4). Raises InvalidIndexAppend
        when full or when offset or timestamp go back, IndexOffsetOverflow, CorruptIndex, OSError;
        then nothing was added.
        """
        if not self._loaded:
            self._load()
        entries = self._entries
        if not skip_full_check and entries >= self._max_entries - 1:
            raise InvalidIndexAppend(f"{self.path} is full ({entries} entries)")
        if entries and (offset < self._last_offset or timestamp < self._last_timestamp):
            raise InvalidIndexAppend(
                f"{self.path}: ({timestamp}, {offset}) (entry {entries}) goes back from the last "
                f"entry ({self._last_timestamp}, {self._last_offset})"
            )
        if timestamp <= self._last_timestamp:
            return False
        relative = self.relative_offset(offset)
        if self._unwritten <= 0:
            self._reserve()
        self._tail += pack_entry(timestamp, relative)
        self._unwritten -= ENTRY_SIZE
        self._entries = entries + 1
        self._last_timestamp = timestamp
        self._last_offset = offset
        return True

    def truncate_to(self, offset: int) -> None:
        """Drop every entry at or above `offset` (S-IDX-5)."""
        if not self._loaded:
            self._load()
        below = offset - self.base_offset - 1
        self._shrink_to(self._floor(_unpack_int, _OFFSET, below)[0] + 1)

    def sanity_check(self, *, full: bool = False) -> None:
        """Raises CorruptIndex when the file contradicts itself; `full` looks at every entry."""
        super().sanity_check()
        if not self._entries:
            return
        first_timestamp, _ = self.entry(0)
        if self._last_timestamp < first_timestamp:
            raise CorruptIndex(
                self.path,
                f"last timestamp {self._last_timestamp} is before the first, {first_timestamp}",
            )
        if self._last_offset < self.base_offset:
            raise CorruptIndex(
                self.path,
                f"last offset {self._last_offset} is below base offset {self.base_offset}",
            )
        if full:
            self._check_order()

    def _check_order(self) -> None:
        import numpy

        table = self.as_array()
        timestamps = table["timestamp"].astype(numpy.int64)
        offsets = table["relative_offset"].astype(numpy.int64)
        if timestamps[0] < 0 or bool((numpy.diff(timestamps) <= 0).any()):
            raise CorruptIndex(self.path, "timestamps do not rise strictly")
        if offsets[0] < 0 or bool((numpy.diff(offsets) < 0).any()):
            raise CorruptIndex(self.path, "offsets fall")

    def _is_padding(self, entry: bytes, slot: int) -> bool:
        # (0, 0) may be a real first entry: a record at the base offset with timestamp 0.
        return slot > 0 and _unpack_entry(entry) == (0, 0)

    def _refresh_last(self) -> None:
        if self._entries:
            timestamp, relative = _unpack_entry(self._entry(self._entries - 1))
            self._last_timestamp = timestamp
            self._last_offset = self.base_offset + relative
        else:
            self._last_timestamp = NO_TIMESTAMP
            self._last_offset = self.base_offset

    def _dtype(self) -> list[tuple[str, str]]:
        return [("timestamp", ">i8"), ("relative_offset", ">i4")]

    def _check(self) -> None:
        super()._check()
        if self._loaded and self._entries:
            self._check_order()
            assert self.entry(self._entries - 1) == (self._last_timestamp, self._last_offset)
