"""Validates the records of a produced batch, as Kafka's `LogValidator` does by decoding each one.

Three ways give the same result, and the cheapest possible one is taken:

1. fast checks of what most producers send (`runs`): a single record, records of one layout, a few
   records of odd sizes one by one;
2. a small batch whole, by field (`scan`);
3. any other in chunks (`opened`), with bounded memory.

The rules, whose violation is `InvalidRecord`:

* as many records as the header says fill the batch exactly;
* every field has the length it claims, and a record's fields fill the record;
* names of record headers are not null;
* the body of a compressed record has at most `max.decompressed.message.bytes`;
* offset deltas are 0, 1, 2 … Kafka leaves wrong deltas in plain batches as they are, and fails on
  them in compressed ones (UNKNOWN_SERVER_ERROR). Here they are invalid in both, as a consumer's
  position follows them.

The same rules hold for compressed records, most of whose fields Kafka's leader skips. Data that
does not inflate is invalid, too; Kafka answers UNKNOWN_SERVER_ERROR, and both are final for a
producer (decision 20).
"""

from collections.abc import Iterator
from typing import NamedTuple

from protocol.records.batch import BATCH_OVERHEAD, BatchHeader
from protocol.records.compression import MAX_DECOMPRESSED_SIZE, BytesLike
from protocol.records.effort import Effort
from protocol.records.errors import InvalidRecord
from protocol.records.inflating import inflate
from protocol.records.opened import open_chunks
from protocol.records.runs import delta_of_one, greatest_delta_of, is_odd, is_regular
from protocol.records.scan_fields import RecordFields
from protocol.records.varint import encode_varint
from protocol.types import NO_TIMESTAMP

SMALL = 128 * 1024
"""The most bytes of inflated records that are checked in one piece."""
PLAIN_AT_ONCE = 4 << 20
"""The most bytes of a plain batch that is copied for the fast checks."""
FEW = 6
"""Fewer records than these are read one by one, without looking for a layout."""
ONE_BY_ONE = 2000
"""The most plain records of odd sizes that are read one by one at once."""
MOST_FAULTS = 1000
"""The most bad records that are listed: enough to find what is wrong with a producer."""

_ANY_BASE = 1 << 62
"""A base timestamp below this, plus a delta that `runs` reads, fits in 64 bits."""


class RecordRules(NamedTuple):
    """A topic's rules for records; timestamps in milliseconds."""

    need_keys: bool = False
    least_timestamp: int | None = None
    """None: no bound, here and below. A record without timestamp (-1) is never out of bounds."""
    greatest_timestamp: int | None = None
    largest_inflated: int = MAX_DECOMPRESSED_SIZE
    """The most bytes that a record's body may have in a compressed batch."""


class Findings(NamedTuple):
    """The result for a valid batch. Indexes count from 0 within the batch."""

    max_timestamp: int
    """The greatest of the records' timestamps; -1 when none is greater."""
    keyless: tuple[int, ...] = ()
    """Indexes of the first `MOST_FAULTS` records without key, if keys are needed."""
    outside: tuple[int, ...] = ()
    """Indexes of the first `MOST_FAULTS` records with a timestamp out of bounds."""


def validated_max_timestamp(records: bytes | memoryview, header: BatchHeader) -> int | None:
    """The max timestamp of `records`, the plain records of a batch with this header.

    None if the fast checks do not prove them valid: then call `check_batch`.
    """
    claimed, base, count = header.max_timestamp, header.base_timestamp, header.record_count
    if not -_ANY_BASE < base < _ANY_BASE:
        return None
    if count == 1:
        delta = delta_of_one(records)
        if delta is not None:
            latest = base + delta
            return latest if latest > NO_TIMESTAMP else NO_TIMESTAMP
    if not NO_TIMESTAMP <= claimed < _ANY_BASE:
        return None
    payload = bytes(records)  # slices of a memoryview cannot be searched
    if count >= FEW and not is_odd(payload) and is_regular(payload, count, claimed - base):
        return claimed
    if count > ONE_BY_ONE:
        return None
    delta = greatest_delta_of(payload, count)
    if delta is None or not -_ANY_BASE < delta < _ANY_BASE:
        return None
    return max(base + delta, NO_TIMESTAMP)


