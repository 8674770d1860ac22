"""Looking into the records of a batch without making Python objects of them.

What Kafka's leader does: `LogValidator` decodes every record of every client batch (opening the
compressed ones), so a client learns at once that a record is malformed. What we offer, cheapest
first
(per batch; see scripts/bench/records.py for figures):

1. `read_header` (batch.py): count, offsets, flags. Always done by the log.
2. `check_records`: the chain of record lengths: exactly `record_count` records fill the payload.
   This is what readers trip over first, and it costs a table look-up per record.
3. `validate_records`: every field of every record: lengths of key, value and headers, header
   counts, offset deltas, timestamps, keys. Needed where an answer hangs on it: compacted topics
   (keys), time bounds that the header's max timestamp may hide, rebuilding with another codec.

All of them raise InvalidRecord for what Kafka's `DefaultRecord.readFrom` rejects (INVALID_RECORD
without record errors). Two places where Kafka is laxer:

* Offset deltas: uncompressed, Kafka leaves wrong ones as they are. Compressed, it means to rebuild
  the batch and fails (UNKNOWN_SERVER_ERROR), as it has skipped the contents it would need.
  `RecordScan.first_out_of_sequence` tells, the log decides.
* Compressed records: Kafka's leader skips through the fields without holding them against the
  record's length, and takes some that its consumers cannot read. Here they are invalid like
  uncompressed ones. What does not inflate at all is InvalidRecord here and UNKNOWN_SERVER_ERROR in
  Kafka: both final for a producer, where CORRUPT_MESSAGE would make it send again.

Small batches are read by a plain loop, larger ones (`NUMPY_FROM` records) by numpy, which is
imported at that moment. Both give the same answer for any input; a property test holds them to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocol.records.batch import BatchHeader, TimestampType
from protocol.records.chain import record_starts
from protocol.records.compression import MAX_DECOMPRESSED_SIZE, BytesLike
from protocol.records.effort import Effort
from protocol.records.payload import payload_of
from protocol.records.scan_fields import NO_RECORDS, Fields, TimestampScan

NUMPY_FROM: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordScan:
    """What a full look at a batch found. Indexes count from 0 within the batch.

    Timestamps are those that readers will see: for a LogAppendTime batch all equal its max
    timestamp.
    """

    count: int
    keyless: tuple[int, ...]
    """Records without key; empty unless keys were asked for."""
    outside: tuple[int, ...]
    """Records dated outside the asked bounds; -1 (no timestamp) never counts."""
    first_out_of_sequence: int | None
    """First record whose offset delta is not its index; None for what a client should send."""
    min_timestamp: int
    max_timestamp: int
    offset_of_max_timestamp: int
    """Base offset plus index of the first record with that timestamp; -1 without records."""
    payload_size: int
    """Bytes of the records, uncompressed."""


def check_records(
    buf: BytesLike, pos: int, header: BatchHeader, *, max_size: int = MAX_DECOMPRESSED_SIZE
) -> None:
    """Raises InvalidRecord unless `record_count` records fill the v2 batch exactly (cheap mode).

    Compressed batches are opened for it. CorruptBatch and UnsupportedCompression as `payload_of`.
    """
    record_starts(payload_of(buf, pos, header, max_size=max_size), header.record_count)


def validate_records(
    buf: BytesLike,
    pos: int,
    header: BatchHeader,
    *,
    need_keys: bool,
    timestamp_bounds: tuple[int, int] | None = None,
    max_size: int = MAX_DECOMPRESSED_SIZE,
) -> RecordScan:
    """Every structural rule for the records of the v2 batch at `pos`, and what the log wants to
    know.

    `timestamp_bounds` is (least, greatest) legal timestamp in ms. Raises InvalidRecord for broken
    structure, CorruptBatch and UnsupportedCompression as `payload_of`; keyless, badly dated or
    misnumbered records are reported, as what to do about them is the log's decision.
    """
    payload = payload_of(buf, pos, header, max_size=max_size)
    starts = record_starts(payload, header.record_count)
    least, greatest = timestamp_bounds if timestamp_bounds is not None else _ANY_TIME
    fields = _fields(payload, starts, header.base_timestamp)
    log_dated = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    dated = (
        _dated_by_log(header, len(starts) - 1)
        if log_dated
        else fields.timestamp_summary(header.base_offset)
    )
    bounded = log_dated or (least <= dated.minimum and dated.maximum <= greatest)
    return RecordScan(
        count=len(starts) - 1,
        keyless=fields.keyless() if need_keys else (),
        outside=() if bounded else fields.outside(least, greatest),
        first_out_of_sequence=fields.first_out_of_sequence(),
        min_timestamp=dated.minimum,
        max_timestamp=dated.maximum,
        offset_of_max_timestamp=dated.offset_of_maximum,
        payload_size=len(payload),
    )


def timestamp_scan(
    buf: BytesLike, pos: int, header: BatchHeader, *, max_size: int = MAX_DECOMPRESSED_SIZE
) -> TimestampScan:
    """The record timestamps of a v2 batch; (-1, -1, -1) without records. Offsets count from the
    base.

    The header's max timestamp is the producer's word; Kafka's leader replaces it with this maximum.
    Reads every record (but a LogAppendTime batch, whose header is the truth). Raises as
    `validate_records`.
    """
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return _dated_by_log(header, header.record_count)
    payload = payload_of(buf, pos, header, max_size=max_size)
    starts = record_starts(payload, header.record_count)
    return _fields(payload, starts, header.base_timestamp).timestamp_summary(header.base_offset)


_ANY_TIME: Final = (-(1 << 63), (1 << 63) - 1)


def _dated_by_log(header: BatchHeader, count: int) -> TimestampScan:
    if not count:
        return NO_RECORDS
    return TimestampScan(header.max_timestamp, header.max_timestamp, header.base_offset)


def fields_of(payload: bytes, header: BatchHeader, effort: Effort | None = None) -> Fields:
    """The columns of `payload`, the plain records of a batch with this header.

    Raises InvalidRecord unless exactly `record_count` sound records fill it, EffortSpent.
    """
    starts = record_starts(payload, header.record_count)
    return _fields(payload, starts, header.base_timestamp, effort)


def _fields(
    payload: bytes, starts: Sequence[int], base_timestamp: int, effort: Effort | None = None
) -> Fields:
    if len(starts) > NUMPY_FROM:
        from protocol.records.scan_numpy import read_fields

        return read_fields(payload, starts, base_timestamp, effort)
    from protocol.records.scan_python import read_fields as read_few_fields

    return read_few_fields(payload, starts, base_timestamp, effort)
