"""Batches that are small on the wire and large, or untrue, when they are opened."""

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import zstandard

from protocol.records.batch import BATCH_OVERHEAD
from protocol.records.builder import assemble_batch, attributes_of, encode_record
from protocol.records.compression import CompressionType
from protocol.records.message_set import encode_message
from protocol.records.varint import encode_varint

NOW_MS = 1_700_000_000_000
CHUNK = 1 << 20


class _Plain:
    """A compressor that changes nothing."""

    def compress(self, data: bytes) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


_COMPRESSORS: dict[CompressionType, Any] = {
    CompressionType.NONE: _Plain,
    CompressionType.GZIP: lambda: zlib.compressobj(9, zlib.DEFLATED, 31),
    CompressionType.ZSTD: lambda: zstandard.ZstdCompressor(level=3).compressobj(),
}


def _packed(pieces: Iterable[bytes], codec: CompressionType = CompressionType.ZSTD) -> bytes:
    """Return the pieces compressed as one, without ever having them whole."""
    compressor = _COMPRESSORS[codec]()
    return b"".join((*map(compressor.compress, pieces), compressor.flush()))


def _repeated(pattern: bytes, times: int) -> Iterator[bytes]:
    """Yield `pattern` so many times, in pieces."""
    at_once = max(CHUNK // len(pattern), 1)
    for begin in range(0, times, at_once):
        yield pattern * min(at_once, times - begin)


def _batch(payload: bytes, count: int, codec: CompressionType = CompressionType.ZSTD) -> bytes:
    return assemble_batch(
        payload,
        base_offset=0,
        last_offset_delta=count - 1,
        record_count=count,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
        attributes=attributes_of(codec),
    )


def equal_records(count: int) -> bytes:
    """All of them claim to be the first of the batch: 30,000,000 are 19 KB of zstd."""
    return _batch(_packed(_repeated(encode_record(0, 0, None, b""), count)), count)


def many_headers(count: int) -> bytes:
    """One honest record with so many headers of no name and no value: 10,000,000 are 1.9 KB."""
    body = b"\x00\x00\x00\x01\x01" + encode_varint(count)
    head = encode_varint(len(body) + 2 * count) + body
    return _batch(_packed(chain([head], _repeated(b"\x00\x01", count))), 1)


def honest_records(
    count: int, value: bytes = b"", codec: CompressionType = CompressionType.ZSTD
) -> bytes:
    """Records of which the header says the truth."""
    pieces = (
        b"".join(encode_record(i, 0, None, value) for i in range(at, min(at + 10_000, count)))
        for at in range(0, count, 10_000)
    )
    return _batch(_packed(pieces, codec), count, codec)


def one_large_value(size: int) -> bytes:
    """One honest record whose value is so many zeros."""
    body = b"\x00\x00\x00\x01" + encode_varint(size)
    head = encode_varint(len(body) + size + 1) + body
    return _batch(_packed(chain([head], _repeated(b"\x00", size + 1))), 1)


def lying_compressed(claimed: int) -> bytes:
    """One record that claims to be `claimed` of them."""
    return _batch(_packed([encode_record(0, 0, None, b"x")]), claimed)


def lying_plain(claimed: int, records: int) -> bytes:
    """Uncompressed; fits its size, so that only the records tell."""
    payload = b"".join(encode_record(i, 0, None, b"x" * 20) for i in range(records))
    assert claimed * 7 <= BATCH_OVERHEAD + len(payload)
    return _batch(payload, claimed, CompressionType.NONE)


def old_messages(count: int) -> bytes:
    """A gzip wrapper of magic 1 around so many empty messages."""
    inner = encode_message(1, 0, NOW_MS, None, b"", CompressionType.NONE)
    packed = _packed(_repeated(inner, count), CompressionType.GZIP)
    return encode_message(1, count - 1, NOW_MS, None, packed, CompressionType.GZIP)
