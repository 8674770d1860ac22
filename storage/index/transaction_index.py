"""The index of aborted transactions of a segment: which records a committed reader must skip.

Entry (34 bytes, big endian):

    int16  version              0
    int64  producer id
    int64  first offset         of the transaction's data
    int64  last offset          of its ABORT marker (which lies in this segment)
    int64  last stable offset   of the log when the marker was written

Last offsets rise strictly, and a last stable offset never exceeds last offset + 1. The file is made
by the first append (S-TXN-3); missing entries are rebuilt from the log. The file is read whole at
the first use and kept as bytes; no descriptor stays open.

Kafka's TransactionIndex and AbortedTxn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from crc32c import crc32c

from storage.errors import CorruptIndex, InvalidIndexAppend
from storage.filesystem import File, FileSystem

VERSION: Final = 0

_ENTRY: Final = Struct(">hqqqq")
ENTRY_SIZE: Final = _ENTRY.size

Checksum = tuple[int, int]
"""(size in bytes, CRC-32C) of an index file, or of its beginning."""

NO_ABORTED: Final[Checksum] = (0, 0)
"""`checksum` of an index without entries."""

_unpack_long = Struct(">q").unpack_from
_LAST_OFFSET: Final = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTxn:
    """One aborted transaction as the index keeps it."""

    producer_id: int
    first_offset: int
    """Offset of the transaction's first record."""
    last_offset: int
    """Offset of the ABORT marker."""
    last_stable_offset: int
    """The log's when the marker was appended: a read that ends at or below it needs no later entry.
    """

    def pack(self) -> bytes:
        """The 34 bytes of the entry."""
        return _ENTRY.pack(
            VERSION,
            self.producer_id,
            self.first_offset,
            self.last_offset,
            self.last_stable_offset,
        )