def check_batch(
    buf: BytesLike,
    pos: int,
    header: BatchHeader,
    rules: RecordRules,
    *,
    effort: Effort | None = None,
    max_size: int = MAX_DECOMPRESSED_SIZE,
) -> Findings:
    """Check the records of the whole v2 batch at `pos`; returns what was found in them.

    The checksum is not checked, and the header's max timestamp is not trusted. Raises
    InvalidRecord, UnsupportedCompression, EffortSpent.
    """
    view = memoryview(buf)[pos + BATCH_OVERHEAD : pos + header.size]
    if effort is None:  # in a thread, and not after the fast checks
        latest = _latest_of_plain(view, header, rules)
        if latest is not None:
            return Findings(latest)
        effort = Effort()
    payload = _at_once(view, header, effort, max_size)
    if payload is not None and not _too_large_inside(len(payload), header, rules):
        if (
            rules.least_timestamp is None
            and (
                rules.greatest_timestamp is None or header.max_timestamp <= rules.greatest_timestamp
            )
            and NO_TIMESTAMP <= header.max_timestamp < _ANY_BASE
            and -_ANY_BASE < header.base_timestamp < _ANY_BASE
            and is_regular(
                payload,
                header.record_count,
                header.max_timestamp - header.base_timestamp,
                need_keys=rules.need_keys,
            )
        ):
            return Findings(header.max_timestamp)
        if len(payload) <= SMALL:
            return _small_batch(payload, header, rules, effort)
    return _chunks(buf, pos, header, rules, effort, max_size)


def _latest_of_plain(view: memoryview, header: BatchHeader, rules: RecordRules) -> int | None:
    """The max timestamp of plain records that the fast checks prove valid and within the rules."""
    if (
        header.is_compressed
        or rules.need_keys
        or rules.least_timestamp is not None
        or len(view) > PLAIN_AT_ONCE
    ):
        return None
    latest = validated_max_timestamp(view, header)
    if latest is None or rules.greatest_timestamp is None or latest <= rules.greatest_timestamp:
        return latest
    return None


def _too_large_inside(size: int, header: BatchHeader, rules: RecordRules) -> bool:
    """Whether a record larger than allowed may be among inflated ones of `size` bytes."""
    return size > rules.largest_inflated and header.is_compressed


def _at_once(view: memoryview, header: BatchHeader, effort: Effort, max_size: int) -> bytes | None:
    """The plain records, if they may be checked in one piece; else None."""
    if not header.is_compressed:
        return bytes(view) if len(view) <= PLAIN_AT_ONCE else None
    pieces: list[BytesLike] = []
    size = 0
    for piece in inflate(header.codec, view, chunk=SMALL + 1, max_size=max_size, effort=effort):
        pieces.append(piece)
        size += len(piece)
        if size > SMALL:
            return None
    return b"".join(pieces)


def _small_batch(
    payload: bytes, header: BatchHeader, rules: RecordRules, effort: Effort
) -> Findings:
    from protocol.records.scan import fields_of

    effort.spend_steps(min(header.record_count, len(payload)))
    fields = fields_of(payload, header, effort)
    return _judge([(0, fields)], rules)


def _chunks(
    buf: BytesLike,
    pos: int,
    header: BatchHeader,
    rules: RecordRules,
    effort: Effort,
    max_size: int,
) -> Findings:
    from protocol.records.scan_numpy import read_fields

    most = rules.largest_inflated + len(encode_varint(rules.largest_inflated))
    max_record = most if header.is_compressed else None

    def read() -> Iterator[tuple[int, RecordFields]]:
        for chunk in open_chunks(
            buf, pos, header, effort=effort, max_size=max_size, max_record=max_record
        ):
            yield (
                chunk.first,
                read_fields(chunk.payload, chunk.starts, header.base_timestamp, effort),
            )

    return _judge(read(), rules)


def _judge(
    chunks: "Iterator[tuple[int, RecordFields]] | list[tuple[int, RecordFields]]",
    rules: RecordRules,
) -> Findings:
    """The findings of all chunks, each given as (index of its first record, columns)."""
    greatest = NO_TIMESTAMP
    keyless: list[int] = []
    outside: list[int] = []
    bounded = rules.least_timestamp is not None or rules.greatest_timestamp is not None
    least = -(1 << 63) if rules.least_timestamp is None else rules.least_timestamp
    most = (1 << 63) - 1 if rules.greatest_timestamp is None else rules.greatest_timestamp
    for first, fields in chunks:
        wrong = fields.first_out_of_sequence(first)
        if wrong is not None:
            raise InvalidRecord(
                f"Record {first + wrong} of the batch has the offset delta of another one"
            )
        earliest, latest = fields.time_range()
        greatest = max(greatest, latest)
        if rules.need_keys and len(keyless) < MOST_FAULTS:
            keyless += (first + index for index in fields.keyless())
        if bounded and not least <= earliest <= latest <= most and len(outside) < MOST_FAULTS:
            outside += (first + index for index in fields.outside(least, most))
    return Findings(greatest, tuple(keyless[:MOST_FAULTS]), tuple(outside[:MOST_FAULTS]))
