"""Converts a set of format 0 or 1, as old clients produce it, to one batch of format 2.

Offsets count from 0, timestamps are -1 from format 0, as in Kafka's
`LogValidator.convertAndAssignOffsetsNonCompressed`. `down_conversion` is the opposite.

A wrapper of a few hundred kilobytes may hold ten million messages. So the set is read in pieces,
each message is converted as it is read, and the conversion stops as soon as its result is too
large. Each message is a step of `Effort`, and a set may hold `MOST_MESSAGES`.
"""

import zlib
from collections.abc import Iterator
from typing import Final

from protocol.records.batch import BATCH_OVERHEAD
from protocol.records.builder import assemble_batch, attributes_of, encode_record
from protocol.records.compression import BytesLike, CompressionType
from protocol.records.deflating import OutputFull, deflate
from protocol.records.effort import Effort
from protocol.records.errors import CorruptBatch, InvalidRecord
from protocol.records.header import LOG_OVERHEAD, MAGIC_OFFSET, MIN_LEGACY_SIZE, TimestampType
from protocol.records.inflating import inflate
from protocol.records.message_set import (
    Message,
    check_inner,
    check_wrapper_offset,
    content_of,
    frames,
)
from protocol.records.rest import Rest

MOST_MESSAGES: Final = 250_000
"""The most messages in one set, at a few microseconds each; old clients send less than a tenth."""

_PIECE: Final = 64 * 1024
_HEAD: Final = 12
_LARGEST_MESSAGE: Final = 32 << 20
"""Bytes: the most of an inner message, which is in memory as a whole."""


def codec_of_set(records: BytesLike, name: str, *, most: int) -> tuple[CompressionType, int]:
    """(codec of the last message, bytes of whole messages) of a set; reads frames only.

    Raises InvalidRecord for mixed formats and for more than one message beside a compressed one,
    CorruptBatch for a checksum, OutputFull for a message of more than `most` bytes,
    UnsupportedCompression. `name` is that of the partition, for messages.
    """
    first_magic, codec, end = -1, CompressionType.NONE, 0
    for frame in frames(records):
        if first_magic not in (-1, frame.magic):
            raise InvalidRecord(
                f"Batch magic {frame.magic} is not the same as the first batch's magic byte "
                f"{first_magic} in topic partition {name}"
            )
        first_magic = frame.magic
        if frame.size > most:
            raise OutputFull(frame.size)
        if zlib.crc32(memoryview(records)[frame.start + MAGIC_OFFSET : frame.end]) != frame.crc:
            raise CorruptBatch(
                f"Record is corrupt (stored crc = {frame.crc}) in topic partition {name}."
            )
        if frame.start and frame.codec:
            raise InvalidRecord("Compressed outer record has more than one batch")
        codec = CompressionType.for_id(frame.codec)
        end = frame.end
    return codec, end


def up_convert_set(
    messages: BytesLike,
    *,
    codec: CompressionType,
    level: int | None,
    most: int,
    effort: Effort | None = None,
) -> bytes:
    """Convert a set that `codec_of_set` has checked to one batch of format 2 with offsets from 0.

    Raises InvalidRecord, CorruptBatch (inner checksums), OutputFull, EffortSpent.
    """
    effort = effort or Effort()
    written = _Records()
    payload = deflate(codec, written.encoded(messages, effort), level, most=most - BATCH_OVERHEAD)
    if not written.count:
        raise InvalidRecord("Record batch has no batches at all")
    return assemble_batch(
        payload,
        base_offset=0,
        last_offset_delta=written.count - 1,
        record_count=written.count,
        base_timestamp=written.base_timestamp,
        max_timestamp=written.max_timestamp,
        attributes=attributes_of(codec),
    )


class _Records:
    """Encodes the records of a batch, and keeps their number and timestamps for its header."""

    __slots__ = ("base_timestamp", "count", "max_timestamp")

    def __init__(self) -> None:
        self.count = 0
        self.base_timestamp = self.max_timestamp = -1

    def encoded(self, messages: BytesLike, effort: Effort) -> Iterator[bytes]:
        """The records of format 2, in pieces."""
        pieces: list[bytes] = []
        size = 0
        for timestamp, key, value in _messages(messages, effort):
            if not self.count:
                self.base_timestamp = self.max_timestamp = timestamp
            elif timestamp > self.max_timestamp:
                self.max_timestamp = timestamp
            piece = encode_record(self.count, timestamp - self.base_timestamp, key, value)
            self.count += 1
            if self.count > MOST_MESSAGES:
                raise InvalidRecord(f"A message set may hold {MOST_MESSAGES} messages")
            pieces.append(piece)
            size += len(piece)
            if size > _PIECE:
                yield b"".join(pieces)
                pieces, size = [], 0
        yield b"".join(pieces)


def _messages(
    messages: BytesLike, effort: Effort
) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """(timestamp, key, value) of each message, wrappers opened."""
    for frame in frames(messages):
        outer = Message(messages, frame.start)
        if not outer.codec:
            effort.spend_steps(1)
            yield outer.timestamp, outer.key, outer.value
            continue
        log_dated = outer.timestamp_type is TimestampType.LOG_APPEND_TIME
        last = None
        for last in _inner(outer, effort):
            timestamp = outer.timestamp if log_dated and last.magic else last.timestamp
            yield timestamp, last.key, last.value
        if last is None:
            raise InvalidRecord("Found invalid compressed record set with no inner records")
        check_wrapper_offset(outer, last)


def _inner(outer: Message, effort: Effort) -> Iterator[Message]:
    rest = Rest()
    count = 0
    content = content_of(outer)
    for piece in inflate(outer.codec, content, magic=outer.magic, chunk=_PIECE, effort=effort):
        if not rest.add(piece):
            continue
        data = rest.take()
        at, end = 0, len(data)
        while end - at >= _HEAD:
            size = LOG_OVERHEAD + int.from_bytes(data[at + 8 : at + _HEAD], "big", signed=True)
            if size < LOG_OVERHEAD + MIN_LEGACY_SIZE:
                raise CorruptBatch(
                    f"Record size {size - LOG_OVERHEAD} is less than the minimum record overhead "
                    f"({MIN_LEGACY_SIZE})"
                )
            if size > _LARGEST_MESSAGE:
                raise OutputFull(size)
            if size > end - at:
                rest.needed = size
                break
            effort.spend_steps(1)
            message = Message(data, at)
            check_inner(outer, message)
            if zlib.crc32(memoryview(data)[at + MAGIC_OFFSET : at + size]) != message.crc:
                raise CorruptBatch(f"Inner message {count} is corrupt (stored crc differs)")
            yield message
            count += 1
            at += size
        else:
            rest.needed = _HEAD
        rest.add(data[at:])
    # A partial message at the end is dropped silently, as Kafka's stream reader does.
