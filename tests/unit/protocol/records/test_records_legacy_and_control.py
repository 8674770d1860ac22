"""Message sets, up-conversion and control records: the rules beside the golden files."""

import struct
import zlib

import pytest

from protocol.records.batch import TimestampType, read_header, verify_crc
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType, compress
from protocol.records.control import (
    ControlType,
    build_end_transaction_marker,
    parse_control_type,
    parse_end_transaction_marker,
)
from protocol.records.down_conversion import down_convert
from protocol.records.errors import CorruptBatch, InvalidRecord, UnsupportedCompression
from protocol.records.message_set import build_message_set, encode_message
from protocol.records.record import iter_records
from tests.support.message_sets import records_in, up_converted

ROWS = [(0, 100, b"k", b"v"), (1, 90, None, b"w"), (2, 120, b"", None)]
OLD_CODECS = [codec for codec in CompressionType if codec is not CompressionType.ZSTD]


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_s_app_7_old_sets_become_one_batch(magic: int, codec: CompressionType) -> None:
    batch = up_converted(build_message_set(ROWS, magic=magic, codec=codec))
    header = read_header(batch)
    assert verify_crc(batch, 0, header)
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (0, 2, -1)
    assert header.codec is codec
    assert header.max_timestamp == (120 if magic else -1)
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in iter_records(batch)] == [
        (offset, stamp if magic else -1, key, value, []) for offset, stamp, key, value in ROWS
    ]


def test_up_conversion_drops_a_partial_tail_and_wants_one_whole_message() -> None:
    messages = build_message_set(ROWS, magic=1)
    assert read_header(up_converted(messages[:-1])).record_count == 2
    with pytest.raises(InvalidRecord):
        up_converted(messages[:20])


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_s_app_2_a_wrong_crc_is_corrupt(codec: CompressionType) -> None:
    messages = bytearray(build_message_set(ROWS, magic=1, codec=codec))
    messages[-1] ^= 1
    with pytest.raises(CorruptBatch):
        up_converted(bytes(messages))


def test_a_wrong_inner_crc_is_corrupt_for_the_leader_and_unseen_by_readers() -> None:
    inner = bytearray(build_message_set(ROWS, magic=1))
    inner[-1] ^= 1
    packed = compress(CompressionType.GZIP, inner, magic=1)
    wrapper = encode_message(1, 2, 5, None, packed, CompressionType.GZIP)
    with pytest.raises(CorruptBatch):
        up_converted(wrapper)
    assert len(list(iter_records(wrapper))) == 3


@pytest.mark.parametrize(
    "inner",
    [
        b"",
        build_message_set(ROWS, magic=0),
        build_message_set(ROWS, magic=1, codec=CompressionType.GZIP),
    ],
    ids=["empty", "another magic", "nested"],
)
def test_wrong_wrappers_are_invalid(inner: bytes) -> None:
    packed = compress(CompressionType.GZIP, inner, magic=1)
    wrapper = encode_message(1, 2, 5, None, packed, CompressionType.GZIP)
    with pytest.raises(InvalidRecord):
        list(iter_records(wrapper))


def test_more_wrong_wrappers() -> None:
    three = compress(
        CompressionType.GZIP, build_message_set([(i, 0, b"", b"") for i in range(3)], magic=1)
    )
    for wrapper in (
        encode_message(1, 1, 5, None, three, CompressionType.GZIP),  # last inner offset is 2
        encode_message(1, 2, 5, None, None, CompressionType.GZIP),
        encode_message(1, 2, 5, None, b"junk", CompressionType.GZIP),
        encode_message(1, 2, 5, None, b"junk", CompressionType.ZSTD),
    ):
        with pytest.raises(InvalidRecord):
            list(iter_records(wrapper))
    with pytest.raises(UnsupportedCompression):
        list(iter_records(encode_message(1, 2, 5, None, b"junk", 6)))
    from_librdkafka = encode_message(1, 0, 5, None, three, CompressionType.GZIP)
    assert [record.offset for record in iter_records(from_librdkafka)] == [0, 1, 2]


def test_lying_field_lengths_in_a_message() -> None:
    for key_length in (1000, 2**31 - 1):
        body = struct.pack(">BBqi", 1, 0, 5, key_length) + b"abcdefgh"
        data = struct.pack(">qiI", 0, 4 + len(body), zlib.crc32(body)) + body
        with pytest.raises(InvalidRecord):
            list(iter_records(data))


def test_down_conversion_skips_control_batches_and_headers() -> None:
    data = build_batch([(5, b"k", b"v", [("h", b"x")])], base_offset=3)
    marker = build_end_transaction_marker(
        ControlType.COMMIT,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=9,
        base_offset=4,
    )
    old = build_message_set([(5, 6, b"o", b"p")], magic=0)
    converted = down_convert(data + marker + old + data[:30], 1).records
    assert [
        (r.offset, r.timestamp, r.key, r.value) for r in records_in(converted[: -len(old)])
    ] == [(3, 5, b"k", b"v")]
    assert converted.endswith(old)


def test_control_record_keys() -> None:
    assert parse_control_type(b"\0\0\0\1") is ControlType.COMMIT
    assert parse_control_type(b"\0\5\0\2more") is ControlType.LEADER_CHANGE
    assert parse_control_type(b"\0\0\0\x63") is ControlType.UNKNOWN
    for key in (None, b"", b"\0\0\0", b"\xff\xff\0\1"):
        with pytest.raises(InvalidRecord):
            parse_control_type(key)


def test_end_transaction_marker_values() -> None:
    for key, value in (
        (b"\0\0\0\2", b"\0" * 6),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0" * 5),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\1"),
    ):
        with pytest.raises(InvalidRecord):
            parse_end_transaction_marker(key, value)
    later = parse_end_transaction_marker(b"\0\0\0\1", b"\0\1\0\0\0\7tagged")
    assert later.coordinator_epoch == 7
    with pytest.raises(ValueError, match="does not end"):
        build_end_transaction_marker(
            ControlType.LEADER_CHANGE,
            producer_id=1,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=0,
        )


def test_builders_want_what_they_need() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])
    with pytest.raises(ValueError, match="log_append_time"):
        build_batch([(0, None, None, ())], timestamp_type=TimestampType.LOG_APPEND_TIME)
    with pytest.raises(ValueError, match="log_append_time"):
        build_message_set(ROWS, magic=1, timestamp_type=TimestampType.LOG_APPEND_TIME)
    with pytest.raises(UnsupportedCompression):
        build_message_set(ROWS, magic=1, codec=CompressionType.ZSTD)
    assert build_message_set([], magic=1) == b""


def test_header_names_that_are_not_utf_8_survive() -> None:
    batch = bytearray(build_batch([(0, b"k", b"v", [("name", b"x")])]))
    batch[batch.index(b"name")] = 0xFF
    (record,) = iter_records(batch)
    again = build_batch([(0, b"k", b"v", record.headers)])
    assert again[61:] == batch[61:]
