"""Opening a produced batch: checking its records before it gets a place in the log.

An opening needs nothing of the log but the topic's rules, so it can run before the append and
anywhere, on values: here and now, in a thread, in a child process. On the event loop it gets an
`Effort`; if that is spent, the batch has to be opened elsewhere (decision 21).

It checks that the checksum is right, that the records are well formed
(`protocol.records.record_validation`) and obey the topic's rules (keys, timestamps), and finds the
greatest timestamp. A batch that has to be stored in another form (another codec, formats 0 and 1)
is rebuilt here as well, in at most `max.message.bytes`, however large its records are.
"""

import struct
from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    CODEC_MASK,
    CRC_OFFSET,
    DELETE_HORIZON_BIT,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    crc_of,
    read_header,
    verify_crc,
)
from protocol.records.compression import BytesLike, CompressionType
from protocol.records.deflating import OutputFull, deflate
from protocol.records.effort import Effort, EffortSpent
from protocol.records.errors import (
    CorruptBatch,
    InvalidRecord,
    RecordsError,
    UnsupportedCompression,
)
from protocol.records.inflating import inflate
from protocol.records.record_validation import Findings, RecordRules, check_batch

_SHOWN_ERRORS: Final = 3
_LEAST_MAX_RECORD: Final = 32 << 20
_MAX_RECORD_RATIO: Final = 32
"""A record may inflate to so many times `max.message.bytes`, and to 32 MB in any case. It is held
in memory whole, also when it is searched or converted, and 8 KB may be a record of 256 MB."""
_BAD_TIMES: Final = "One or more records have been rejected due to invalid timestamp"
_LENGTH: Final = struct.Struct(">i")
_ATTRIBUTES: Final = struct.Struct(">h")
_CRC: Final = struct.Struct(">I")
_NOT_KEPT: Final = CODEC_MASK | DELETE_HORIZON_BIT
"""Attribute bits that a rebuilt batch does not take over. Only the cleaner sets a delete horizon;
Kafka leaves a client's in batches that are stored as they came, and so does this broker."""


class RejectedRecords(KafkaError):
    """A batch was refused; `record_errors` goes into the produce response (v8+)."""

    def __init__(
        self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]] | None = None
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors or []

    def __reduce__(self) -> tuple[type, tuple[ErrorCode, str | None, list[tuple[int, str]]]]:
        """Pickle with all fields: child processes return it."""
        return type(self), (self.code, self.message, self.record_errors)


def code_of(error: RecordsError) -> ErrorCode:
    """The code of a complaint about record data: the only place where one gets it."""
    if isinstance(error, CorruptBatch):
        return ErrorCode.CORRUPT_MESSAGE
    if isinstance(error, UnsupportedCompression):
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return ErrorCode.INVALID_RECORD


def refusal(error: RecordsError) -> KafkaError:
    """The Kafka error with which a client's bad record data is answered."""
    errors = error.record_errors if isinstance(error, InvalidRecord) else []
    return RejectedRecords(code_of(error), str(error), errors)


def bad_crc(header: BatchHeader, name: str) -> CorruptBatch:
    """The error for a batch whose checksum is not that of its header; `name` is the partition's."""
    return CorruptBatch(f"Record is corrupt (stored crc = {header.crc}) in topic partition {name}.")


def too_large(size: int, name: str, limit: int) -> KafkaError:
    """MESSAGE_TOO_LARGE for a batch of `size` bytes in partition `name`."""
    return RejectedRecords(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size in the append to {name} is {size} bytes "
        f"which exceeds the maximum configured value of {limit}.",
    )


class TopicRules(NamedTuple):
    """A topic's rules for a batch: values only, so that any process can check them."""

    name: str
    """Topic and partition, for messages."""
    max_message_bytes: int
    largest_inflated: int
    """Bytes of one record's body in a compressed batch."""
    target_codec: int | None
    """The codec that the topic stores; None keeps the producer's."""
    level: int | None
    """The level of that codec; None is its default."""
    need_keys: bool
    least_timestamp: int | None
    """Milliseconds; None: no bound."""
    greatest_timestamp: int | None


class Opened(NamedTuple):
    """The result of opening a batch."""

    max_timestamp: int
    """The greatest timestamp of its records, in milliseconds."""
    rebuilt: bytes | None = None
    """The batch in the form to be stored; None if that is the form it came in."""
    valid_bytes: int | None = None
    """For a set of format 0 or 1: how many bytes its whole messages have."""


class Opening(NamedTuple):
    """A batch to be opened, with the rules for it."""

    records: BytesLike
    """Exactly one batch of format 2, or a set of formats 0 and 1."""
    rules: TopicRules

    def run(self, effort: Effort | None = None) -> Opened:
        """Open the batch; uses nothing but these values. Raises KafkaError, EffortSpent."""
        try:
            return open_batch(self.records, self.rules, effort)
        except RecordsError as error:
            raise refusal(error) from error

    def attempt(self, effort: Effort | None = None) -> Opened | KafkaError | None:
        """As `run`, for threads and processes: returns the KafkaError, and None for EffortSpent.

        An exception that is kept, or raised across threads, forms a cycle with the frames it passed
        through, and these hold megabytes of the batch until the next garbage collection.
        """
        try:
            return self.run(effort)
        except EffortSpent:
            return None
        except KafkaError as error:
            refused = error
        refused.__cause__ = refused.__context__ = None
        return refused.with_traceback(None)

    @property
    def is_old(self) -> bool:
        """Whether `records` is a set of format 0 or 1."""
        return self.records[MAGIC_OFFSET] < 2

    def copied(self) -> "Opening":
        """A copy with bytes of its own, to be kept or sent to another process."""
        return self._replace(records=bytes(self.records))


