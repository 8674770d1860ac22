"""Converts batches of format 2 to message sets of format 0 or 1 for old clients (Fetch v0-3).

Headers are lost, control batches are left out, offsets (with their gaps) and the codec are kept.
zstd cannot be expressed: UnsupportedCompression. As `RecordsUtil.downConvert`.

Only as much is converted as fits into the answer, however large the batches are:

* A batch is opened in chunks (`opened`). An uncompressed message set may end between any two
  messages; of a compressed batch each `WRAPPER` bytes become a message set of their own, so that
  it may end in the middle, too.
* Records below the reader's offset are not converted, so a reader that got the front of a batch
  gets the rest the next time. A compressed batch of one chunk is converted whole, as when brokers
  stored wrappers.
* At least one message (wrapper) is given, whatever the limit, or the reader would never advance.
* Messages that compress to nearly nothing are limited by their uncompressed size: `WORK`.

This loops over records, so it is run in a child process.
"""

import zlib
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct
from typing import Final, NamedTuple

from protocol.records.batch import BatchHeader, TimestampType, iter_batches
from protocol.records.compression import BytesLike, CompressionType
from protocol.records.errors import InvalidRecord, RecordsError, UnsupportedCompression
from protocol.records.header import TIMESTAMP_TYPE_BIT
from protocol.records.message_set import build_message_set, wrap_messages
from protocol.records.opened import Chunk, open_chunks
from protocol.records.record import iter_records
from protocol.records.scan import NUMPY_FROM
from protocol.records.varint import read_varint, read_varlong, wrap_int64

WRAPPER: Final = 1 << 20
"""Bytes of messages in a wrapper of a larger batch, before they are compressed."""
ONE_WRAPPER: Final = 256 << 10
"""A batch that inflates to no more than this becomes one wrapper."""
WORK: Final = 8 << 20
"""Bytes of records read, and of messages made of them, at a time: under a second of small ones."""
UNLIMITED: Final = 1 << 62

_HEAD_V0: Final = Struct(">qiIBBi")  # offset, size, crc, magic, attributes, key length
_HEAD_V1: Final = Struct(">qiIBBqi")  # the same with a timestamp before the key length
_BODY_V0: Final = Struct(">BBi")
_BODY_V1: Final = Struct(">BBqi")
_LENGTH: Final = Struct(">i")

Row = tuple[int, int, bytes | None, bytes | None]
"""Offset delta, timestamp, key, value."""


class Converted(NamedTuple):
    """A message set, and how far it goes."""

    records: bytes
    messages: int
    """Messages in it."""
    read: int
    """Bytes of the batches that were converted to their end. If `records` is empty, all of them
    were left out, and a reader may skip them."""


def down_convert(
    batches: BytesLike, magic: int, first_offset: int = 0, limit: int = UNLIMITED
) -> Converted:
    """The front of `batches` (any magic, a partial one at the end is dropped) as `magic` 0 or 1.

    Batches already at or below `magic` pass as they are. No more than `limit` bytes, unless the
    first message alone is larger. Raises UnsupportedCompression for zstd and unknown codecs,
    CorruptBatch and InvalidRecord for damaged data; if messages come before it, it returns those.
    """
    sets = _Sets(limit)
    read = 0
    try:
        for pos, header in iter_batches(batches):
            if not _convert(batches, pos, header, magic, first_offset, sets):
                break
            read = pos + header.size
    except RecordsError:
        if not sets.pieces:
            raise
    return Converted(b"".join(sets.pieces), sets.count, read)


