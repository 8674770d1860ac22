"""The records of a batch of format 2, opened in chunks of whole records.

What a batch holds may be a thousand times its size, and one chunk of it is in memory at a time: a
few hundred kilobytes, or as much as a single large record takes. Who wants less than all of it
stops iterating.

`scan` answers the same questions about batches that are small; `search` and `down_conversion` are
made of chunks.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.records.batch import BATCH_OVERHEAD, BatchHeader
from protocol.records.chain import whole_records
from protocol.records.compression import BytesLike
from protocol.records.errors import CorruptBatch, InvalidRecord
from protocol.records.inflate import PIECE, inflate

MAX_RECORD: Final = 128 << 20
"""Bytes of one record. A request has at most `socket.request.max.bytes`, 100 MiB by default."""
MAX_OPENED: Final = 1 << 30
"""Bytes of all records of a batch; far more than appends let in (`MAX_DECOMPRESSED_SIZE`)."""


class Chunk(NamedTuple):
    """Some records of a batch that follow each other."""

    payload: bytes
    starts: list[int]
    """Where each record begins in `payload`, and where the last one ends."""
    is_last: bool
    """The batch ends with it."""


def record_chunks(
    buf: BytesLike, pos: int, header: BatchHeader, *, piece: int = PIECE
) -> Iterator[Chunk]:
    """All records of the v2 batch at `pos`; only their lengths are looked at.

    Raises CorruptBatch when the buffer ends before the batch, UnsupportedCompression, and
    InvalidRecord, at the chunk where that shows, unless exactly `record_count` records fill what
    the batch inflates to.
    """
    stop = pos + header.size
    if stop > len(buf):
        raise CorruptBatch(f"Batch of {header.size} bytes reaches beyond its buffer")
    left = header.record_count
    if left < 0:
        raise InvalidRecord(f"Found invalid record count {left} in magic v2 batch")
    view = memoryview(buf)[pos + BATCH_OVERHEAD : stop]
    pieces = inflate(header.attributes & 7, view, piece=piece)
    opened = 0
    needed = 1
    waiting: list[bytes | memoryview] = []
    size = 0
    while left:
        while size < max(needed, piece):
            following = next(pieces, None)
            if following is None:
                break
            opened += len(following)
            if opened > MAX_OPENED:
                raise InvalidRecord(f"Record stream inflates to more than {MAX_OPENED} bytes")
            waiting.append(following)
            size += len(following)
        if size < needed:
            raise InvalidRecord(
                f"Incorrect declared batch size, {left} records reach beyond the batch"
            )
        payload = b"".join(waiting)
        starts, needed = whole_records(payload, left)
        if needed > MAX_RECORD:
            raise InvalidRecord(f"A record of {needed} bytes is larger than {MAX_RECORD}")
        left -= len(starts) - 1
        end = starts[-1]
        rest = payload[end:]
        if left == 0 and (rest or next(pieces, b"")):
            raise InvalidRecord(
                "Incorrect declared batch size, records still remaining in the batch"
            )
        if end:
            yield Chunk(payload, starts, left == 0)
        waiting, size = [rest], len(rest)
        needed = max(needed, size + 1)
