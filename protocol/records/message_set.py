"""Message sets: formats 0 and 1, which old clients send and read, and old logs hold.

    0  offset      i64
    8  size        i32   bytes after this field
   12  crc         u32   CRC-32 of everything from `magic` to the end
   16  magic       i8    0 or 1
   17  attributes  i8    bits 0-2 codec, 3 timestamp type (magic 1)
   18  timestamp   i64   magic 1 only
    .  key         i32 length (-1 null), bytes
    .  value       i32 length (-1 null), bytes

A compressed set is one *wrapper* message whose value is a compressed set. The wrapper's offset is
that of its last inner message; inner offsets are absolute in format 0, relative in format 1 (0, 1,
2 …). In format 1 a LogAppendTime wrapper's timestamp is that of every inner message. Each
uncompressed message, and each wrapper, counts as a batch of its own.

This is the cold path: plain Python, one object per message. As `AbstractLegacyRecordBatch`,
`LegacyRecord` and `MemoryRecordsBuilder`; conversions are in `message_stream` (to format 2) and
`down_conversion` (from it).
"""

import contextlib
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from protocol.records.compression import (
    MAX_DECOMPRESSED_SIZE,
    BytesLike,
    CompressionType,
    compress,
)
from protocol.records.errors import (
    CorruptBatch,
    InvalidRecord,
    RecordsError,
    UnsupportedCompression,
)
from protocol.records.header import (
    CODEC_MASK,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MIN_LEGACY_SIZE,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    TimestampType,
)
from protocol.records.inflating import decompress
from protocol.records.value import Record

_PREFIX: Final = struct.Struct(">qiIBB")  # offset, size, crc, magic, attributes
_OFFSET_AND_SIZE: Final = struct.Struct(">qi")
_CRC: Final = struct.Struct(">I")
_BODY_START: Final = struct.Struct(">BB")
_BODY_START_V1: Final = struct.Struct(">BBq")
_LENGTH: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")

OldRecord = tuple[int, int, BytesLike | None, BytesLike | None]
"""(offset, timestamp ms, key, value)"""


class Message:
    """One message as stored, inner or outer."""

    __slots__ = ("attributes", "crc", "key", "magic", "offset", "size", "timestamp", "value")

    def __init__(self, buf: BytesLike, pos: int) -> None:
        """Raises CorruptBatch when the frame is cut or nonsense, InvalidRecord for its fields."""
        try:
            self.offset, length, self.crc, self.magic, self.attributes = _PREFIX.unpack_from(
                buf, pos
            )
        except struct.error:
            raise CorruptBatch("Message is cut off in its header") from None
        if length < MIN_LEGACY_SIZE:
            raise CorruptBatch(
                f"Record size {length} is less than the minimum record overhead ({MIN_LEGACY_SIZE})"
            )
        self.size = LOG_OVERHEAD + length
        if self.magic not in (0, 1):
            raise CorruptBatch(f"Invalid magic found in record: {self.magic}")
        end = pos + self.size
        if end > len(buf):
            raise CorruptBatch(f"Message of {self.size} bytes reaches beyond its buffer")
        at = pos + _PREFIX.size
        self.timestamp = -1
        try:
            if self.magic == 1:
                (self.timestamp,) = _INT64.unpack_from(buf, at)
                at += _INT64.size
            view = memoryview(buf)[:end]
            self.key, at = _nullable(view, at)
            self.value, at = _nullable(view, at)
        except struct.error:
            raise InvalidRecord("Message is too short for its fields") from None
        if at != end:
            raise InvalidRecord(f"Message has {end - at} bytes behind its value")

    @property
    def codec(self) -> int:
        """Codec id; not checked."""
        codec: int = self.attributes & CODEC_MASK
        return codec

    @property
    def timestamp_type(self) -> TimestampType:
        """CREATE_TIME in format 0, which has no timestamps."""
        if self.magic and self.attributes & TIMESTAMP_TYPE_BIT:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME


class Frame(NamedTuple):
    """The outer fields of a message, read without opening it."""

    start: int
    end: int
    magic: int
    crc: int
    codec: int
    """Id; not checked."""

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start


