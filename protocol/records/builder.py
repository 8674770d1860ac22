"""Makes record batches of format 2: for coordinators, tools, conversions and tests.

Client batches are never rebuilt on the hot path, so this is plain Python, kept lean. The layout is
that of `MemoryRecordsBuilder`: base timestamp of the first record, max timestamp over all, offset
deltas 0..n-1; attributes and checksum last.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from crc32c import crc32c

from protocol.records.batch import (
    BATCH_OVERHEAD,
    CONTROL_BIT,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    TimestampType,
)
from protocol.records.compression import BytesLike, CompressionType, compress
from protocol.records.header import LAYOUT, fields_struct
from protocol.records.varint import encode_varint

_FIELDS: Final = list(LAYOUT)
_FIRST_SIGNED: Final = _FIELDS.index("attributes")
_pack_unsigned = fields_struct(*_FIELDS[:_FIRST_SIGNED]).pack
_pack_signed = struct.Struct(">" + "".join(LAYOUT[name] for name in _FIELDS[_FIRST_SIGNED:])).pack
"""The fields that the checksum covers, with the records."""

_NULL: Final = b"\x01"
_ATTRIBUTES: Final = b"\x00"
_NO_HEADERS: Final = b"\x00"

Header = tuple[str, BytesLike | None]
NewRecord = tuple[int, BytesLike | None, BytesLike | None, Sequence[Header]]


def encode_record(
    offset_delta: int,
    timestamp_delta: int,
    key: BytesLike | None,
    value: BytesLike | None,
    headers: Sequence[Header] = (),
) -> bytes:
    """One record with its length, as it lies in a batch (`DefaultRecord.writeTo`)."""
    pieces: list[BytesLike] = [
        _ATTRIBUTES,
        encode_varint(timestamp_delta),
        encode_varint(offset_delta),
    ]
    if key is None:
        pieces.append(_NULL)
    else:
        pieces += (encode_varint(len(key)), key)
    if value is None:
        pieces.append(_NULL)
    else:
        pieces += (encode_varint(len(value)), value)
    if headers:
        pieces.append(encode_varint(len(headers)))
        for name, content in headers:
            # surrogateescape restores bytes that are not UTF-8, as iter_records decoded them.
            raw = name.encode("utf-8", "surrogateescape")
            pieces += (encode_varint(len(raw)), raw)
            if content is None:
                pieces.append(_NULL)
            else:
                pieces += (encode_varint(len(content)), content)
    else:
        pieces.append(_NO_HEADERS)
    body = b"".join(pieces)
    return encode_varint(len(body)) + body


def assemble_batch(  # noqa: PLR0913  one keyword per header field
    payload: BytesLike,
    *,
    base_offset: int,
    last_offset_delta: int,
    record_count: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    leader_epoch: int = -1,
) -> bytes:
    """A header with its checksum around `payload`, the (already compressed) records."""
    signed = _pack_signed(
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    length = BATCH_OVERHEAD + len(payload) - LOG_OVERHEAD
    crc = crc32c(payload, crc32c(signed))
    return b"".join((_pack_unsigned(base_offset, length, leader_epoch, 2, crc), signed, payload))


def attributes_of(
    codec: CompressionType,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    *,
    transactional: bool = False,
    control: bool = False,
) -> int:
    """The attribute bits of a batch."""
    return (
        int(codec)
        | (TIMESTAMP_TYPE_BIT if timestamp_type == TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
    )


def build_batch(  # noqa: PLR0913  one keyword per header field
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    codec: CompressionType = CompressionType.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = -1,
    log_append_time: int | None = None,
) -> bytes:
    """One batch of `(timestamp ms, key, value, headers)` records with offsets `base_offset` and up.

    With LOG_APPEND_TIME the max timestamp is `log_append_time` (the records keep their own, which
    no reader looks at). Raises ValueError without records or without `log_append_time` where it is
    needed.
    """
    pieces: list[bytes] = []
    base_timestamp = max_timestamp = -1
    count = 0
    for count, (timestamp, key, value, headers) in enumerate(records, 1):
        if count == 1:
            base_timestamp = max_timestamp = timestamp
        elif timestamp > max_timestamp:
            max_timestamp = timestamp
        pieces.append(encode_record(count - 1, timestamp - base_timestamp, key, value, headers))
    if not count:
        raise ValueError("a batch holds at least one record")
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        if log_append_time is None:
            raise ValueError("LOG_APPEND_TIME needs log_append_time")
        max_timestamp = log_append_time
    payload = b"".join(pieces)
    return assemble_batch(
        compress(codec, payload, level) if codec else payload,
        base_offset=base_offset,
        last_offset_delta=count - 1,
        record_count=count,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        attributes=attributes_of(
            codec, timestamp_type, transactional=transactional, control=control
        ),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        leader_epoch=leader_epoch,
    )