def open_batch(records: BytesLike, rules: TopicRules, effort: Effort | None = None) -> Opened:
    """See `Opening`. Raises KafkaError, RecordsError, EffortSpent."""
    if records[MAGIC_OFFSET] < 2:
        return _convert(records, rules, effort)
    header = read_header(records)
    if not verify_crc(records, 0, header):
        raise bad_crc(header, rules.name)
    if header.attributes & TIMESTAMP_TYPE_BIT:
        raise client_append_time(header.record_count)
    return _open(records, header, rules, effort)


def _open(
    records: BytesLike, header: BatchHeader, rules: TopicRules, effort: Effort | None
) -> Opened:
    found = check_batch(
        records,
        0,
        header,
        RecordRules(
            rules.need_keys,
            rules.least_timestamp,
            rules.greatest_timestamp,
            min(
                rules.largest_inflated,
                max(_LEAST_MAX_RECORD, _MAX_RECORD_RATIO * rules.max_message_bytes),
            ),
        ),
        effort=effort,
    )
    if found.keyless or found.outside:
        raise _bad_records(found, rules)
    target = rules.target_codec
    if target is None or target == header.attributes & CODEC_MASK:
        return Opened(found.max_timestamp)
    return Opened(found.max_timestamp, _recompressed(records, header, rules, target))


def _recompressed(data: BytesLike, header: BatchHeader, rules: TopicRules, target: int) -> bytes:
    """The batch with its records in another codec: payload, attributes, length, CRC (S-APP-5)."""
    view = memoryview(data)
    limit = rules.max_message_bytes
    try:
        payload = deflate(
            CompressionType(target),
            inflate(header.codec, view[BATCH_OVERHEAD : header.size]),
            rules.level,
            most=limit - BATCH_OVERHEAD,
        )
    except OutputFull as full:
        raise too_large(BATCH_OVERHEAD + full.size, rules.name, limit) from None
    batch = bytearray(view[:BATCH_OVERHEAD])
    batch += payload
    _LENGTH.pack_into(batch, 8, len(batch) - LOG_OVERHEAD)
    _ATTRIBUTES.pack_into(batch, ATTRIBUTES_OFFSET, header.attributes & ~_NOT_KEPT | target)
    _CRC.pack_into(batch, CRC_OFFSET, crc_of(batch, 0, len(batch)))
    return bytes(batch)


def _convert(records: BytesLike, rules: TopicRules, effort: Effort | None) -> Opened:
    """A set of format 0 or 1 as one batch of format 2 (S-APP-7)."""
    from protocol.records.message_stream import codec_of_set, up_convert_set

    try:
        codec, valid_bytes = codec_of_set(records, rules.name, most=rules.max_message_bytes)
        target = codec if rules.target_codec is None else rules.target_codec
        batch = up_convert_set(
            memoryview(records)[:valid_bytes],
            codec=CompressionType(target),
            level=rules.level,
            most=rules.max_message_bytes,
            effort=effort,
        )
    except OutputFull as full:
        raise too_large(full.size, rules.name, rules.max_message_bytes) from None
    opened = _open(batch, read_header(batch), rules._replace(target_codec=None), effort)
    return Opened(opened.max_timestamp, batch, valid_bytes)


def client_append_time(count: int) -> KafkaError:
    """INVALID_TIMESTAMP for a client's batch of `count` records that claims LogAppendTime."""
    message = (
        "Invalid timestamp type in message. Producer should not set timestamp type "
        "to LogAppendTime."
    )
    errors = [(index, message) for index in range(min(count, _SHOWN_ERRORS))]
    return RejectedRecords(ErrorCode.INVALID_TIMESTAMP, _BAD_TIMES, errors)


def _bad_records(found: Findings, rules: TopicRules) -> KafkaError:
    """The refusal with one error per bad record, in order. As in Kafka, a bad timestamp anywhere
    makes it INVALID_TIMESTAMP, else it is INVALID_RECORD."""
    bounds = f"[{rules.least_timestamp}, {rules.greatest_timestamp}]"
    errors = dict.fromkeys(
        found.outside,
        f"Timestamp of the record is out of range. The timestamp should be within {bounds}",
    )
    errors |= dict.fromkeys(
        found.keyless,
        f"Compacted topic cannot accept message without key in topic partition {rules.name}.",
    )
    listed = sorted(errors.items())
    # The timestamp of a record without key does not count.
    if set(found.outside) - set(found.keyless):
        return RejectedRecords(ErrorCode.INVALID_TIMESTAMP, _BAD_TIMES, listed)
    message = (
        f"One or more records have been rejected due to {len(listed)} record errors in total, "
        f"and only showing the first three errors at most: {listed[:_SHOWN_ERRORS]}"
    )
    return RejectedRecords(ErrorCode.INVALID_RECORD, message, listed)
