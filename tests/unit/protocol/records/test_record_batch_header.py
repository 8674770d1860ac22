"""Batch headers: reading, walking, patching in place."""

import struct

import pytest

from protocol.records.batch import (
    BATCH_OVERHEAD,
    DELETE_HORIZON_BIT,
    BatchHeader,
    TimestampType,
    crc_of,
    iter_batches,
    read_header,
    set_log_append_time,
    set_max_timestamp,
    set_place,
    verify_crc,
)
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.errors import CorruptBatch, UnsupportedCompression
from protocol.records.message_set import build_message_set
from protocol.records.record import iter_records

ROWS = [(1000, b"k", b"v", ()), (1005, None, b"w", [("h", b"x")]), (990, b"z", None, ())]


def test_every_field_and_property_of_a_header() -> None:
    batch = build_batch(
        ROWS,
        base_offset=40,
        codec=CompressionType.LZ4,
        producer_id=9,
        producer_epoch=2,
        base_sequence=2147483646,
        transactional=True,
        leader_epoch=6,
    )
    header = read_header(b"junk" + batch, 4)
    assert (header.base_offset, header.last_offset, header.next_offset) == (40, 42, 43)
    assert (header.size, header.magic, header.partition_leader_epoch) == (len(batch), 2, 6)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1005)
    assert (header.producer_id, header.producer_epoch) == (9, 2)
    assert (header.base_sequence, header.last_sequence) == (2147483646, 0)  # wraps
    assert header.record_count == 3
    assert header.codec is CompressionType.LZ4
    assert header.is_compressed
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert (header.is_transactional, header.is_control) == (True, False)
    assert header == read_header(batch)
    assert "base_offset=40" in repr(header)


def test_a_header_without_producer() -> None:
    header = read_header(build_batch(ROWS))
    assert (header.producer_id, header.last_sequence) == (-1, -1)
    assert header != 5


def test_an_unknown_codec_is_named_only_when_asked() -> None:
    batch = bytearray(build_batch(ROWS))
    batch[22] |= 6
    header = read_header(batch)
    assert header.is_compressed
    with pytest.raises(UnsupportedCompression):
        _ = header.codec
    with pytest.raises(UnsupportedCompression):
        list(iter_records(batch))


@pytest.mark.parametrize("cut", [0, 10, 16, 17, 40, 60])
def test_a_cut_header_is_corrupt(cut: int) -> None:
    with pytest.raises(CorruptBatch):
        read_header(build_batch(ROWS)[:cut])


@pytest.mark.parametrize("magic", [3, 7, 127, 128, 255])
def test_an_unknown_magic_is_corrupt(magic: int) -> None:
    batch = bytearray(build_batch(ROWS))
    batch[16] = magic
    for call in (read_header, lambda data: list(iter_batches(data))):
        with pytest.raises(CorruptBatch, match="magic"):
            call(batch)


@pytest.mark.parametrize("length", [-1, 0, 13, 48, -(2**31)])
def test_a_nonsense_size_is_corrupt(length: int) -> None:
    batch = bytearray(build_batch(ROWS))
    struct.pack_into(">i", batch, 8, length)
    for call in (read_header, lambda data: list(iter_batches(data))):
        with pytest.raises(CorruptBatch):
            call(batch)


def test_walking_batches_stops_silently_at_a_partial_one() -> None:
    """S-APP-6: a partial batch at the end is no error, whatever of it is there."""
    first = build_batch(ROWS)
    second = build_batch(ROWS[:1], base_offset=3)
    both = first + second
    assert [pos for pos, _ in iter_batches(both)] == [0, len(first)]
    for cut in range(len(first), len(both)):
        assert [pos for pos, _ in iter_batches(both[:cut])] == [0]
        assert [pos for pos, _ in iter_batches(memoryview(both), 0, cut)] == [0]
    assert [header.base_offset for _, header in iter_batches(both, len(first))] == [3]
    assert list(iter_batches(b"")) == []


