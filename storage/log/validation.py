"""What a leader checks and changes in a batch before it is written (Kafka's `LogValidator`).

The plain case (one v2 batch, codec and timestamps as the topic wants them) costs one header read
and two fields patched in place; the records are not opened. They are opened only where Kafka's
semantics ask for it:

  a. compacted topic: every record needs a key (S-APP-3);
  b. `compression.type` differs from the batch's codec: recompress (S-APP-5);
  c. the header says that a timestamp is out of range, or a lower bound is set: find the records
     (S-APP-4);
  d. magic 0 and 1: converted to the format of the log (S-APP-7).

What the header of a plain batch claims about its own records (their number, the greatest timestamp)
is held against its size, not against each record: the one point where Kafka looks deeper.

Errors leave this module as `KafkaError` only; `refusal` is the one place that says which code a
records error means.
"""

import struct
from typing import TYPE_CHECKING, Final

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_OFFSET,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    TimestampType,
    crc_of,
    iter_batches,
    read_header,
    set_log_append_time,
    set_max_timestamp,
    set_place,
    verify_crc,
)
from protocol.records.compression import CompressionType, compress
from protocol.records.errors import (
    CorruptBatch,
    InvalidRecord,
    RecordsError,
    UnsupportedCompression,
)
from protocol.records.payload import payload_of
from protocol.records.scan import RecordScan, validate_records
from protocol.types import NO_TIMESTAMP
from storage.clock import Clock
from storage.log.results import AppendOrigin

if TYPE_CHECKING:
    from config.topic_config import TopicConfig

Bytes = bytes | bytearray | memoryview

LATEST_PRODUCE: Final = 13
"""Request version assumed where no request is behind an append."""

FIRST_V2_PRODUCE: Final = 3
FIRST_ZSTD_PRODUCE: Final = 7

CRC_INLINE_LIMIT: Final = 64 * 1024
"""Up to here the checksum is taken at once (3 us); larger batches leave it to the writer."""

_NOT_PLAIN: Final = TIMESTAMP_TYPE_BIT | CONTROL_BIT
_SHOWN_ERRORS: Final = 3
_BAD_TIMES: Final = "One or more records have been rejected due to invalid timestamp"
_NO_BATCH: Final = (
    "Produce requests with version {} must have at least one record batch per partition"
)
_LENGTH: Final = struct.Struct(">i")
_ATTRIBUTES: Final = struct.Struct(">h")
_CRC: Final = struct.Struct(">I")

_ZSTD: Final = int(CompressionType.ZSTD)
_NO_LIMIT: Final = 2**63 - 1
_LEAST_RECORD: Final = 7
"""Bytes of an empty record: length, attributes, two deltas, two null lengths, header count."""


class RejectedRecords(KafkaError):
    """A batch was refused; `record_errors` goes into the produce response (v8+)."""

    def __init__(
        self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]] | None = None
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors or []


def refusal(error: RecordsError) -> KafkaError:
    """The Kafka error that a complaint about record data means to the client that sent it."""
    if isinstance(error, CorruptBatch):
        return RejectedRecords(ErrorCode.CORRUPT_MESSAGE, str(error))
    if isinstance(error, UnsupportedCompression):
        return RejectedRecords(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error))
    errors = error.record_errors if isinstance(error, InvalidRecord) else []
    return RejectedRecords(ErrorCode.INVALID_RECORD, str(error), errors)


class Prepared:
    """A batch ready to be written: offsets assigned, header final."""

    __slots__ = ("check_crc", "data", "header", "log_append_time", "valid_bytes")

    def __init__(
        self, data: Bytes, header: BatchHeader, valid_bytes: int, check_crc: bool = False
    ) -> None:
        self.data = data
        """Exactly the batch; writable unless it was rebuilt."""
        self.header = header
        """As in `data`."""
        self.valid_bytes = valid_bytes
        """Bytes of whole batches in what the client sent."""
        self.check_crc = check_crc
        """True: the checksum was not compared yet; the writer does it."""
        self.log_append_time = NO_TIMESTAMP


