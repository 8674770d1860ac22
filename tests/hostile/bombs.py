"""Batches that are small on the wire and large, or untrue, when they are opened."""

import zlib
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
    """As a compressor, of nothing."""

    def compress(self, data: bytes) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


_COMPRESSORS: dict[CompressionType, Any] = {
    CompressionType.NONE: _Plain,
    CompressionType.GZIP: lambda: zlib.compressobj(9, zlib.DEFLATED, 31),
    CompressionType.ZSTD: lambda: zstandard.ZstdCompressor(level=3).compressobj(),
}


def _zstd(pattern: bytes, times: int) -> bytes:
    """`pattern` so many times, compressed without ever being whole."""
    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    at_once = max(CHUNK // len(pattern), 1)
    pieces = [compressor.compress(pattern * at_once) for _ in range(times // at_once)]
    pieces.append(compressor.compress(pattern * (times % at_once)))
    pieces.append(compressor.flush())
    return b"".join(pieces)


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
    return _batch(_zstd(encode_record(0, 0, None, b""), count), count)


def many_headers(count: int) -> bytes:
    """One honest record with so many headers of no name and no value: 10,000,000 are 1.9 KB."""
    body = b"\x00\x00\x00\x01\x01" + encode_varint(count)
    length = len(body) + 2 * count
    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    pieces = [compressor.compress(encode_varint(length) + body)]
    at_once = CHUNK // 2
    pieces += [compressor.compress(b"\x00\x01" * at_once) for _ in range(count // at_once)]
    pieces += [compressor.compress(b"\x00\x01" * (count % at_once)), compressor.flush()]
    return _batch(b"".join(pieces), 1)


def honest_records(
    count: int, value: bytes = b"", codec: CompressionType = CompressionType.ZSTD
) -> bytes:
    """What the header says is there."""
    compressor = _COMPRESSORS[codec]()
    pieces = []
    for begin in range(0, count, 10_000):
        rows = range(begin, min(begin + 10_000, count))
        pieces.append(compressor.compress(b"".join(encode_record(i, 0, None, value) for i in rows)))
    pieces.append(compressor.flush())
    return _batch(b"".join(pieces), count, codec)


def one_large_value(size: int) -> bytes:
    """One honest record whose value is so many zeros."""
    body = b"\x00\x00\x00\x01" + encode_varint(size)
    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    pieces = [compressor.compress(encode_varint(len(body) + size + 1) + body)]
    pieces += [compressor.compress(bytes(CHUNK)) for _ in range(size // CHUNK)]
    pieces += [compressor.compress(bytes(size % CHUNK) + b"\x00"), compressor.flush()]
    return _batch(b"".join(pieces), 1)


def lying_compressed(claimed: int) -> bytes:
    """One record that claims to be `claimed` of them."""
    return _batch(_zstd(encode_record(0, 0, None, b"x"), 1), claimed)


def lying_plain(claimed: int, records: int) -> bytes:
    """Uncompressed; fits its size, so that only the records tell."""
    payload = b"".join(encode_record(i, 0, None, b"x" * 20) for i in range(records))
    assert claimed * 7 <= BATCH_OVERHEAD + len(payload)
    return _batch(payload, claimed, CompressionType.NONE)


def old_messages(count: int) -> bytes:
    """A gzip wrapper of magic 1 around so many empty messages."""
    inner = encode_message(1, 0, NOW_MS, None, b"", CompressionType.NONE)
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    at_once = CHUNK // len(inner)
    pieces = [compressor.compress(inner * at_once) for _ in range(count // at_once)]
    pieces += [compressor.compress(inner * (count % at_once)), compressor.flush()]
    return encode_message(1, count - 1, NOW_MS, None, b"".join(pieces), CompressionType.GZIP)
