"""Batches that are small and take long to check."""

from protocol.records.builder import assemble_batch, build_batch, encode_record
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


def of_each_kind(timestamp: int) -> dict[str, bytes]:
    """Return one batch of each kind that is appended in its own way."""
    many = [(timestamp, None, b"%07d" % at, ()) for at in range(2_000)]
    return {
        "at once": build_batch([(timestamp, None, b"small", ())]),
        "in a thread": build_batch([(timestamp, None, bytes(1_400_000), ())]),
        "opened in a thread": build_batch(many, codec=CompressionType.GZIP),
        "opened in a child": odd_sizes(21_000, timestamp),
    }
