"""Appending as leader and follower (S-APP-1 to S-APP-13)."""

import errno
import re

import pytest

from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CRC_OFFSET, crc_of, read_header
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.records.record import iter_records
from storage.errors import StorageError
from storage.log.following import OffsetsOutOfOrder, UnexpectedAppendOffset
from storage.log.results import AppendOrigin, FetchIsolation
from storage.log.validation import IN_WRITER_FROM, RejectedRecords
from tests.support.log_builder import LogBuilder
from tests.support.time_lookups import offset_for_timestamp


def refused(built: LogBuilder, data: bytes, **options: object) -> RejectedRecords:
    before = built.log.log_end_offset
    with pytest.raises(RejectedRecords) as caught:
        built.log.append_as_leader(data, leader_epoch=0, **options)
    assert built.log.log_end_offset == before
    assert not built.log.read(before, 100, FetchIsolation.LOG_END).records
    return caught.value


def patched(data: bytes, position: int, value: bytes) -> bytes:
    """`data` with other header bytes and a checksum that fits."""
    out = bytearray(data)
    out[position : position + len(value)] = value
    out[CRC_OFFSET : CRC_OFFSET + 4] = crc_of(out, 0, len(out)).to_bytes(4, "big")
    return bytes(out)


def test_s_app_12_offsets_start_at_zero_and_rejected_batches_take_none() -> None:
    built = LogBuilder()
    assert (built.append(3).first_offset, built.append(2).first_offset) == (0, 3)
    refused(built, build_batch([(0, None, b"x", ())], base_offset=9))
    assert built.append().first_offset == 5
    marker = build_end_transaction_marker(
        ControlType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=1
    )
    built.log.append_as_leader(marker, leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    assert built.append().first_offset == 7


@pytest.mark.parametrize(
    ("position", "value", "said"),
    [
        (0, (5).to_bytes(8, "big"), "should be 0, but it is 5"),
        (57, (0).to_bytes(4, "big"), "Invalid reported count for record batch: 0"),
        (57, (-1).to_bytes(4, "big", signed=True), "Invalid reported count for record batch: -1"),
        (57, (3).to_bytes(4, "big"), r"Inconsistent batch offset range \[0, 1\] and count .* 3"),
        (57, (1).to_bytes(4, "big"), r"Inconsistent batch offset range \[0, 1\] and count .* 1"),
        (23, (-1).to_bytes(4, "big", signed=True), r"invalid offset range: \[0, -1\]"),
        (21, (0x20).to_bytes(2, "big"), "not allowed to write control records"),
        (43, (7).to_bytes(8, "big"), "sequence"),
    ],
)
def test_s_app_1_a_header_that_contradicts_itself_is_an_invalid_record(
    position: int, value: bytes, said: str
) -> None:
    built = LogBuilder()
    error = refused(built, patched(built.batch(2), position, value))
    assert error.code is ErrorCode.INVALID_RECORD
    assert re.search(said, str(error))


def test_s_app_1_one_batch_per_partition() -> None:
    built = LogBuilder()
    assert refused(built, built.batch() + built.batch()).code is ErrorCode.INVALID_RECORD
    assert refused(built, b"").code is ErrorCode.INVALID_RECORD
    assert refused(built, built.batch()[:40]).code is ErrorCode.INVALID_RECORD


def test_more_records_than_fit_are_an_invalid_record() -> None:
    built = LogBuilder()
    many = (1_000_000).to_bytes(4, "big")
    data = patched(built.batch(), 57, many)
    data = patched(data, 23, (999_999).to_bytes(4, "big"))
    assert refused(built, data).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("size", [10, IN_WRITER_FROM * 2])
@pytest.mark.parametrize("sequence", [-1, 0, 17], ids=["plain", "sent before", "out of order"])
def test_s_app_2_bad_crc_is_corrupt_message_whatever_the_sequence(sequence: int, size: int) -> None:
    built = LogBuilder(max_message_bytes=4 * IN_WRITER_FROM)
    producer = {} if sequence < 0 else {"producer_id": 5, "producer_epoch": 0}
    built.append(value=b"x" * size, base_sequence=min(sequence, 0), **producer)
    data = built.batch(value=b"x" * size, base_sequence=sequence, **producer)
    data[-2] ^= 1
    assert refused(built, data).code is ErrorCode.CORRUPT_MESSAGE
    assert built.append().first_offset == 1


@pytest.mark.parametrize("magic", [3, 0x7F, 0xFF])
def test_s_app_2_unknown_magic_is_corrupt_message(magic: int) -> None:
    built = LogBuilder()
    data = built.batch()
    data[16] = magic
    assert refused(built, data).code is ErrorCode.CORRUPT_MESSAGE


def test_s_app_2_batch_size_is_measured_with_its_overhead() -> None:
    data = LogBuilder().batch()
    built = LogBuilder(max_message_bytes=len(data))
    built.log.append_as_leader(bytes(data), leader_epoch=0)
    built.log.update_config(TopicConfig(max_message_bytes=len(data) - 1))
    assert refused(built, data).code is ErrorCode.MESSAGE_TOO_LARGE


def test_s_app_2_recompression_is_measured_again() -> None:
    built = LogBuilder(compression_type="uncompressed", max_message_bytes=500)
    data = built.batch(value=bytes(2000), codec=CompressionType.GZIP)
    assert len(data) < 500
    assert refused(built, data).code is ErrorCode.MESSAGE_TOO_LARGE


def test_s_app_2_batch_larger_than_a_segment() -> None:
    built = LogBuilder(segment_bytes=100)
    assert refused(built, built.batch(9)).code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_s_app_3_records_without_key_in_a_compacted_topic_are_named_by_index() -> None:
    built = LogBuilder(cleanup_policy=frozenset({"compact"}))
    now = built.clock.wall_ms()
    records = [(now, key, b"v", ()) for key in (b"a", None, b"", None)]
    error = refused(built, build_batch(records))
    assert error.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [1, 3]
    built.append(3)


@pytest.mark.parametrize("codec", list(CompressionType))
def test_s_app_4_times_out_of_range_are_named_by_index(codec: CompressionType) -> None:
    built = LogBuilder(message_timestamp_before_max_ms=10_000, message_timestamp_after_max_ms=1000)
    now = built.clock.wall_ms()
    stamps = [now, now + 1000, now + 1001, now - 10_000, now - 10_001, -1]
    error = refused(built, build_batch([(s, b"", b"", ()) for s in stamps], codec=codec))
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [2, 4]
    built.append_dated(now, -1, codec=codec)


def test_s_app_4_default_bound_is_an_hour_ahead() -> None:
    built = LogBuilder()
    now = built.clock.wall_ms()
    built.append_dated(now + 3_600_000)
    error = refused(built, build_batch([(now + 3_600_001, b"", b"", ())]))
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0]


