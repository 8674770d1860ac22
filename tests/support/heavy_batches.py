"""Batches that are small and take long to check."""

from protocol.records.builder import assemble_batch, encode_record
from protocol.records.compression import CompressionType, compress


def odd_sizes(count: int, timestamp: int) -> bytes:
    """Records of odd sizes: from some thousands on more Python than a thread is given."""
    payload = b"".join(encode_record(at, 0, None, bytes(at % 2)) for at in range(count))
    return assemble_batch(
        compress(CompressionType.GZIP, payload),
        base_offset=0,
        last_offset_delta=count - 1,
        record_count=count,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        attributes=CompressionType.GZIP,
    )
