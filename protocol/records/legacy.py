"""What old clients send becomes format 2 (Produce v0-2): one batch for the whole message set.

Offsets are counted anew, timestamps are -1 from format 0. As
`LogValidator.convertAndAssignOffsetsNonCompressed`. The way back is in `down_conversion`.
"""

from collections.abc import Iterator

from protocol.records.batch import TimestampType, iter_batches, verify_crc
from protocol.records.builder import build_batch
from protocol.records.compression import MAX_DECOMPRESSED_SIZE, BytesLike, CompressionType
from protocol.records.errors import CorruptBatch, InvalidRecord
from protocol.records.message_set import build_message_set, iter_legacy_records
from protocol.records.record import Record

__all__ = [
    "build_message_set",
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
