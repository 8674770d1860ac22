"""The checks and changes of a leader in a batch before it is written (Kafka's `LogValidator`).

The header of every client's batch is compared with its records before it is stored (decision 19): a
header with a wrong number of records or greatest timestamp would stop the consumers of its
partition, and a batch that claims 2^31-1 records in ninety bytes begins a new segment. The place of
the comparison depends on its cost:

  a. here and now (`prepare`): plain batches below `IN_WRITER_FROM` bytes, most of which take only a
     few array operations (`protocol.records.runs`), and small compressed ones;
  b. by the writer, with the checksum (`storage.log.appending`): larger plain batches, which are
     written in a thread;
  c. before the append (`opening`, `storage.log.opening`): batches that need more than the `Effort`
     of `prepare`. It returns the `Opening`, with nothing changed; the broker does that in a thread
     or a child process and calls again with the result.

Batches of the broker's own coordinators were made by `protocol.records.builder` in this process and
are not opened, unless they have to be recompressed.

The topic's rules are checked as well: a key in each record (compacted topics, S-APP-3), timestamps
within bounds (S-APP-4), another codec (recompressed, S-APP-5); formats 0 and 1 are converted to the
log's (S-APP-7). The max timestamp in a header is corrected from the records.

This module raises only `KafkaError`; `opening.refusal` alone maps record errors to codes.
"""

import sys
from typing import TYPE_CHECKING, Final

from protocol.records.batch import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL_BIT,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    TimestampType,
    crc_of,
    read_header,
    set_log_append_time,
    set_max_timestamp,
    set_place,
    verify_crc,
)
from protocol.records.compression import ZSTD_MODULE, CompressionType
from protocol.records.effort import Effort, EffortSpent
from protocol.records.errors import (
    InvalidRecord,
    RecordsError,
    UnsupportedCompression,
)
from protocol.records.header import MAGIC_OFFSET
from protocol.records.message_set import frames
from protocol.records.record_validation import validated_max_timestamp
from protocol.records.runs import LEAST_RECORD
from protocol.records.scan import NUMPY_FROM
from protocol.types import NO_TIMESTAMP
from storage.append_origin import CLIENT
from storage.clock import Clock
from storage.log.opening import (
    Opened,
    Opening,
    RejectedRecords,
    TopicRules,
    bad_crc,
    refusal,
    too_large,
)
from storage.log.results import AppendOrigin

__all__ = [
    "Bytes",
    "LATEST_PRODUCE",
    "LeaderValidator",
    "Prepared",
    "RejectedRecords",
    "bad_crc",
    "refusal",
]

if TYPE_CHECKING:
    from config.topic_config import TopicConfig

Bytes = bytes | bytearray | memoryview

LATEST_PRODUCE: Final = 13
"""The request version assumed for an append without a request."""

FIRST_V2_PRODUCE: Final = 3
FIRST_ZSTD_PRODUCE: Final = 7

IN_WRITER_FROM: Final = 1280 * 1024
"""From so many bytes on, checksum and records of a plain batch are checked by the writer, in its
thread; for smaller ones that takes less than the way to a thread."""

IN_WRITER_MOST_RECORDS: Final = 16 * 1024
"""More records than this, if numpy cannot take them together, would hold the interpreter lock for
too long in the writer's thread, and delay the partition."""

INLINE_BYTES: Final = 128 * 1024
"""Uncompressed bytes of a compressed batch that may be inflated here and now."""
INLINE_STEPS: Final = 2048
"""Records, or headers, that may be checked one by one here and now: half a millisecond."""
INLINE_MESSAGES: Final = 256
"""Messages of formats 0 and 1, at six microseconds each, that may be converted here and now."""

_NOT_PLAIN: Final = TIMESTAMP_TYPE_BIT | CODEC_MASK
_NO_BATCH: Final = (
    "Produce requests with version {} must have at least one record batch per partition"
)

_ZSTD: Final = int(CompressionType.ZSTD)
_NO_LIMIT: Final = 2**63 - 1


class Prepared:
    """A batch ready to be written: offsets assigned, header final."""

    __slots__ = ("data", "header", "log_append_time", "opening", "valid_bytes")

    def __init__(
        self,
        data: Bytes,
        header: BatchHeader,
        valid_bytes: int,
        opening: Opening | None = None,
        log_append_time: int = NO_TIMESTAMP,
    ) -> None:
        self.data = data
        """The bytes of the batch alone; writable."""
        self.header = header
        """The header in `data`."""
        self.valid_bytes = valid_bytes
        """Bytes of whole batches in what the client sent."""
        self.opening = opening
        """The checks left to the writer, checksum and records; None if they are done."""
        self.log_append_time = log_append_time