def test_s_app_4_no_timestamp_is_accepted() -> None:
    info = LogBuilder().append_dated(-1, -1)
    assert info.max_timestamp == -1


@pytest.mark.parametrize("topic_type", ["CreateTime", "LogAppendTime"])
def test_s_app_4_client_must_not_claim_log_append_time(topic_type: str) -> None:
    built = LogBuilder(message_timestamp_type=topic_type)
    data = patched(built.batch(), 21, (0x08).to_bytes(2, "big"))
    assert refused(built, data).code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("target", ["producer", "lz4"])
def test_s_app_4_log_append_time_stamps_the_batch(target: str) -> None:
    built = LogBuilder(message_timestamp_type="LogAppendTime", compression_type=target)
    old = built.clock.wall_ms() - 10**9
    info = built.append_dated(old, old + 5)
    now = built.clock.wall_ms()
    assert info.log_append_time == info.max_timestamp == now
    assert info.offset_of_max_timestamp == info.last_offset == 1
    assert [record.timestamp for record in built.records()] == [now, now]
    stored = read_header(built.log.read(0, 1000).records.read())
    assert stored.base_timestamp == old
    assert built.append_dated(old).log_append_time == now


def test_create_time_reports_no_log_append_time() -> None:
    assert LogBuilder().append().log_append_time == -1


