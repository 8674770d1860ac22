"""Records as Python values, off the hot path: for coordinators, tools, old formats, tests.

`record_validation` and `search` check batches, keys and timestamps without an object per record.
"""

from collections.abc import Iterator
from typing import Final

from protocol.records.batch import BatchHeader, TimestampType, read_header
from protocol.records.compression import MAX_DECOMPRESSED_SIZE, BytesLike
from protocol.records.errors import InvalidRecord
from protocol.records.payload import payload_of
from protocol.records.value import Record
from protocol.records.varint import read_varint, read_varlong, wrap_int64

__all__ = ["Record", "iter_records", "read_headers"]

LARGE: Final = 1 << 20
"""A plain batch of more bytes is opened in chunks, not copied at once."""
_CHUNK: Final = 256 << 10


def iter_records(
    buf: BytesLike,
    pos: int = 0,
    *,
    max_size: int = MAX_DECOMPRESSED_SIZE,
    with_headers: bool = True,
) -> Iterator[Record]:
    """The records of the batch at `pos`, any magic, decompressed; the checksum is not checked.

    In a LogAppendTime batch each record has the batch's max timestamp. Control batches give their
    control records (see `control`). Raises CorruptBatch, InvalidRecord, UnsupportedCompression, at
    the first record or later ones; a batch inflating beyond `max_size` bytes is an InvalidRecord.

    Large and compressed batches are opened chunk by chunk, as far as the caller iterates. Without
    `with_headers` headers are skipped, so that one record cannot make millions of objects.
    """
    header = read_header(buf, pos)
    if header.magic < 2:
        from protocol.records.message_set import iter_legacy_records

        yield from iter_legacy_records(buf, pos, max_size=max_size)
        return
    append_time = (
        header.max_timestamp if header.timestamp_type is TimestampType.LOG_APPEND_TIME else None
    )
    if header.is_compressed or header.size > LARGE:
        from protocol.records.opened import open_chunks

        for chunk in open_chunks(buf, pos, header, chunk=_CHUNK, max_size=max_size):
            for index, start in enumerate(chunk.starts[:-1].tolist(), chunk.first):
                yield _decoded(chunk.payload, start, index, header, append_time, with_headers)[0]
        return
    payload = payload_of(buf, pos, header, max_size=max_size)
    at = 0
    for index in range(header.record_count):
        record, at = _decoded(payload, at, index, header, append_time, with_headers)
        yield record
    if at != len(payload):
        raise InvalidRecord("Incorrect declared batch size, records still remaining in the batch")


def _decoded(
    payload: bytes,
    at: int,
    index: int,
    header: BatchHeader,
    append_time: int | None,
    with_headers: bool,
) -> tuple[Record, int]:
    """One record and the position after it. `index` is its place in the batch, for the message."""
    try:
        return _decode(payload, at, header, append_time, with_headers)
    except IndexError:
        raise InvalidRecord(f"Record {index} reaches beyond the end of its batch") from None


def _decode(
    payload: bytes, at: int, header: BatchHeader, append_time: int | None, with_headers: bool
) -> tuple[Record, int]:
    """One record and the position after it. IndexError when the payload ends in it."""
    length, at = read_varint(payload, at)
    end = at + length
    if length < 0 or end > len(payload):
        raise InvalidRecord(
            f"Invalid record size: expected {length} bytes in record payload, "
            f"but the batch has only {len(payload) - at} left"
        )
    attributes = payload[at]
    delta, at = read_varlong(payload, at + 1)
    timestamp = wrap_int64(header.base_timestamp + delta) if append_time is None else append_time
    offset_delta, at = read_varint(payload, at)
    key, at = _nullable_bytes(payload, at, end)
    value, at = _nullable_bytes(payload, at, end)
    headers: list[tuple[str, bytes | None]] = []
    if with_headers:
        count, at = read_varint(payload, at)
        if count < 0 or count > end - at:
            raise InvalidRecord(f"Found invalid number of record headers {count}")
        headers, at = _headers(payload, at, end, count)
    else:
        at = end if at < end else end + 1  # a record has at least the count of headers
    if at != end:
        raise InvalidRecord(
            f"Invalid record size: expected to read {length} bytes in record payload, "
            f"but instead read {at - end + length}"
        )
    offset = header.base_offset + offset_delta
    return Record(offset, timestamp, key, value, headers, attributes), at


def _headers(
    payload: bytes, at: int, end: int, count: int
) -> tuple[list[tuple[str, bytes | None]], int]:
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = _nullable_bytes(payload, at, end)
        if name is None:
            raise InvalidRecord("Invalid negative header key size")
        content, at = _nullable_bytes(payload, at, end)
        headers.append((name.decode("utf-8", "surrogateescape"), content))
    return headers, at


def read_headers(payload: bytes, at: int) -> list[tuple[str, bytes | None]]:
    """The headers at `at`, where their count is, in a payload that was validated before.

    Raises InvalidRecord.
    """
    count, at = read_varint(payload, at)
    return _headers(payload, at, len(payload), count)[0]


def _nullable_bytes(payload: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """Bytes behind a varint length; a negative length is null, as Kafka's `Utils.readBytes`."""
    length, at = read_varint(payload, at)
    if length < 0:
        return None, at
    stop = at + length
    if stop > end:
        raise InvalidRecord("Found invalid record structure: a field reaches beyond its record")
    return payload[at:stop], stop