class _Sets:
    """The message sets so far, and how much more may be converted."""

    __slots__ = ("count", "left", "pieces", "work")

    def __init__(self, limit: int) -> None:
        self.pieces: list[bytes] = []
        self.count = 0
        self.left = limit
        self.work = WORK if limit < UNLIMITED else UNLIMITED

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be added."""
        return bool(self.pieces) and (self.left <= 0 or self.work <= 0)

    def add(self, messages: bytes, count: int) -> bool:
        """Add a message set of `count` messages; False if it does not fit."""
        if self.is_full or (self.pieces and len(messages) > self.left):
            return False
        self.pieces.append(messages)
        self.count += count
        self.left -= len(messages)
        return True


def _convert(
    batches: BytesLike, pos: int, header: BatchHeader, magic: int, first_offset: int, sets: _Sets
) -> bool:
    """Convert one batch; False when the answer is full."""
    if header.magic <= magic:
        passed = bytes(memoryview(batches)[pos : pos + header.size])
        return sets.add(passed, header.record_count)
    if header.is_control or not header.record_count:
        return True
    codec = header.codec
    if codec is CompressionType.ZSTD:
        raise UnsupportedCompression(
            "Down-conversion of zstandard-compressed batches is not supported"
        )
    if header.magic == 1:
        rows = [(r.offset, r.timestamp, r.key, r.value) for r in iter_records(batches, pos)]
        messages = build_message_set(rows, magic=magic, codec=codec)
        sets.work -= len(messages)
        return sets.add(messages, len(rows))
    writer = _Writer(header, magic)
    first_delta = first_offset - header.base_offset
    if codec:
        return _wrap(
            open_chunks(batches, pos, header, chunk=ONE_WRAPPER), writer, codec, first_delta, sets
        )
    return _write_plain(
        open_chunks(batches, pos, header, chunk=ONE_WRAPPER), writer, first_delta, sets
    )


def _write_plain(chunks: Iterator[Chunk], writer: "_Writer", first_delta: int, sets: _Sets) -> bool:
    for chunk in chunks:
        if _last_delta(chunk) < first_delta:
            continue
        for row in _rows(chunk, writer.header):
            if row[0] >= first_delta and not sets.add(writer.message(row, 0), 1):
                return False
        sets.work -= len(chunk.payload)
    return True


def _wrap(
    chunks: Iterator[Chunk],
    writer: "_Writer",
    codec: CompressionType,
    first_delta: int,
    sets: _Sets,
) -> bool:
    """A wrapper for each `WRAPPER` bytes of messages; mostly one in all."""
    group = _Group(writer, codec)
    is_first = True
    for chunk in chunks:
        whole = is_first and chunk.is_last
        is_first = False
        if not whole and _last_delta(chunk) < first_delta:
            continue
        for row in _rows(chunk, writer.header):
            if group.size >= WRAPPER and not group.flush_into(sets):
                return False
            group.add(row)
        sets.work -= len(chunk.payload)
        if sets.work <= 0 and group.rows:
            group.flush_into(sets)
            return False
    return not group.rows or group.flush_into(sets)


class _Group:
    """Messages that share a wrapper. Those of format 1 count their offsets from the first."""

    __slots__ = ("_base", "_codec", "_greatest", "_last", "_messages", "_writer", "rows", "size")

    def __init__(self, writer: "_Writer", codec: CompressionType) -> None:
        self._writer = writer
        self._codec = codec
        self._clear()

    def _clear(self) -> None:
        self._messages: list[bytes] = []
        self._base = self._last = 0
        self._greatest = -1
        self.rows = 0
        self.size = 0

    def add(self, row: Row) -> None:
        writer = self._writer
        self._last = writer.header.base_offset + row[0]
        if not self.rows:
            self._base = self._last if writer.magic else 0
        dated = row[1] if writer.log_append_time is None else writer.log_append_time
        self._greatest = max(self._greatest, dated)
        message = writer.message(row, self._base)
        self._messages.append(message)
        self.rows += 1
        self.size += len(message)

    def flush_into(self, sets: _Sets) -> bool:
        writer = self._writer
        messages = b"".join(self._messages)
        wrapped = wrap_messages(
            messages,
            magic=writer.magic,
            codec=self._codec,
            last_offset=self._last,
            timestamp=self._greatest,
            attributes=writer.attributes,
        )
        sets.work -= len(messages)
        fits = sets.add(wrapped, self.rows)
        self._clear()
        return fits


class _Writer:
    """Writes the records of one batch as messages."""

    __slots__ = ("attributes", "header", "log_append_time", "magic")

    def __init__(self, header: BatchHeader, magic: int) -> None:
        log_dated = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        self.header = header
        self.magic = magic
        self.attributes = TIMESTAMP_TYPE_BIT if log_dated and magic else 0
        self.log_append_time = header.max_timestamp if log_dated else None

    def message(self, row: Row, base: int) -> bytes:
        """One message, its offset counted from `base`. Written out: a call per field would cost
        more than all the rest."""
        delta, timestamp, key, value = row
        if self.log_append_time is not None:
            timestamp = self.log_append_time
        offset = self.header.base_offset + delta - base
        key_length = -1 if key is None else len(key)
        tail = (key or b"") + _LENGTH.pack(-1 if value is None else len(value)) + (value or b"")
        if self.magic:
            crc = zlib.crc32(
                tail, zlib.crc32(_BODY_V1.pack(1, self.attributes, timestamp, key_length))
            )
            return (
                _HEAD_V1.pack(
                    offset, len(tail) + 18, crc, 1, self.attributes, timestamp, key_length
                )
                + tail
            )
        crc = zlib.crc32(tail, zlib.crc32(_BODY_V0.pack(0, 0, key_length)))
        return _HEAD_V0.pack(offset, len(tail) + 10, crc, 0, 0, key_length) + tail


def _last_delta(chunk: Chunk) -> int:
    """The offset delta of a chunk's last record: offsets rise within a batch."""
    payload = chunk.payload
    try:
        _, at = read_varint(payload, int(chunk.starts[-2]))
        _, at = read_varlong(payload, at + 1)
        return read_varint(payload, at)[0]
    except IndexError:
        raise InvalidRecord("A record reaches beyond the end of its batch") from None