def frames(buf: BytesLike) -> Iterator[Frame]:
    """The whole messages of a set; ends silently at a partial one.

    `iter_batches` opens wrappers for their offsets; this opens nothing. Raises CorruptBatch for a
    size below the format's least, and for a magic above 2; a batch of format 2 is a frame, too.
    """
    at, end = 0, len(buf)
    while end - at >= _PREFIX.size:
        _, length, crc, magic, attributes = _PREFIX.unpack_from(buf, at)
        if length < MIN_LEGACY_SIZE:
            raise CorruptBatch(
                f"Record size {length} is less than the minimum record overhead ({MIN_LEGACY_SIZE})"
            )
        if magic > 2:
            raise CorruptBatch(f"Invalid magic found in record: {magic}")
        following = at + LOG_OVERHEAD + length
        if following > end:
            return
        yield Frame(at, following, magic, crc, attributes & CODEC_MASK)
        at = following


def _nullable(view: memoryview, at: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(view, at)
    at += _LENGTH.size
    if length < 0:
        return None, at
    if length > len(view) - at:
        raise InvalidRecord("A field reaches beyond its message")
    return bytes(view[at : at + length]), at + length


def iter_legacy_records(
    buf: BytesLike, pos: int = 0, *, max_size: int = MAX_DECOMPRESSED_SIZE
) -> Iterator[Record]:
    """The records of the one message (plain or wrapper) at `pos`, offsets absolute.

    Checksums are not checked. Timestamps are -1 in format 0. Raises CorruptBatch (frame),
    InvalidRecord (content), UnsupportedCompression (unknown codec).
    """
    outer = Message(buf, pos)
    if not outer.codec:
        yield Record(outer.offset, outer.timestamp, outer.key, outer.value, [], outer.attributes)
        return
    inner = _inner_messages(outer, max_size)
    base = 0
    # A format 1 wrapper with offset 0 is how some librdkafka versions send it: 0 is its base.
    if outer.magic == 1 and outer.offset != 0:
        check_wrapper_offset(outer, inner[-1])
        base = outer.offset - inner[-1].offset
    log_dated = outer.timestamp_type is TimestampType.LOG_APPEND_TIME
    for message in inner:
        timestamp = outer.timestamp if log_dated and message.magic else message.timestamp
        yield Record(
            base + message.offset, timestamp, message.key, message.value, [], message.attributes
        )


def inner_checksums(buf: BytesLike, pos: int) -> list[tuple[int, bool]]:
    """(stored CRC, whether it holds) of each message in the wrapper at `pos`, for dumps.

    Raises as `iter_legacy_records` does.
    """
    outer = Message(buf, pos)
    messages = _inner_messages(outer, MAX_DECOMPRESSED_SIZE)
    data = memoryview(decompress(outer.codec, outer.value or b"", magic=outer.magic))
    checksums = []
    for message in messages:
        crc = zlib.crc32(data[MAGIC_OFFSET : message.size])
        checksums.append((message.crc, crc == message.crc))
        data = data[message.size :]
    return checksums


def content_of(outer: Message) -> bytes:
    """The compressed messages in a wrapper. Raises InvalidRecord where there can be none."""
    if outer.codec == CompressionType.ZSTD:
        raise InvalidRecord(f"zstd cannot be used in a message set of magic {outer.magic}")
    if outer.value is None:
        raise InvalidRecord("Found invalid compressed record set with null value")
    return outer.value


def check_inner(outer: Message, message: Message) -> None:
    """Raises InvalidRecord for a message that the wrapper may not contain."""
    if message.magic != outer.magic:
        raise InvalidRecord(
            f"Compressed message magic {message.magic} does not match wrapper magic {outer.magic}"
        )
    if message.codec:
        raise InvalidRecord("Inner messages must not be compressed")


def check_wrapper_offset(outer: Message, last: Message) -> None:
    """Raises InvalidRecord for a format 1 wrapper whose offset is not that of its last message.

    A wrapper with offset 0 is how some librdkafka versions send it.
    """
    if outer.magic == 1 and outer.offset != 0 and outer.offset < last.offset:
        raise InvalidRecord(
            f"Found invalid wrapper offset in compressed v1 message set: {outer.offset} is less "
            f"than the last inner message offset {last.offset} and it is not zero"
        )


def _inner_messages(outer: Message, max_size: int) -> list[Message]:
    data = decompress(outer.codec, content_of(outer), magic=outer.magic, max_size=max_size)
    messages: list[Message] = []
    at = 0
    # Kafka's stream reader ends silently at a partial inner message.
    while len(data) - at >= LOG_OVERHEAD:
        (_, length) = _OFFSET_AND_SIZE.unpack_from(data, at)
        if length >= MIN_LEGACY_SIZE and at + LOG_OVERHEAD + length > len(data):
            break
        message = Message(data, at)
        check_inner(outer, message)
        messages.append(message)
        at += message.size
    if not messages:
        raise InvalidRecord("Found invalid compressed record set with no inner records")
    return messages


def read_legacy_header(buf: BytesLike, pos: int) -> BatchHeader:
    """The message at `pos` seen as a batch: no producer, no epoch, its own offsets and timestamps.

    `attributes` has the message's bits; base and max timestamp are the message's own. A wrapper is
    opened for its first offset and count; one that cannot be opened looks like a single record, so
    that checksums are judged before contents. Raises CorruptBatch for a cut frame.
    """
    try:
        offset, length, crc, magic, attributes = _PREFIX.unpack_from(buf, pos)
        timestamp = _INT64.unpack_from(buf, pos + _PREFIX.size)[0] if magic else -1
    except struct.error:
        raise CorruptBatch("Message is cut off in its header") from None
    if length < MIN_LEGACY_SIZE:
        raise CorruptBatch(
            f"Record size {length} is less than the minimum record overhead ({MIN_LEGACY_SIZE})"
        )
    header = BatchHeader.__new__(BatchHeader)
    header.base_offset = offset
    header.batch_length = length
    header.partition_leader_epoch = -1
    header.magic = magic
    header.crc = crc
    header.attributes = attributes & (CODEC_MASK | (TIMESTAMP_TYPE_BIT if magic else 0))
    header.last_offset_delta = 0
    header.base_timestamp = header.max_timestamp = timestamp
    header.producer_id = header.producer_epoch = header.base_sequence = -1
    header.record_count = 1
    if attributes & CODEC_MASK:
        with contextlib.suppress(RecordsError):
            offsets = [record.offset for record in iter_legacy_records(buf, pos)]
            header.base_offset = offsets[0]
            header.last_offset_delta = offsets[-1] - offsets[0]
            header.record_count = len(offsets)
    return header


def encode_message(
    magic: int,
    offset: int,
    timestamp: int,
    key: BytesLike | None,
    value: BytesLike | None,
    attributes: int = 0,
) -> bytes:
    """One message with offset, size and checksum. Format 0 has no place for `timestamp`."""
    body = b"".join(
        (
            _BODY_START_V1.pack(1, attributes, timestamp)
            if magic
            else _BODY_START.pack(0, attributes),
            _LENGTH.pack(-1 if key is None else len(key)),
            key or b"",
            _LENGTH.pack(-1 if value is None else len(value)),
            value or b"",
        )
    )
    return _OFFSET_AND_SIZE.pack(offset, 4 + len(body)) + _CRC.pack(zlib.crc32(body)) + body


def build_message_set(
    records: Iterable[OldRecord],
    *,
    magic: int,
    codec: CompressionType = CompressionType.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    log_append_time: int | None = None,
) -> bytes:
    """A message set of magic 0 or 1 from records in order of offset; one wrapper with a codec.

    With LOG_APPEND_TIME every message gets `log_append_time` (ValueError without it). No records
    make no bytes. Raises UnsupportedCompression for zstd.
    """
    if codec == CompressionType.ZSTD:
        raise UnsupportedCompression("zstd needs message format version 2")
    log_dated = timestamp_type is TimestampType.LOG_APPEND_TIME
    if log_dated and log_append_time is None:
        raise ValueError("LOG_APPEND_TIME needs log_append_time")
    attributes = TIMESTAMP_TYPE_BIT if log_dated and magic else 0
    pieces: list[bytes] = []
    base = last = 0
    greatest = -1
    for offset, own_timestamp, key, value in records:
        timestamp = own_timestamp if log_append_time is None or not log_dated else log_append_time
        if not pieces:
            base = offset
        last = offset
        greatest = max(greatest, timestamp)
        written = offset - base if codec and magic else offset
        pieces.append(encode_message(magic, written, timestamp, key, value, attributes))
    messages = b"".join(pieces)
    if not codec or not pieces:
        return messages
    return wrap_messages(
        messages,
        magic=magic,
        codec=codec,
        last_offset=last,
        timestamp=greatest,
        attributes=attributes,
        level=level,
    )


def wrap_messages(
    messages: bytes,
    *,
    magic: int,
    codec: CompressionType,
    last_offset: int,
    timestamp: int,
    attributes: int,
    level: int | None = None,
) -> bytes:
    """The wrapper of `messages`, with the last one's offset and the greatest `timestamp`."""
    packed = compress(codec, messages, level, magic=magic)
    return encode_message(magic, last_offset, timestamp, None, packed, attributes | int(codec))