def test_s_app_2_any_flipped_bit_behind_the_crc_is_noticed() -> None:
    batch = build_batch(ROWS)
    header = read_header(batch)
    assert verify_crc(batch, 0, header)
    assert crc_of(batch, 0, len(batch)) == header.crc
    for at in (21, 22, 30, 61, len(batch) - 1):
        damaged = bytearray(batch)
        damaged[at] ^= 1
        assert not verify_crc(damaged, 0, header)
    assert not verify_crc(batch[:-1], 0, header)


def test_offset_and_epoch_change_without_a_new_crc() -> None:
    batch = bytearray(b"ab" + build_batch(ROWS))
    before = bytes(batch)
    header = read_header(batch, 2)
    set_place(memoryview(batch)[2:], header, 2**40, 17)
    assert header == read_header(batch, 2)
    assert (header.base_offset, header.partition_leader_epoch) == (2**40, 17)
    assert verify_crc(batch, 2, header)
    assert batch[2 + 16 :] == before[2 + 16 :]
    assert batch[:2] == b"ab"
    assert batch[10:14] == before[10:14]


def test_s_app_4_log_append_time_marks_the_batch_and_leaves_records_alone() -> None:
    batch = bytearray(build_batch(ROWS))
    before = bytes(batch)
    header = read_header(batch)
    set_log_append_time(batch, 0, header, 5_000_000)
    assert header == read_header(batch)
    assert verify_crc(batch, 0, header)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (header.base_timestamp, header.max_timestamp) == (1000, 5_000_000)
    assert batch[BATCH_OVERHEAD:] == before[BATCH_OVERHEAD:]
    assert [record.timestamp for record in iter_records(batch)] == [5_000_000] * 3
    crc = header.crc
    set_log_append_time(batch, 0, header, 5_000_000)
    assert header.crc == crc


def test_s_fmt_4_unknown_attribute_bits_survive_a_patch() -> None:
    batch = bytearray(build_batch(ROWS))
    struct.pack_into(">h", batch, 21, 0x7F40)
    header = read_header(batch)
    assert header.attributes & DELETE_HORIZON_BIT
    set_max_timestamp(batch, 0, header, TimestampType.LOG_APPEND_TIME, 9)
    assert header.attributes == 0x7F48
    set_max_timestamp(batch, 0, header, TimestampType.CREATE_TIME, 9)
    assert header.attributes == 0x7F40
    assert verify_crc(batch, 0, read_header(batch))


def test_legacy_messages_look_like_batches_of_their_own() -> None:
    rows = [(7, 100, b"k", b"v"), (8, 101, None, b"w"), (11, 90, b"z", None)]
    plain = build_message_set(rows, magic=1)
    assert [(h.base_offset, h.last_offset, h.magic) for _, h in iter_batches(plain)] == [
        (7, 7, 1),
        (8, 8, 1),
        (11, 11, 1),
    ]
    wrapped = build_message_set(rows, magic=1, codec=CompressionType.GZIP)
    ((pos, header),) = iter_batches(wrapped)
    assert (header.base_offset, header.last_offset, header.record_count) == (7, 11, 3)
    assert header.max_timestamp == 101
    assert (header.producer_id, header.base_sequence, header.partition_leader_epoch) == (-1, -1, -1)
    assert header.size == len(wrapped)
    assert verify_crc(wrapped, pos, header)
    assert not verify_crc(wrapped[:-1] + b"\xff", pos, header)


def test_a_damaged_wrapper_is_judged_by_its_checksum_first() -> None:
    wrapped = bytearray(
        build_message_set([(7, 1, None, b"v" * 50)], magic=1, codec=CompressionType.GZIP)
    )
    wrapped[-10] ^= 0xFF
    ((pos, header),) = iter_batches(wrapped)
    assert isinstance(header, BatchHeader)
    assert not verify_crc(wrapped, pos, header)