class LeaderValidator:
    """The rules of one topic configuration. Made anew when the configuration changes."""

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_clock",
        "_compact",
        "_levels",
        "_log_append_time",
        "_max_message_bytes",
        "_name",
        "_never_plain",
        "_target_codec",
    )

    def __init__(self, config: "TopicConfig", clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._max_message_bytes = config.max_message_bytes
        self._compact = "compact" in config.cleanup_policy
        self._log_append_time = config.message_timestamp_type == "LogAppendTime"
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._target_codec = _target_codec(config.compression_type)
        # What is the same for each batch of a topic is decided here, once: most topics are plain.
        self._never_plain = (
            self._compact
            or self._target_codec is not None
            or self._log_append_time
            or self._before_max_ms != _NO_LIMIT
        )
        self._levels = {
            CompressionType.GZIP: config.compression_gzip_level,
            CompressionType.LZ4: config.compression_lz4_level,
            CompressionType.ZSTD: config.compression_zstd_level,
        }

    def prepare(
        self,
        records: Bytes,
        *,
        base_offset: int,
        leader_epoch: int,
        origin: AppendOrigin,
        request_version: int,
    ) -> Prepared | None:
        """Check the batch a client or coordinator sent and give it its offsets.

        None when there is no whole batch (old clients may send such; S-APP-6). Raises KafkaError.
        """
        try:
            if len(records) < BATCH_OVERHEAD or records[16] != 2 or request_version < 3:
                return self._prepare_old(
                    records, base_offset, leader_epoch, origin, request_version
                )
            header = read_header(records)
            return self._prepare_v2(
                records, header, base_offset, leader_epoch, origin, request_version
            )
        except RecordsError as error:
            raise refusal(error) from error

    def _prepare_v2(
        self,
        records: Bytes,
        header: BatchHeader,
        base_offset: int,
        leader_epoch: int,
        origin: AppendOrigin,
        request_version: int,
    ) -> Prepared:
        size = header.batch_length + LOG_OVERHEAD
        if size != len(records):
            records = self._only_batch(records, size, request_version)
        attributes = header.attributes
        if origin is AppendOrigin.CLIENT and (
            header.base_offset
            or header.record_count != header.last_offset_delta + 1
            or header.record_count <= 0
            or attributes & CONTROL_BIT
            or (header.producer_id >= 0 and header.base_sequence < 0)
        ):
            raise InvalidRecord(self._what_is_wrong(header))
        if size > self._max_message_bytes:
            raise self._too_large(size)
        codec = attributes & CODEC_MASK
        if codec >= _ZSTD and (codec > _ZSTD or request_version < FIRST_ZSTD_PRODUCE):
            raise UnsupportedCompression(
                f"Produce requests with version {request_version} are not allowed to use "
                f"{CompressionType.name_of(codec)} compression"
            )
        if codec == 0 and header.record_count * _LEAST_RECORD > size:
            raise InvalidRecord(f"{header.record_count} records do not fit a batch of {size} bytes")
        if (
            self._never_plain
            or attributes & _NOT_PLAIN
            or header.max_timestamp > self._clock.wall_ms() + self._after_max_ms
        ):
            return self._finish_v2(records, header, base_offset, leader_epoch, origin)
        check_crc = size > CRC_INLINE_LIMIT
        if not check_crc and crc_of(records, 0, size) != header.crc:
            raise self._bad_crc(header)
        if records.__class__ is not memoryview or records.readonly:
            records = _writable(records)
        set_place(records, header, base_offset, leader_epoch)
        return Prepared(records, header, size, check_crc)

    def _finish_v2(
        self,
        records: Bytes,
        header: BatchHeader,
        base_offset: int,
        leader_epoch: int,
        origin: AppendOrigin,
    ) -> Prepared:
        """The end of `_prepare_v2` for batches that are not plain: checksum, records where they
        have to be looked at, and the fields the leader sets."""
        size, attributes = header.batch_length + LOG_OVERHEAD, header.attributes
        opened = self._must_open(header, attributes)
        check_crc = True
        if opened or size <= CRC_INLINE_LIMIT or self._log_append_time:
            if not verify_crc(records, 0, header):
                raise self._bad_crc(header)
            check_crc = False
        prepared = Prepared(_writable(records), header, size, check_crc)
        if opened:
            self._open_records(prepared)
        elif attributes & TIMESTAMP_TYPE_BIT and origin is AppendOrigin.CLIENT:
            raise self._client_append_time(header)
        elif self._log_append_time:
            self._stamp(prepared)
        set_place(prepared.data, header, base_offset, leader_epoch)  # type: ignore[arg-type]  # made writable above
        return prepared

    def _must_open(self, header: BatchHeader, attributes: int) -> bool:
        """Whether one of the cases a, b, c of the module docstring holds."""
        if attributes & CONTROL_BIT:
            return False
        codec = self._target_codec
        if self._compact or (codec is not None and codec != attributes & CODEC_MASK):
            return True
        if self._log_append_time:
            return False
        return self._before_max_ms != _NO_LIMIT or (
            self._after_max_ms != _NO_LIMIT
            and header.max_timestamp > self._clock.wall_ms() + self._after_max_ms
        )

    def _only_batch(self, records: Bytes, size: int, request_version: int) -> memoryview:
        """The first batch, when what follows it is at most a torn tail (S-APP-1, S-APP-6)."""
        if size > len(records):
            raise InvalidRecord(_NO_BATCH.format(request_version))
        view = memoryview(records)
        rest = view[size:]
        for _ in iter_batches(rest):
            raise InvalidRecord(
                f"Produce requests with version {request_version} are only allowed to contain "
                "exactly one record batch per partition"
            )
        return view[:size]

    # Case d and everything that is not a whole v2 batch.

    def _prepare_old(
        self,
        records: Bytes,
        base_offset: int,
        leader_epoch: int,
        origin: AppendOrigin,
        request_version: int,
    ) -> Prepared | None:
        first = next(iter_batches(records), None)
        if first is None:
            if request_version >= FIRST_V2_PRODUCE:
                raise InvalidRecord(_NO_BATCH.format(request_version))
            return None
        header = first[1]
        if header.magic == 2:
            return self._prepare_v2(
                records, header, base_offset, leader_epoch, origin, request_version
            )
        if request_version >= FIRST_V2_PRODUCE:
            raise InvalidRecord(
                f"Produce requests with version {request_version} are only allowed to contain "
                "record batches with magic version 2"
            )
        return self._convert(records, base_offset, leader_epoch)

    def _convert(self, records: Bytes, base_offset: int, leader_epoch: int) -> Prepared:
        """A magic 0 or 1 message set as one v2 batch (S-APP-7)."""
        from protocol.records.legacy import up_convert

        valid_bytes, magic, codec = 0, -1, CompressionType.NONE
        for position, header in iter_batches(records):
            if magic not in (-1, header.magic):
                raise InvalidRecord(
                    f"Batch magic {header.magic} is not the same as the first batch's magic byte "
                    f"{magic} in topic partition {self._name}"
                )
            magic = header.magic
            if header.size > self._max_message_bytes:
                raise self._too_large(header.size)
            if not verify_crc(records, position, header):
                raise self._bad_crc(header)
            if position and header.is_compressed:
                raise InvalidRecord("Compressed outer record has more than one batch")
            codec = header.codec
            valid_bytes = position + header.size
        batch = up_convert(
            memoryview(records)[:valid_bytes],
            base_offset=0,
            leader_epoch=leader_epoch,
            codec=codec if self._target_codec is None else CompressionType(self._target_codec),
        )
        header = read_header(batch)
        prepared = Prepared(bytearray(batch), header, valid_bytes)
        self._open_records(prepared)
        if header.size > self._max_message_bytes:
            raise self._too_large(header.size)
        set_place(prepared.data, header, base_offset, leader_epoch)  # type: ignore[arg-type]  # a bytearray
        return prepared

    # What the rules do.

    def _open_records(self, prepared: Prepared) -> None:
        """Cases a to c: look at every record, then recompress or mend the header where needed."""
        header = prepared.header
        if header.attributes & TIMESTAMP_TYPE_BIT:
            raise self._client_append_time(header)
        now = self._clock.wall_ms()
        bounds = (
            None if self._log_append_time else (now - self._before_max_ms, now + self._after_max_ms)
        )
        scan = validate_records(
            prepared.data, 0, header, need_keys=self._compact, timestamp_bounds=bounds
        )
        if scan.keyless or scan.outside:
            raise self._bad_records(scan, bounds)
        codec = header.attributes & CODEC_MASK
        target = codec if self._target_codec is None else self._target_codec
        if target != codec:
            prepared.data = self._recompress(prepared.data, header, target)
            header.batch_length = len(prepared.data) - LOG_OVERHEAD
            if header.size > self._max_message_bytes:
                raise self._too_large(header.size)
        if self._log_append_time:
            self._stamp(prepared)
        else:
            set_max_timestamp(
                prepared.data,  # type: ignore[arg-type]  # writable: copied or rebuilt before
                0,
                header,
                TimestampType.CREATE_TIME,
                scan.max_timestamp,
            )

    def _recompress(self, data: Bytes, header: BatchHeader, target: int) -> bytearray:
        """The same records behind another codec: new payload, attributes, length, CRC (S-APP-5)."""
        codec = CompressionType(target)
        payload = payload_of(data, 0, header)
        if codec is not CompressionType.NONE:
            payload = compress(codec, payload, self._levels.get(codec))
        batch = bytearray(memoryview(data)[:BATCH_OVERHEAD])
        batch += payload
        header.attributes = header.attributes & ~CODEC_MASK | target
        header.batch_length = len(batch) - LOG_OVERHEAD
        _LENGTH.pack_into(batch, 8, header.batch_length)
        _ATTRIBUTES.pack_into(batch, ATTRIBUTES_OFFSET, header.attributes)
        header.crc = crc_of(batch, 0, len(batch))
        _CRC.pack_into(batch, CRC_OFFSET, header.crc)
        return batch

    def _stamp(self, prepared: Prepared) -> None:
        """LogAppendTime: one timestamp for the whole batch; records stay untouched (S-APP-4)."""
        now = self._clock.wall_ms()
        set_log_append_time(prepared.data, 0, prepared.header, now)  # type: ignore[arg-type]  # writable
        prepared.log_append_time = now

    # Refusals.

    def _what_is_wrong(self, header: BatchHeader) -> str:
        where = f"in topic partition {self._name}"
        base, last, count = header.base_offset, header.last_offset, header.record_count
        if base:
            return (
                f"The baseOffset of the record batch in the append to {self._name} should be 0, "
                f"but it is {base}"
            )
        if last < base:
            return f"Batch has an invalid offset range: [{base}, {last}] {where}"
        if count <= 0:
            return f"Invalid reported count for record batch: {count} {where}"
        if last - base + 1 != count:
            return (
                f"Inconsistent batch offset range [{base}, {last}] and count of records "
                f"{count} {where}"
            )
        if header.is_control:
            return f"Clients are not allowed to write control records {where}"
        return (
            f"Invalid sequence number {header.base_sequence} in record batch with producerId "
            f"{header.producer_id} {where}"
        )

    def _too_large(self, size: int) -> KafkaError:
        return RejectedRecords(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {self._name} is {size} bytes "
            f"which exceeds the maximum configured value of {self._max_message_bytes}.",
        )

    def _bad_crc(self, header: BatchHeader) -> CorruptBatch:
        return bad_crc(header, self._name)

    def _client_append_time(self, header: BatchHeader) -> KafkaError:
        message = (
            "Invalid timestamp type in message. Producer should not set timestamp type "
            "to LogAppendTime."
        )
        errors = [(index, message) for index in range(min(header.record_count, _SHOWN_ERRORS))]
        return RejectedRecords(ErrorCode.INVALID_TIMESTAMP, _BAD_TIMES, errors)

    def _bad_records(self, scan: RecordScan, bounds: tuple[int, int] | None) -> KafkaError:
        """One error per bad record, in order; a bad time anywhere decides the code, as in Kafka."""
        errors = dict.fromkeys(
            scan.outside,
            f"Timestamp of the record is out of range. The timestamp should be within {bounds}",
        )
        errors |= dict.fromkeys(
            scan.keyless,
            f"Compacted topic cannot accept message without key in topic partition {self._name}.",
        )
        listed = sorted(errors.items())
        # A record without key is not asked for its time.
        if set(scan.outside) - set(scan.keyless):
            return RejectedRecords(ErrorCode.INVALID_TIMESTAMP, _BAD_TIMES, listed)
        message = (
            f"One or more records have been rejected due to {len(listed)} record errors in total, "
            f"and only showing the first three errors at most: {listed[:_SHOWN_ERRORS]}"
        )
        return RejectedRecords(ErrorCode.INVALID_RECORD, message, listed)


def bad_crc(header: BatchHeader, name: str) -> CorruptBatch:
    """The checksum in `header` is not that of the batch."""
    return CorruptBatch(f"Record is corrupt (stored crc = {header.crc}) in topic partition {name}.")


def _writable(records: Bytes) -> bytearray | memoryview:
    """The same bytes where they may be patched: a copy if need be."""
    if isinstance(records, bytes) or (isinstance(records, memoryview) and records.readonly):
        return bytearray(records)
    return records


def _target_codec(compression_type: str) -> int | None:
    """Codec the topic stores; None to keep the producer's."""
    if compression_type == "producer":
        return None
    if compression_type == "uncompressed":
        return CompressionType.NONE
    return CompressionType.for_name(compression_type)
