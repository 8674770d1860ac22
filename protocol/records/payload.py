"""The records part of a v2 batch, uncompressed."""

from protocol.records.batch import BATCH_OVERHEAD, BatchHeader
from protocol.records.compression import MAX_DECOMPRESSED_SIZE, BytesLike
from protocol.records.errors import CorruptBatch, InvalidRecord
from protocol.records.inflating import decompress


def payload_of(
    buf: BytesLike, pos: int, header: BatchHeader, *, max_size: int = MAX_DECOMPRESSED_SIZE
) -> bytes:
    """The uncompressed records of the v2 batch at `pos`, a copy.

    Raises CorruptBatch when the buffer ends before the batch, InvalidRecord for a negative record
    count and for what does not inflate (or to more than `max_size` bytes), UnsupportedCompression.
    """
    end = pos + header.size
    if end > len(buf):
        raise CorruptBatch(f"Batch of {header.size} bytes reaches beyond its buffer")
    if header.record_count < 0:
        raise InvalidRecord(f"Found invalid record count {header.record_count} in magic v2 batch")
    view = memoryview(buf)[pos + BATCH_OVERHEAD : end]
    return (
        decompress(header.codec, view, max_size=max_size) if header.is_compressed else bytes(view)
    )
