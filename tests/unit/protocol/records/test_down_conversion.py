"""Down-conversion gives what fits, at least a message, and continues at the reader's next offset.

`test_records_golden` compares whole batches with those that Kafka converts.
"""

import tracemalloc

import pytest

from protocol.records import down_conversion
from protocol.records.batch import iter_batches, verify_crc
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.down_conversion import Converted, down_convert
from protocol.records.errors import UnsupportedCompression
from protocol.records.message_set import inner_checksums
from protocol.records.value import Record
from tests.support.message_sets import records_in

OLD_CODECS = [codec for codec in CompressionType if codec is not CompressionType.ZSTD]


def messages_in(records: bytes) -> list[Record]:
    for pos, header in iter_batches(records):
        assert verify_crc(records, pos, header)
        if header.is_compressed:
            assert all(right for _, right in inner_checksums(records, pos))
    return records_in(records)


def sets_in(converted: Converted) -> int:
    return sum(1 for _ in iter_batches(converted.records))


def batch(count: int, codec: CompressionType, *, size: int = 30, base_offset: int = 50) -> bytes:
    rows = [(1000 + i, b"%d" % i, bytes([i % 251]) * size, ()) for i in range(count)]
    return build_batch(rows, base_offset=base_offset, codec=codec)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_a_reader_that_asks_again_gets_every_record_once(
    codec: CompressionType, magic: int
) -> None:
    count = 4_000
    data = batch(count, codec, size=100)
    found: list[Record] = []
    offset, asked = 50, 0
    while offset < 50 + count:
        converted = down_convert(data, magic, first_offset=offset, limit=30_000)
        new = [message for message in messages_in(converted.records) if message.offset >= offset]
        found += new
        offset = new[-1].offset + 1
        asked += 1
    assert [(m.offset, m.key) for m in found] == [(50 + i, b"%d" % i) for i in range(count)]
    assert all(m.timestamp == (1000 + m.offset - 50 if magic else -1) for m in found)
    assert asked > 1 or codec  # it was cut


def test_an_uncompressed_answer_is_cut_between_two_messages() -> None:
    data = batch(100, CompressionType.NONE)
    whole = down_convert(data, 1)
    some = down_convert(data, 1, limit=len(whole.records) // 2)
    assert whole.records.startswith(some.records)
    assert len(some.records) <= len(whole.records) // 2
    assert some.messages == len(messages_in(some.records)) > 40


def test_at_least_one_message_is_given() -> None:
    one = down_convert(batch(5, CompressionType.NONE), 1, limit=1)
    assert [message.offset for message in messages_in(one.records)] == [50]
    wrapper = down_convert(batch(5, CompressionType.GZIP), 1, limit=1)
    assert len(messages_in(wrapper.records)) == 5


def test_the_front_is_given_before_what_cannot_be_read() -> None:
    zstd = batch(3, CompressionType.ZSTD, base_offset=53)
    converted = down_convert(batch(3, CompressionType.GZIP) + zstd, 1)
    assert [message.offset for message in messages_in(converted.records)] == [50, 51, 52]
    with pytest.raises(UnsupportedCompression):
        down_convert(zstd, 1)


def test_a_large_compressed_batch_becomes_several_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(down_conversion, "WRAPPER", 10_000)
    data = batch(1000, CompressionType.GZIP)
    converted = down_convert(data, 1)
    assert sets_in(converted) > 5
    assert [message.offset for message in messages_in(converted.records)] == list(range(50, 1050))
    assert converted.read == len(data)


def test_messages_that_compress_to_nothing_are_limited_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(down_conversion, "WORK", 1 << 20)
    monkeypatch.setattr(down_conversion, "WRAPPER", 100_000)
    rows = [(0, None, bytes(50_000), ())] * 200
    data = build_batch(rows, codec=CompressionType.GZIP)
    converted = down_convert(data, 1, limit=8 << 20)
    assert 1 <= converted.messages < 30  # of 200: 1 MiB read and written


def test_an_answer_without_messages_says_how_far_it_looked() -> None:
    data = batch(3, CompressionType.NONE)
    assert down_convert(data + data[:40], 1, first_offset=53) == Converted(b"", 0, len(data))
    assert down_convert(data[:40], 1) == Converted(b"", 0, 0)


@pytest.mark.parametrize("at", [0, 0.9], ids=["from the start", "from far inside"])
def test_a_large_batch_takes_the_memory_of_the_answer(
    at: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(down_conversion, "WORK", 1 << 20)
    count = 300
    data = build_batch([(0, None, bytes(100_000), ())] * count, codec=CompressionType.GZIP)
    tracemalloc.start()
    try:
        converted = down_convert(data, 1, first_offset=int(at * count), limit=1 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0 < converted.messages < count / 2
    assert peak < 8 << 20, peak  # all the messages have 30 MB