def test_s_app_5_producer_keeps_the_payload() -> None:
    built = LogBuilder()
    data = built.batch(3, codec=CompressionType.LZ4)
    sent = bytes(data[61:])
    built.log.append_as_leader(data, leader_epoch=7)
    stored = built.log.read(0, 1000, FetchIsolation.LOG_END).records.read()
    assert stored[61:] == sent
    header = read_header(stored)
    assert (header.base_offset, header.partition_leader_epoch) == (0, 7)


@pytest.mark.parametrize("sent", list(CompressionType))
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_s_app_5_other_codecs_are_recompressed(sent: CompressionType, target: str) -> None:
    built = LogBuilder(compression_type=target)
    built.append(1)
    info = built.append(
        20, value=b"value" * 9, codec=sent, producer_id=4, producer_epoch=0, base_sequence=0
    )
    assert (info.first_offset, info.last_offset) == (1, 20)
    stored = built.log.read(1, 10_000).records.read()
    header = read_header(stored)
    wanted = "none" if target == "uncompressed" else target
    assert CompressionType.name_of(header.attributes & 7) == wanted
    assert (header.producer_id, header.base_sequence, header.record_count) == (4, 0, 20)
    assert [record.value for record in iter_records(stored)] == [b"value" * 9] * 20
    built.log._check()


