"""Opens a v2 batch in chunks, so that only one chunk of its records is in memory at a time.

    for chunk in open_chunks(buf, pos, header):
        ...     # some thousand records, uncompressed, and where each begins

Number and lengths of the records are compared with the header on the way: there must be as many as
it claims, and no byte behind them. A batch with too many is inflated no further than to the record
after the last one claimed. The caller reads the fields of the records.

`Effort` bounds the cost of one opening. A caller that runs out of it (`EffortSpent`) opens the
batch again where more time is allowed, in a child process for example.

Chunks are cut between records, so a record larger than `chunk` is a chunk of its own, and memory
is bounded by the largest record.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from protocol.records.batch import BATCH_OVERHEAD, BatchHeader
from protocol.records.compression import MAX_DECOMPRESSED_SIZE, BytesLike
from protocol.records.effort import Effort
from protocol.records.errors import CorruptBatch, InvalidRecord
from protocol.records.inflating import CHUNK, inflate
from protocol.records.rest import Rest
from protocol.records.varint import read_varint

if TYPE_CHECKING:
    from protocol.records.scan_numpy import Ints


class Chunk(NamedTuple):
    """Consecutive records of a batch, of which only the lengths were read."""

    first: int
    """Index of the first one in the batch."""
    payload: bytes
    """The records and nothing else, uncompressed."""
    starts: "Ints"
    """The position at which each begins in `payload`, and after these the end of the last."""
    is_last: bool
    """Whether this chunk holds the last record that the header claims."""


def open_chunks(
    buf: BytesLike,
    pos: int,
    header: BatchHeader,
    *,
    chunk: int = CHUNK,
    max_size: int = MAX_DECOMPRESSED_SIZE,
    max_record: int | None = None,
    effort: Effort | None = None,
) -> Iterator[Chunk]:
    """The records of the v2 batch at `pos`, in order; the checksum is not checked.

    Raises CorruptBatch when the buffer ends before the batch, UnsupportedCompression, EffortSpent,
    and InvalidRecord as soon as the batch cannot be what its header says, inflates beyond
    `max_size`, or has or claims a record of more bytes than `max_record`.
    """
    from protocol.records.walk import walk

    end = pos + header.size
    if end > len(buf):
        raise CorruptBatch(f"Batch of {header.size} bytes reaches beyond its buffer")
    count = header.record_count
    if count < 0:
        raise InvalidRecord(f"Found invalid record count {count} in magic v2 batch")
    effort = effort or Effort()
    data = memoryview(buf)[pos + BATCH_OVERHEAD : end]
    first = 0
    rest = Rest()
    for piece in inflate(header.codec, data, chunk=chunk, max_size=max_size, effort=effort):
        if not rest.add(piece):
            continue
        if first == count:
            raise InvalidRecord(
                "Incorrect declared batch size, records still remaining in the batch"
            )
        payload = rest.take()
        starts = walk(payload, count - first, effort)
        used = int(starts[-1])
        if used < len(payload):
            rest.add(payload[used:])
            rest.needed = _size_of_record(payload, used)
            if max_record is not None and rest.needed > max_record:
                raise _too_large(first + len(starts) - 1, rest.needed, max_record)
            payload = payload[:used]
        if max_record is not None and len(payload) > max_record:
            _check_sizes(starts, first, max_record)
        if len(starts) > 1:
            yield Chunk(first, payload, starts, first + len(starts) - 1 == count)
            first += len(starts) - 1
    if rest.size and first == count:
        raise InvalidRecord("Incorrect declared batch size, records still remaining in the batch")
    if first < count:
        raise InvalidRecord(
            f"Incorrect declared batch size, premature EOF reached: {count} records were declared, "
            f"{first} are there"
        )


def _check_sizes(starts: "Ints", first: int, max_record: int) -> None:
    sizes = starts[1:] - starts[:-1]
    if (sizes > max_record).any():
        index = int((sizes > max_record).argmax())
        raise _too_large(first + index, int(sizes[index]), max_record)


def _too_large(index: int, size: int, most: int) -> InvalidRecord:
    return InvalidRecord(
        f"Record {index} of the batch has {size} bytes decompressed; {most} are allowed "
        "(max.decompressed.message.bytes, or 32 times max.message.bytes)"
    )


def _size_of_record(payload: bytes, at: int) -> int:
    """Bytes of the record at `at`; if its length is cut off, one more than there are."""
    try:
        length, body = read_varint(payload, at)
    except IndexError:
        return len(payload) - at + 1
    return body + length - at