class TransactionIndex:
    """Aborted transactions whose markers are in one segment, in the order of the markers."""

    __slots__ = ("_data", "_fs", "_prepared", "_sum", "_torn", "base_offset", "path")

    def __init__(self, fs: FileSystem, path: str, base_offset: int) -> None:
        self._fs = fs
        self.path = path
        self.base_offset = base_offset
        self._data: bytearray | None = None  # None: the file was not read yet
        self._torn = 0
        self._sum = 0
        self._prepared: File | None = None

    def prepare(self) -> None:
        """Read and open the file for the next `append`, which then needs no descriptor.

        Called before a marker is appended, because the entry is written after it. Raises OSError.
        """
        self._all_bytes()
        self._prepared = self._fs.open(self.path, create=True)

    def _load(self) -> bytearray:
        try:
            raw = self._fs.read_bytes(self.path)
        except FileNotFoundError:
            raw = b""
        # A partial entry at the end is a write that a crash cut short: it does not count (S-REC-9).
        self._torn = len(raw) % ENTRY_SIZE
        self._data = bytearray(raw[: len(raw) - self._torn])
        self._sum = crc32c(raw)
        return self._data

    def _all_bytes(self) -> bytearray:
        return self._data if self._data is not None else self._load()

    @property
    def checksum(self) -> Checksum:
        """The checksum of the file, a partial last entry included."""
        data = self._all_bytes()
        return len(data) + self._torn, self._sum

    def checksum_of(self, entries: int) -> Checksum:
        """The checksum of the first `entries` entries."""
        size = entries * ENTRY_SIZE
        return size, crc32c(self._all_bytes()[:size])

    def checksum_below(self, offset: int) -> Checksum:
        """The checksum of the entries whose marker is below `offset`."""
        return self.checksum_of(self._first_at_or_after(offset) // ENTRY_SIZE)

    def begins_with(self, checksum: Checksum) -> bool:
        """Whether the index begins with entries that have this checksum."""
        size, crc = checksum
        data = self._all_bytes()
        return size <= len(data) and crc32c(data[:size]) == crc

    @property
    def packed(self) -> bytes:
        """The bytes of all whole entries."""
        return bytes(self._all_bytes())

    @property
    def entries(self) -> int:
        """Number of aborted transactions."""
        return len(self._all_bytes()) // ENTRY_SIZE

    @property
    def is_empty(self) -> bool:
        """Whether no transaction was aborted in this segment."""
        return not self._all_bytes()

    @property
    def last_offset(self) -> int | None:
        """Offset of the last ABORT marker."""
        data = self._all_bytes()
        if not data:
            return None
        (offset,) = _unpack_long(data, len(data) - ENTRY_SIZE + _LAST_OFFSET)
        return int(offset)

    def append(self, txn: AbortedTxn) -> None:
        """Add an entry, making the file if it is the first.

        Raises InvalidIndexAppend when its last offset does not rise, OSError (nothing was added).
        """
        last = self.last_offset
        if last is not None and txn.last_offset <= last:
            raise InvalidIndexAppend(
                f"{self.path}: last offset {txn.last_offset} of an aborted transaction is not "
                f"larger than {last}"
            )
        self._write_behind(txn.pack())

    def extend(self, entries: bytes) -> None:
        """Add whole entries, whose last offsets rise, to an index without any. Raises OSError."""
        assert self.is_empty
        if entries:
            self._write_behind(entries)

    def _write_behind(self, entry: bytes) -> None:
        data = self._all_bytes()
        file, self._prepared = self._prepared or self._fs.open(self.path, create=True), None
        try:
            # Behind the last whole entry: a torn one is overwritten.
            file.pwrite(entry, len(data))
        finally:
            file.close()
        data += entry  # in place: there may be millions
        self._sum = crc32c(entry, self._sum) if not self._torn else crc32c(data)
        self._torn = 0

    def collect_aborted(self, fetch_offset: int, upper: int) -> tuple[list[AbortedTxn], bool]:
        """Aborted transactions that overlap [fetch_offset, upper), and whether these are all.

        False: later segments may have markers of further ones; read those too (S-READ-5).
        """
        data = self._all_bytes()
        result = []
        # Entries whose marker is below fetch_offset - 1 neither match nor end the search.
        for start in range(self._first_at_or_after(fetch_offset - 1), len(data), ENTRY_SIZE):
            txn = _unpack(data, start)
            if txn.last_offset >= fetch_offset and txn.first_offset < upper:
                result.append(txn)
            if txn.last_stable_offset >= upper:
                return result, True
        return result, False

    def marker_after(self, offset: int, count: int) -> int | None:
        """The offset of the ABORT marker after the first `count` at or above `offset`, if any."""
        at = self._first_at_or_after(offset) + count * ENTRY_SIZE
        data = self._all_bytes()
        return int(_unpack_long(data, at + _LAST_OFFSET)[0]) if at < len(data) else None

    def all_aborted(self) -> list[AbortedTxn]:
        """Every entry."""
        return list(self._iterate())

    def _iterate(self) -> Iterator[AbortedTxn]:
        data = self._all_bytes()
        for start in range(0, len(data), ENTRY_SIZE):
            yield _unpack(data, start)

    def _first_at_or_after(self, offset: int) -> int:
        """Byte position of the first entry whose last offset is >= `offset`."""
        data = self._all_bytes()
        low, high = 0, len(data) // ENTRY_SIZE
        while low < high:
            middle = (low + high) // 2
            if _unpack_long(data, middle * ENTRY_SIZE + _LAST_OFFSET)[0] < offset:
                low = middle + 1
            else:
                high = middle
        return low * ENTRY_SIZE

    def truncate_to(self, offset: int) -> None:
        """Drop every entry whose marker is at or above `offset`. Raises OSError."""
        data = self._all_bytes()
        self._cut(self._first_at_or_after(offset), data)

    def keep(self, entries: int) -> None:
        """Drop all but the first `entries`. Raises OSError."""
        self._cut(entries * ENTRY_SIZE, self._all_bytes())

    def truncate(self) -> None:
        """Drop all entries; a file that was made stays, empty (Kafka's `reset`). Raises OSError."""
        self._cut(0, self._all_bytes())

    def _cut(self, size: int, data: bytearray) -> None:
        if size == len(data) and not self._torn:
            return
        file = self._fs.open(self.path)
        try:
            file.truncate(size)
        finally:
            file.close()
        self._data = data[:size]
        self._sum = crc32c(self._data)
        self._torn = 0

    def sanity_check(self) -> None:
        """Raises CorruptIndex for a partial entry, an unknown version, or offsets that cannot be.

        Reads the file again. Raises OSError.
        """
        data = self._load()
        if self._torn:
            raise CorruptIndex(self.path, f"{self._torn} bytes of an entry at the end")
        last = -1
        for start in range(0, len(data), ENTRY_SIZE):
            version, producer_id, first, marker, _ = _ENTRY.unpack_from(data, start)
            if version > VERSION:
                raise CorruptIndex(self.path, f"unexpected version {version}")
            if marker < self.base_offset:
                raise CorruptIndex(
                    self.path,
                    f"last offset {marker} of an aborted transaction of producer {producer_id} is "
                    f"below start offset {self.base_offset}",
                )
            if marker <= last or first > marker:
                raise CorruptIndex(self.path, f"offsets {first}..{marker} follow {last}")
            last = marker

    def _check(self) -> None:
        markers = [txn.last_offset for txn in self._iterate()]
        assert markers == sorted(set(markers))
        assert all(t.last_stable_offset <= t.last_offset + 1 for t in self._iterate())


def _unpack(data: bytes | bytearray, start: int) -> AbortedTxn:
    _, producer_id, first, last, stable = _ENTRY.unpack_from(data, start)
    return AbortedTxn(
        producer_id=producer_id, first_offset=first, last_offset=last, last_stable_offset=stable
    )