def test_s_app_5_control_batches_are_never_recompressed() -> None:
    built = LogBuilder(compression_type="gzip")
    marker = build_end_transaction_marker(
        ControlType.ABORT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=1
    )
    built.log.append_as_leader(marker, leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    stored = built.log.read(0, 1000, FetchIsolation.LOG_END).records.read()
    assert stored[61:] == marker[61:]


def test_s_app_6_a_torn_tail_is_trimmed_silently() -> None:
    built = LogBuilder()
    data = built.batch(2)
    info = built.log.append_as_leader(data + built.batch()[:30], leader_epoch=0)
    assert (info.last_offset, info.valid_bytes) == (1, len(data))
    assert built.log.size == len(data)
    tiny = built.log.append_as_leader(built.batch() + b"\x00" * 5, leader_epoch=0)
    assert tiny.last_offset == 2
    torn = built.log.append_as_leader(built.batch()[:50], leader_epoch=0, request_version=2)
    assert (torn.first_offset, torn.valid_bytes) == (-1, 0)
    assert built.log.log_end_offset == 3


@pytest.mark.parametrize("length", [-5, 0, 13])
def test_s_app_6_senseless_length_is_corrupt(length: int) -> None:
    built = LogBuilder()
    data = built.batch()
    data[8:12] = length.to_bytes(4, "big", signed=True)
    assert refused(built, data).code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_s_app_7_old_message_sets_are_stored_in_format_2(
    magic: int, codec: CompressionType
) -> None:
    from kafka.record.legacy_records import LegacyRecordBatchBuilder

    built = LogBuilder()
    built.append()
    now = built.clock.wall_ms()
    old = LegacyRecordBatchBuilder(magic=magic, compression_type=int(codec), batch_size=10_000)
    for at in range(3):
        old.append(at, timestamp=now + at, key=b"k", value=b"v%d" % at)
    data = bytes(old.build())
    info = built.log.append_as_leader(data, leader_epoch=0, request_version=2)
    assert (info.first_offset, info.last_offset) == (1, 3)
    records = built.records(1)
    assert [record.value for record in records] == [b"v0", b"v1", b"v2"]
    assert [record.offset for record in records] == [1, 2, 3]
    expected = -1 if magic == 0 else now
    assert records[0].timestamp == expected
    stored = read_header(built.log.read(1, 1000, FetchIsolation.LOG_END).records.read())
    assert stored.magic == 2
    assert stored.codec is codec
    assert refused(built, data, request_version=3).code is ErrorCode.INVALID_RECORD
    broken = bytearray(data)
    broken[-1] ^= 1
    assert refused(built, bytes(broken), request_version=1).code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("version", [3, 6])
def test_s_app_7_zstd_needs_produce_7(version: int) -> None:
    built = LogBuilder()
    data = built.batch(codec=CompressionType.ZSTD)
    error = refused(built, bytes(data), request_version=version)
    assert error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    built.log.append_as_leader(data, leader_epoch=0, request_version=7)


def test_an_unknown_codec_is_refused() -> None:
    built = LogBuilder()
    data = patched(built.batch(), 21, (5).to_bytes(2, "big"))
    assert refused(built, data).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_s_app_9_follower_keeps_offsets_and_epochs() -> None:
    built = LogBuilder()
    data = built.batch(2, base_offset=10, leader_epoch=3) + built.batch(
        3, base_offset=20, leader_epoch=4, codec=CompressionType.LZ4
    )
    info = built.log.appender.append_as_follower(bytes(data))
    assert (info.first_offset, info.last_offset, info.record_count) == (10, 22, 5)
    assert [record.offset for record in built.records()] == [10, 11, 20, 21, 22]
    assert built.log.leader_epochs.entries == [(3, 10), (4, 20)]
    assert built.log.log_end_offset == 23


def test_s_app_9_follower_refuses_what_does_not_grow() -> None:
    built = LogBuilder()
    built.append(5)
    with pytest.raises(UnexpectedAppendOffset) as caught:
        built.log.appender.append_as_follower(bytes(built.batch(2, base_offset=3)))
    assert (caught.value.first_offset, caught.value.last_offset) == (3, 4)
    with pytest.raises(OffsetsOutOfOrder):
        built.log.appender.append_as_follower(
            bytes(built.batch(2, base_offset=9) + built.batch(2, base_offset=7))
        )
    for base, count in ((5, 1), (5, 2), (9, 1)):
        twice = bytes(built.batch(count, base_offset=base)) * 2
        with pytest.raises(OffsetsOutOfOrder):
            built.log.appender.append_as_follower(twice)
    damaged = built.batch(2, base_offset=9)
    damaged[-1] ^= 1
    with pytest.raises(KafkaError) as corrupt:
        built.log.appender.append_as_follower(bytes(damaged))
    assert corrupt.value.code is ErrorCode.CORRUPT_MESSAGE
    assert built.log.appender.append_as_follower(b"").first_offset == -1
    assert built.log.log_end_offset == 5
    with pytest.raises(UnexpectedAppendOffset):
        built.log.appender.append_as_follower(bytes(built.batch(1, base_offset=4)))
    assert (
        built.log.appender.append_as_follower(bytes(built.batch(1, base_offset=5))).last_offset == 5
    )


def test_s_app_10_duplicates_are_answered_as_the_first_time() -> None:
    built = LogBuilder()
    fields = {"producer_id": 3, "producer_epoch": 0}
    first = built.append(4, base_sequence=0, **fields)
    stamp = built.clock.wall_ms()
    built.append(2, base_sequence=4, **fields)
    size = built.log.size
    built.clock.advance(5)
    again = built.log.append_as_leader(
        build_batch([(stamp, b"k", b"v", ())] * 4, base_sequence=0, **fields), leader_epoch=0
    )
    assert again.duplicate
    assert (again.first_offset, again.last_offset) == (first.first_offset, first.last_offset)
    assert again.log_append_time == stamp
    assert (built.log.size, built.log.log_end_offset) == (size, 6)
    with pytest.raises(KafkaError) as caught:
        built.append(1, base_sequence=9, **fields)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_s_app_13_the_size_is_checked_before_the_roll_and_that_before_the_producer() -> None:
    fields = {"producer_id": 3, "producer_epoch": 0}
    built = LogBuilder(segment_bytes=200)
    built.append(1, base_sequence=0, **fields)
    assert len(built.log.segments) == 1
    refused(built, build_batch([(0, None, b"x" * 300, ())]))
    assert len(built.log.segments) == 1
    size = len(built.batch(1, base_sequence=0, **fields))
    while built.log.size + size <= 200:
        built.append()
    again = built.append(1, base_sequence=0, **fields)
    assert again.duplicate
    assert len(built.log.segments) == 2


def test_read_only_bytes_are_copied_and_writable_ones_patched() -> None:
    built = LogBuilder()
    built.append(5)
    fixed = bytes(built.batch())
    before = bytes(fixed)
    built.log.append_as_leader(fixed, leader_epoch=1)
    assert fixed == before
    buffer = built.batch()
    built.log.append_as_leader(memoryview(buffer), leader_epoch=1)
    assert read_header(buffer).base_offset == 6
    assert [record.offset for record in built.records()] == list(range(7))


def test_s_app_13_a_pending_append_is_invisible_until_it_is_complete() -> None:
    built = LogBuilder()
    built.append()
    pending = built.log.appender.begin_append(built.batch(2), leader_epoch=0)
    pending.write()
    assert built.log.log_end_offset == 1
    assert len(built.records()) == 1
    with pytest.raises(RuntimeError):
        built.log.appender.begin_append(built.batch(), leader_epoch=0)
    assert built.log.delete_old_segments() == []
    assert built.log.appender.complete_append(pending).last_offset == 2
    assert len(built.records()) == 3


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_s_rec_11_a_failed_write_is_a_storage_error_and_never_visible(code: int) -> None:
    built = LogBuilder()
    built.append(2)
    reported = []
    built.log.connect(
        failed=lambda directory, error: reported.append((directory, error.errno)),
        rolled=lambda log, offset: None,
    )
    built.fs.fail("pwrite", "*.log", errno=code, partial=30)
    with pytest.raises(StorageError) as caught:
        built.log.append_as_leader(built.batch(3), leader_epoch=0)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert reported == [("/logs/t-0", code)]
    assert built.log.log_end_offset == 2
    assert len(built.records()) == 2
    built.fs.heal()
    assert len(LogBuilder.killed(built).segments) == 1
    assert [record.offset for record in built.records()] == [0, 1]
    assert built.append().first_offset == 2


def test_s_rec_11_an_offline_log_refuses_everything() -> None:
    built = LogBuilder()
    built.append(2)
    built.log.take_offline(OSError(errno.EIO, "gone"))
    for action in (
        lambda: built.append(),
        lambda: built.log.read(0, 100),
        lambda: built.log.roll(),
        lambda: built.log.truncate_to(0),
        lambda: offset_for_timestamp(built.log, 0),
    ):
        with pytest.raises(StorageError):
            action()


def test_epochs_are_remembered_where_they_begin() -> None:
    built = LogBuilder()
    for epoch, count in ((0, 2), (0, 1), (3, 1), (5, 2)):
        built.log.append_as_leader(built.batch(count), leader_epoch=epoch)
    assert built.log.leader_epochs.entries == [(0, 0), (3, 3), (5, 4)]
    assert built.log.leader_epochs.end_offset_for(3, built.log.log_end_offset) == (3, 4)


def test_flush_messages_syncs_by_count() -> None:
    built = LogBuilder(flush_messages=5)
    built.append(4)
    assert built.log.recovery_point == 0
    built.append(1)
    assert built.log.recovery_point == 5


@pytest.mark.parametrize("size", [4, 8, 12, 23, 24])
def test_an_index_without_room_for_an_entry_makes_short_segments(size: int) -> None:
    built = LogBuilder(segment_index_bytes=size, index_interval_bytes=0)
    for _ in range(9):
        built.append(1)
    assert built.log.log_end_offset == 9
    assert [record.offset for record in built.records()] == list(range(9))
    assert 2 <= len(built.log.segments) <= 9
    built.log._check()
    again = built.killed()
    assert again.log_end_offset == 9
    again._check()