class LeaderValidator:
    """The rules of one topic configuration. Made anew when the configuration changes."""

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_clock",
        "_largest_inflated",
        "_log_append_time",
        "_max_message_bytes",
        "_name",
        "_need_keys",
        "_special",
        "_target_codec",
        "_target_level",
    )

    def __init__(self, config: "TopicConfig", clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._max_message_bytes = config.max_message_bytes
        self._largest_inflated = config.max_decompressed_message_bytes
        self._need_keys = "compact" in config.cleanup_policy
        self._log_append_time = config.message_timestamp_type == "LogAppendTime"
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._target_codec = target = _target_codec(config.compression_type)
        levels = {
            CompressionType.GZIP: config.compression_gzip_level,
            CompressionType.LZ4: config.compression_lz4_level,
            CompressionType.ZSTD: config.compression_zstd_level,
        }
        self._target_level = None if target is None else levels.get(CompressionType(target))
        # Decided here once, as it is the same for each batch: most topics have no special rules.
        self._special = (
            self._need_keys
            or self._log_append_time
            or target not in (None, CompressionType.NONE)
            or self._before_max_ms != _NO_LIMIT
        )

    def prepare(  # noqa: C901, PLR0912  calls cost more than the rest
        self,
        records: Bytes,
        *,
        base_offset: int,
        leader_epoch: int,
        origin: AppendOrigin,
        request_version: int,
        opened: Opened | None = None,
        bounded: bool = False,
    ) -> Prepared | Opening | None:
        """Check the batch a client or coordinator sent and give it its offsets.

        None when there is no whole batch (old clients may send such; S-APP-6). `bounded`: with
        little effort; returns the `Opening` that has to be done first if that is not enough.
        `opened` is its result. Raises KafkaError.
        """
        try:
            if len(records) < BATCH_OVERHEAD or records[MAGIC_OFFSET] != 2 or request_version < 3:
                magic = self._first_magic(records, request_version)
                if magic is None:
                    return None
                if magic < 2:
                    return self._finish(
                        records, None, base_offset, leader_epoch, opened, bounded=bounded
                    )
            header = read_header(records)
            from_client = origin is CLIENT
            size = header.batch_length + LOG_OVERHEAD
            if size != len(records):
                records = self._only_batch(records, size, request_version)
            attributes, count = header.attributes, header.record_count
            if from_client and (
                header.base_offset
                or count != header.last_offset_delta + 1
                or count <= 0
                or attributes & CONTROL_BIT
                or (header.base_sequence < 0 and header.producer_id >= 0)
            ):
                raise InvalidRecord(self._what_is_wrong(header))
            if size > self._max_message_bytes:
                raise too_large(size, self._name, self._max_message_bytes)
            codec = attributes & CODEC_MASK
            if codec:
                check_codec(codec, request_version)
            elif count * LEAST_RECORD > size:
                raise InvalidRecord(f"{count} records do not fit a batch of {size} bytes")
            if not from_client:
                return self._prepare_own(records, header, base_offset, leader_epoch)
            if (
                self._special
                or attributes & _NOT_PLAIN
                or opened is not None
                or header.max_timestamp > self._clock.wall_ms() + self._after_max_ms
            ):
                return self._finish(
                    records, header, base_offset, leader_epoch, opened, bounded=bounded
                )
            # A plain batch, as most are.
            opening = None
            if size >= IN_WRITER_FROM:
                if count > IN_WRITER_MOST_RECORDS:
                    return self._finish(
                        records, header, base_offset, leader_epoch, opened, bounded=bounded
                    )
                opening = Opening(records, self._rules())
            else:
                view = memoryview(records)
                if crc_of(view, 0, size) != header.crc:
                    raise bad_crc(header, self._name)
                latest = validated_max_timestamp(view[BATCH_OVERHEAD:], header)
                if latest != header.max_timestamp:
                    return self._finish(
                        records, header, base_offset, leader_epoch, opened, bounded=bounded
                    )
            if records.__class__ is not memoryview or records.readonly:
                records = _writable(records)
            set_place(records, header, base_offset, leader_epoch)
            return Prepared(records, header, size, opening)
        except RecordsError as error:
            raise refusal(error) from error

    # Headers.

    def _first_magic(self, records: Bytes, request_version: int) -> int | None:
        """The format of the first batch or message; None if there is none and the version allows
        that. Raises InvalidRecord for a format that the request version does not allow."""
        first = next(frames(records), None)
        if first is None:
            if request_version >= FIRST_V2_PRODUCE:
                raise InvalidRecord(_NO_BATCH.format(request_version))
            return None
        if first.magic < 2 and request_version >= FIRST_V2_PRODUCE:
            raise InvalidRecord(
                f"Produce requests with version {request_version} are only allowed to contain "
                "record batches with magic version 2"
            )
        return first.magic

    def _only_batch(self, records: Bytes, size: int, request_version: int) -> memoryview:
        """The first batch, if at most a partial one follows it (S-APP-1, S-APP-6). Raises
        InvalidRecord."""
        if size > len(records):
            raise InvalidRecord(_NO_BATCH.format(request_version))
        view = memoryview(records)
        if next(frames(view[size:]), None) is not None:
            raise InvalidRecord(
                f"Produce requests with version {request_version} are only allowed to contain "
                "exactly one record batch per partition"
            )
        return view[:size]

    # Records.

    def _rules(self) -> TopicRules:
        """The topic's rules at this moment, as values."""
        least = greatest = None
        if not self._log_append_time:
            now = self._clock.wall_ms()
            if self._before_max_ms != _NO_LIMIT:
                least = now - self._before_max_ms
            if self._after_max_ms != _NO_LIMIT:
                greatest = min(now + self._after_max_ms, _NO_LIMIT)
        return TopicRules(
            self._name,
            self._max_message_bytes,
            self._largest_inflated,
            self._target_codec,
            self._target_level,
            self._need_keys,
            least,
            greatest,
        )

    def _finish(
        self,
        records: Bytes,
        header: BatchHeader | None,
        base_offset: int,
        leader_epoch: int,
        opened: Opened | None,
        *,
        bounded: bool,
    ) -> Prepared | Opening:
        """Finish `prepare` for a batch that has to be opened or was; `header` is None for formats 0
        and 1."""
        if opened is None:
            opening, effort = Opening(records, self._rules()), None
            if bounded:
                if header is None:
                    effort = Effort(bytes=INLINE_BYTES, steps=INLINE_MESSAGES)
                elif _is_large(len(records), header) or _needs_import(header):
                    return opening
                else:
                    effort = Effort(bytes=INLINE_BYTES, steps=INLINE_STEPS)
            try:
                opened = opening.run(effort)
            except EffortSpent:
                return opening
        valid_bytes = len(records) if opened.valid_bytes is None else opened.valid_bytes
        if opened.rebuilt is not None:
            data: bytearray | memoryview = bytearray(opened.rebuilt)
            header = read_header(data)
        else:
            data = _writable(records)
        assert header is not None  # sets of formats 0 and 1 were rebuilt
        return self._placed(
            data, header, valid_bytes, opened.max_timestamp, base_offset, leader_epoch
        )

    def _prepare_own(
        self, records: Bytes, header: BatchHeader, base_offset: int, leader_epoch: int
    ) -> Prepared | Opening:
        """`prepare` for a coordinator's batch."""
        if not verify_crc(records, 0, header):
            raise bad_crc(header, self._name)
        is_control = header.attributes & CONTROL_BIT
        target = self._target_codec
        if target is None or is_control or target == header.attributes & CODEC_MASK:
            return self._placed(
                _writable(records),
                header,
                len(records),
                header.max_timestamp,
                base_offset,
                leader_epoch,
            )
        return self._finish(records, header, base_offset, leader_epoch, None, bounded=False)

    def _placed(
        self,
        data: bytearray | memoryview,
        header: BatchHeader,
        valid_bytes: int,
        max_timestamp: int,
        base_offset: int,
        leader_epoch: int,
    ) -> Prepared:
        """Set the header fields that are the leader's."""
        stamped = NO_TIMESTAMP
        if self._log_append_time:
            # One timestamp for the whole batch; records stay untouched (S-APP-4).
            stamped = self._clock.wall_ms()
            set_log_append_time(data, 0, header, stamped)
        elif max_timestamp != header.max_timestamp:
            set_max_timestamp(data, 0, header, TimestampType.CREATE_TIME, max_timestamp)
        set_place(data, header, base_offset, leader_epoch)
        return Prepared(data, header, valid_bytes, None, stamped)

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


def check_codec(codec: int, request_version: int) -> None:
    """Raises UnsupportedCompression for no codec, and for zstd before Produce v7 (S-APP-7)."""
    if codec > _ZSTD or (codec == _ZSTD and request_version < FIRST_ZSTD_PRODUCE):
        raise UnsupportedCompression(
            f"Produce requests with version {request_version} are not allowed to use "
            f"{CompressionType.name_of(codec)} compression"
        )


def _is_large(size: int, header: BatchHeader) -> bool:
    """Whether the batch takes more `Effort` than there is, or goes to a thread in any case."""
    return size >= (INLINE_BYTES if header.is_compressed else IN_WRITER_FROM)


def _needs_import(header: BatchHeader) -> bool:
    """Whether opening the batch would import a library, which takes a tenth of a second."""
    if header.attributes & CODEC_MASK == _ZSTD and ZSTD_MODULE not in sys.modules:
        return True
    return header.record_count > NUMPY_FROM and "numpy" not in sys.modules


def _writable(records: Bytes) -> bytearray | memoryview:
    """The same bytes, copied if they are read-only."""
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
