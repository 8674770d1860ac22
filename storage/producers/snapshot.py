"""Producer snapshots: the state of all producers of a partition at an offset.

File `<20-digit offset>.snapshot`, which covers the batches below that offset. All big endian:

    int16   version                    1
    uint32  CRC-32C                    over everything after it
    int32   number of entries, each 46 bytes:
        int64  producer id
        int16  producer epoch
        int32  last sequence                 -1: none
        int64  last offset                   -1: none
        int32  offset delta                  last minus first offset of the last batch
        int64  timestamp
        int32  coordinator epoch             -1: none
        int64  current txn first offset      -1: no open transaction

Only the last batch of each producer is kept, so after a restart only a duplicate of that one is
recognised. If a snapshot is damaged or missing, the log is replayed (S-REC-5). It is written in
place, as in Kafka; the CRC reveals a torn one.

Used by this package, `storage.log.index_scan`, and tools that show a snapshot.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from crc32c import crc32c

from storage.errors import CorruptSnapshot
from storage.filesystem import FileSystem
from storage.producers.entry import ProducerStateEntry

VERSION: Final = 1

_VERSION: Final = Struct(">h")
_CRC: Final = Struct(">I")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
PRODUCER_ID: Final = Struct(">q38x")
"""Producer id of a row."""
IDLE_SINCE: Final = Struct(">q18xq4xq")
"""Producer id, timestamp and current txn first offset of a row."""
_CRC_START: Final = _VERSION.size
_COUNT_START: Final = _CRC_START + _CRC.size
HEADER_SIZE: Final = _COUNT_START + _COUNT.size
ENTRY_SIZE: Final = _ENTRY.size


def sealed(file: bytearray) -> bytearray:
    """Write the header before the rows, which begin at `HEADER_SIZE`; returns `file` itself."""
    _COUNT.pack_into(file, _COUNT_START, (len(file) - HEADER_SIZE) // ENTRY_SIZE)
    _VERSION.pack_into(file, 0, VERSION)
    _CRC.pack_into(file, _CRC_START, crc32c(memoryview(file)[_COUNT_START:]))
    return file


def decode_snapshot(data: bytes, path: str = "snapshot") -> list[ProducerStateEntry]:
    """The entries of a snapshot file's bytes. Raises CorruptSnapshot, naming `path`."""
    return [unpack_row(*fields) for fields in _ENTRY.iter_unpack(snapshot_rows(data, path))]


def snapshot_rows(data: bytes, path: str = "snapshot") -> bytes:
    """The bytes of a snapshot's entries. Raises CorruptSnapshot, naming `path`."""
    if len(data) < HEADER_SIZE:
        raise CorruptSnapshot(path, f"{len(data)} bytes are too few")
    (version,) = _VERSION.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(path, f"unknown version {version}")
    (stored,) = _CRC.unpack_from(data, _CRC_START)
    computed = crc32c(memoryview(data)[_COUNT_START:])
    if stored != computed:
        raise CorruptSnapshot(path, f"stored CRC {stored} is not the computed one, {computed}")
    (count,) = _COUNT.unpack_from(data, _COUNT_START)
    if len(data) != HEADER_SIZE + count * ENTRY_SIZE:
        raise CorruptSnapshot(path, f"{len(data)} bytes do not hold {count} entries exactly")
    return data[HEADER_SIZE:]


def read_snapshot(fs: FileSystem, path: str) -> list[ProducerStateEntry]:
    """The entries of a snapshot file. Raises CorruptSnapshot, OSError."""
    return decode_snapshot(fs.read_bytes(path), path)


def write_snapshot(fs: FileSystem, path: str, data: bytes | bytearray, *, sync: bool) -> None:
    """Write a snapshot file; durable on return if `sync`. Raises OSError."""
    file = fs.open(path, create=True)
    try:
        file.truncate(0)
        file.pwrite(data, 0)
        if sync:
            file.fsync()
    finally:
        file.close()


def java_map_order(producer_ids: Iterable[int], largest_size: int) -> Sequence[int]:
    """Producer ids in the order a java.util.HashMap<Long, …> with that history iterates them.

    Kafka writes a snapshot's entries in this order; following it makes the files byte-equal
    (S-FMT-3). `largest_size` is the most entries the map ever held, as its table never shrinks.
    Ids must come in the order they were put into the map.
    """
    mask = java_map_capacity(largest_size) - 1

    def bucket(producer_id: int) -> int:
        folded = (producer_id ^ (producer_id >> 32)) & 0xFFFFFFFF
        return (folded ^ (folded >> 16)) & mask

    return sorted(producer_ids, key=bucket)


def java_map_capacity(largest_size: int) -> int:
    """Buckets of a java.util.HashMap that held so many entries at most."""
    capacity = 16
    while largest_size > capacity * 3 // 4:
        capacity *= 2
    return capacity


def pack_row_into(rows: bytearray, at: int, entry: ProducerStateEntry) -> None:
    """Write an entry as a snapshot's row of `ENTRY_SIZE` bytes at byte `at`."""
    _ENTRY.pack_into(rows, at, *_row_fields(entry))


def row_fields(rows: bytes | bytearray, at: int) -> tuple[int, ...]:
    """The fields of the row at byte `at`, as arguments of `unpack_row`."""
    return _ENTRY.unpack_from(rows, at)


def _row_fields(entry: ProducerStateEntry) -> tuple[int, ...]:
    last_sequence, last_offset, offset_delta, _ = entry.recent[-4:] or (-1, -1, 0, 0)
    return (
        entry.producer_id,
        entry.producer_epoch,
        last_sequence,
        last_offset,
        offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def unpack_row(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    txn_first_offset: int,
) -> ProducerStateEntry:
    """The entry of a row's fields, in their order."""
    return ProducerStateEntry(
        producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        last_timestamp=timestamp,
        current_txn_first_offset=max(txn_first_offset, -1),
        recent=(last_sequence, last_offset, offset_delta, timestamp) if last_offset >= 0 else (),
    )
