"""Old clients: what they send becomes format 2, what they read becomes format 0 or 1.

* Up (Produce v0-2): one v2 batch for the whole message set, offsets counted anew, timestamps -1
  from format 0. As `LogValidator.convertAndAssignOffsetsNonCompressed`.
* Down (Fetch v0-3): headers are lost, control batches left out, offsets kept (gaps and all), the
  batch's codec kept. zstd cannot be expressed: UnsupportedCompression. As
  `RecordsUtil.downConvert`.
"""

from collections.abc import Iterator

from protocol.records.batch import TimestampType, iter_batches, verify_crc
from protocol.records.builder import build_batch
from protocol.records.compression import MAX_DECOMPRESSED_SIZE, BytesLike, CompressionType
from protocol.records.errors import CorruptBatch, InvalidRecord, UnsupportedCompression
from protocol.records.message_set import build_message_set, iter_legacy_records
from protocol.records.record import Record, iter_records

__all__ = [
    "build_message_set",
    "down_convert",
    "iter_legacy_records",
    "iter_message_set",
    "up_convert",
]


def iter_message_set(
    buf: BytesLike, *, check_crc: bool = True, max_size: int = MAX_DECOMPRESSED_SIZE
) -> Iterator[Record]:
    """The records of a whole set of magic 0 or 1 messages, wrappers opened; ends at a partial one.

    Raises CorruptBatch for a wrong checksum (outer or inner, unless `check_crc` is off) or frame,
    InvalidRecord for wrong content or mixed formats.
    """
    first_magic: int | None = None
    for pos, header in iter_batches(buf):
        if first_magic is None:
            first_magic = header.magic
        if header.magic != first_magic or header.magic > 1:
            raise InvalidRecord(
                f"Batch magic {header.magic} is not the same as the first batch's magic byte "
                f"{first_magic}"
                if header.magic != first_magic
                else f"Expected a message set, found a batch of magic {header.magic}"
            )
        if check_crc and not verify_crc(buf, pos, header):
            raise CorruptBatch("Message is corrupt (stored crc differs from the computed one)")
        yield from iter_legacy_records(buf, pos, max_size=max_size, check_crc=check_crc)


def up_convert(
    messages: BytesLike,
    *,
    base_offset: int = 0,
    codec: CompressionType = CompressionType.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    log_append_time: int | None = None,
    leader_epoch: int = -1,
    max_size: int = MAX_DECOMPRESSED_SIZE,
) -> bytes:
    """One v2 batch with the records of a message set, numbered from `base_offset`.

    `codec` is the log's choice; with `compression.type=producer` it is that of the set. Raises
    InvalidRecord for a set without whole messages, and as `iter_message_set`.
    """
    records = [
        (record.timestamp, record.key, record.value, ())
        for record in iter_message_set(messages, max_size=max_size)
    ]
    if not records:
        raise InvalidRecord("Record batch has no batches at all")
    return build_batch(
        records,
        base_offset=base_offset,
        codec=codec,
        level=level,
        timestamp_type=timestamp_type,
        log_append_time=log_append_time,
        leader_epoch=leader_epoch,
    )


def down_convert(
    batches: BytesLike,
    magic: int,
    *,
    first_offset: int = 0,
    max_size: int = MAX_DECOMPRESSED_SIZE,
) -> bytes:
    """Batches of any magic as message sets of `magic` 0 or 1; a partial batch at the end is
    dropped.

    Batches already at or below `magic` pass as they are. Uncompressed records below `first_offset`
    (where the reader asked to begin) are left out, because old consumers expect none; compressed
    ones stay, as they did when brokers stored wrappers. Raises UnsupportedCompression for zstd and
    unknown codecs, CorruptBatch and InvalidRecord for unreadable batches.
    """
    view = memoryview(batches)
    pieces: list[bytes] = []
    for pos, header in iter_batches(batches):
        if header.magic <= magic:
            pieces.append(bytes(view[pos : pos + header.size]))
            continue
        if header.is_control:
            continue
        codec = header.codec
        if codec is CompressionType.ZSTD:
            raise UnsupportedCompression(
                "Down-conversion of zstandard-compressed batches is not supported"
            )
        log_dated = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        pieces.append(
            build_message_set(
                (
                    (record.offset, record.timestamp, record.key, record.value)
                    for record in iter_records(batches, pos, max_size=max_size)
                    if codec or record.offset >= first_offset
                ),
                magic=magic,
                codec=codec,
                timestamp_type=header.timestamp_type,
                log_append_time=header.max_timestamp if log_dated else None,
            )
        )
    return b"".join(pieces)
