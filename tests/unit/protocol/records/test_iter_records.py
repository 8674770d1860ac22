"""Records one by one, from batches that may be large."""

import tracemalloc
from itertools import islice

import pytest

from protocol.records import record
from protocol.records.batch import read_header
from protocol.records.builder import assemble_batch, build_batch, encode_record
from protocol.records.compression import CompressionType, compress
from protocol.records.errors import InvalidRecord
from protocol.records.record import iter_records

ROWS = [(1000 + i, b"%d" % i, bytes(i % 50), [("h", b"x")] * (i % 3)) for i in range(2000)]


@pytest.mark.parametrize("codec", list(CompressionType))
def test_large_batches_give_the_same_records(
    codec: CompressionType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "LARGE", 1000)
    monkeypatch.setattr(record, "_CHUNK", 700)
    found = list(iter_records(build_batch(ROWS, base_offset=7, codec=codec)))
    assert [(r.timestamp, r.key, r.value, r.headers) for r in found] == ROWS
    assert [r.offset for r in found] == list(range(7, 2007))


def test_the_first_records_do_not_open_the_rest() -> None:
    batch = build_batch([(0, None, bytes(100_000), ())] * 200, codec=CompressionType.ZSTD)
    tracemalloc.start()
    try:
        assert len(list(islice(iter_records(batch), 3))) == 3
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 << 20, peak  # of twenty megabytes


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_headers_may_be_left_out(codec: CompressionType) -> None:
    batch = build_batch(ROWS, codec=codec)
    found = list(iter_records(batch, with_headers=False))
    assert [(r.timestamp, r.key, r.value) for r in found] == [row[:3] for row in ROWS]
    assert not any(r.headers for r in found)


def test_a_record_without_room_for_a_header_count_is_invalid_all_the_same() -> None:
    batch = bytearray(build_batch([(0, b"k", b"v", ())]))
    assert read_header(batch).record_count == 1
    batch[-3] = 4  # the value takes the byte of the header count
    for with_headers in (True, False):
        with pytest.raises(InvalidRecord):
            list(iter_records(bytes(batch), with_headers=with_headers))


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_a_record_that_ends_before_its_fields_is_invalid(codec: CompressionType) -> None:
    # The number of headers of the second one goes on behind its end.
    payload = encode_record(0, 0, None, None) + b"\x0e\x00\x00\x02\x01\x01\x80\x80"
    batch = assemble_batch(
        compress(codec, payload),
        base_offset=0,
        last_offset_delta=1,
        record_count=2,
        base_timestamp=0,
        max_timestamp=0,
        attributes=int(codec),
    )
    with pytest.raises(InvalidRecord, match="Record 1 reaches beyond"):
        list(iter_records(batch))