def _rows(chunk: Chunk, header: BatchHeader) -> Iterator[Row]:
    """The records of a chunk without headers. Raises InvalidRecord for wrong lengths."""
    if len(chunk.starts) > NUMPY_FROM:
        return _many_rows(chunk, header.base_timestamp)
    return _few_rows(chunk, header.base_timestamp)


def _few_rows(chunk: Chunk, base_timestamp: int) -> Iterator[Row]:
    payload = chunk.payload
    for start, end in pairwise(chunk.starts.tolist()):
        try:
            _, at = read_varint(payload, start)
            timestamp_delta, at = read_varlong(payload, at + 1)
            offset_delta, at = read_varint(payload, at)
            key_length, at = read_varint(payload, at)
            key = None if key_length < 0 else payload[at : at + key_length]
            at += max(key_length, 0)
            value_length, at = read_varint(payload, at)
            value = None if value_length < 0 else payload[at : at + value_length]
            at += max(value_length, 0)
        except IndexError:
            at = end
        if at >= end:  # the count of headers is still to come
            raise InvalidRecord("Found invalid record structure: a field reaches beyond its record")
        yield offset_delta, wrap_int64(base_timestamp + timestamp_delta), key, value


def _many_rows(chunk: Chunk, base_timestamp: int) -> Iterator[Row]:
    import numpy as np

    from protocol.records.scan_numpy import read_columns

    payload = chunk.payload
    columns = read_columns(payload, chunk.starts[:-1], chunk.starts[1:])
    timestamps = np.int64(base_timestamp) + columns.timestamp_deltas  # wraps as Java's does
    for delta, timestamp, key_at, key_length, value_at, value_length in zip(
        columns.offset_deltas.tolist(),
        timestamps.tolist(),
        columns.key_starts.tolist(),
        columns.key_lengths.tolist(),
        columns.value_starts.tolist(),
        columns.value_lengths.tolist(),
        strict=True,
    ):
        yield (
            delta,
            timestamp,
            None if key_length < 0 else payload[key_at : key_at + key_length],
            None if value_length < 0 else payload[value_at : value_at + value_length],
        )
