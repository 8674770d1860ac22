"""`open_chunks`: the records of a batch, passed by without being read."""

import tracemalloc

import pytest

from protocol.records.batch import read_header
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.opened import open_chunks


@pytest.mark.parametrize("codec", list(CompressionType))
def test_chunks_hold_every_record_once_and_the_last_one_says_so(codec: CompressionType) -> None:
    rows = [(0, None, bytes([i % 251]) * (i % 90), ()) for i in range(3000)]
    batch = build_batch(rows, codec=codec)
    chunks = list(open_chunks(batch, 0, read_header(batch), chunk=10_000))
    assert b"".join(chunk.payload for chunk in chunks) == build_batch(rows)[61:]
    assert sum(len(chunk.starts) - 1 for chunk in chunks) == 3000
    assert [chunk.is_last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert len(chunks) > 1


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD])
def test_a_large_batch_takes_the_memory_of_a_chunk(codec: CompressionType) -> None:
    batch = build_batch([(0, None, bytes(100_000), ())] * 300, codec=codec)
    header = read_header(batch)
    tracemalloc.start()
    try:
        found = sum(len(chunk.starts) - 1 for chunk in open_chunks(batch, 0, header))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == 300
    assert peak < 8 << 20, peak  # all the records have 30 MB
