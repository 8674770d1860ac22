"""Producer snapshots: the state of all producers of a partition as of an offset.

File `<20-digit offset>.snapshot`; it holds everything below that offset. All big endian:

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

Only the last batch of each producer is kept, so after a restart only its repetition is recognised.
A snapshot is a shortcut: what is damaged or missing is replayed from the log (S-REC-5). It is
written in place, as in Kafka; the CRC tells a torn one.

Called by `storage.producers.state` and by tools that show a snapshot.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from crc32c import crc32c

from storage.errors import CorruptSnapshot
from storage.filesystem import FileSystem
from storage.producers.entry import BatchMetadata, ProducerStateEntry

VERSION: Final = 1

_VERSION: Final = Struct(">h")
_CRC: Final = Struct(">I")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_CRC_START: Final = _VERSION.size
_COUNT_START: Final = _CRC_START + _CRC.size
_ENTRIES_START: Final = _COUNT_START + _COUNT.size
ENTRY_SIZE: Final = _ENTRY.size


def encode_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    """The bytes of a snapshot file, entries in the order given."""
    packed = [_pack(entry) for entry in entries]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _VERSION.pack(VERSION) + _CRC.pack(crc32c(body)) + body


def decode_snapshot(data: bytes, path: str = "snapshot") -> list[ProducerStateEntry]:
    """The entries of a snapshot file's bytes. Raises CorruptSnapshot, naming `path`."""
    if len(data) < _ENTRIES_START:
        raise CorruptSnapshot(path, f"{len(data)} bytes are too few")
    (version,) = _VERSION.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(path, f"unknown version {version}")
    (stored,) = _CRC.unpack_from(data, _CRC_START)
    computed = crc32c(memoryview(data)[_COUNT_START:])
    if stored != computed:
        raise CorruptSnapshot(path, f"stored CRC {stored} is not the computed one, {computed}")
    (count,) = _COUNT.unpack_from(data, _COUNT_START)
    if len(data) != _ENTRIES_START + count * ENTRY_SIZE:
        raise CorruptSnapshot(path, f"{len(data)} bytes do not hold {count} entries exactly")
    return [_unpack(*fields) for fields in _ENTRY.iter_unpack(data[_ENTRIES_START:])]


def read_snapshot(fs: FileSystem, path: str) -> list[ProducerStateEntry]:
    """The entries of a snapshot file. Raises CorruptSnapshot, OSError."""
    return decode_snapshot(fs.read_bytes(path), path)


def write_snapshot(
    fs: FileSystem, path: str, entries: Iterable[ProducerStateEntry], *, sync: bool
) -> None:
    """Write a snapshot file; durable on return if `sync`. Raises OSError."""
    data = encode_snapshot(entries)
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
    capacity = 16
    while largest_size > capacity * 3 // 4:
        capacity *= 2
    mask = capacity - 1

    def bucket(producer_id: int) -> int:
        folded = (producer_id ^ (producer_id >> 32)) & 0xFFFFFFFF
        return (folded ^ (folded >> 16)) & mask

    return sorted(producer_ids, key=bucket)


def _pack(entry: ProducerStateEntry) -> bytes:
    last = entry.last_batch
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        entry.last_sequence,
        last.last_offset if last else -1,
        last.offset_delta if last else 0,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def _unpack(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    txn_first_offset: int,
) -> ProducerStateEntry:
    last_batch = None
    if last_offset >= 0:
        last_batch = BatchMetadata(last_sequence, last_offset, offset_delta, timestamp)
    return ProducerStateEntry(
        producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        last_timestamp=timestamp,
        current_txn_first_offset=max(txn_first_offset, -1),
        last_batch=last_batch,
    )
