"""Batches are held against their records before they are stored (Kafka's LogValidator)."""

import os
import pickle
import struct
import sys
import tracemalloc

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import crc_of, read_header, verify_crc
from protocol.records.builder import assemble_batch, build_batch, encode_record
from protocol.records.compression import ZSTD_MODULE, CompressionType, compress, zstd_library
from protocol.records.effort import Effort
from protocol.records.message_set import build_message_set
from protocol.records.varint import encode_varint, read_varint
from storage.append_origin import AppendOrigin
from storage.log.opening import Opened, Opening, RejectedRecords, TopicRules
from storage.log.results import AppendInfo, FetchIsolation, FileSlice
from storage.log.validation import IN_WRITER_FROM, IN_WRITER_MOST_RECORDS
from tests.support.log_builder import LogBuilder
from tests.support.time_lookups import offset_for_timestamp

zstd_library()  # loaded, as after the first batch
CODECS = list(CompressionType)
COMPRESSED = [codec for codec in CODECS if codec]
SIZES = [10, IN_WRITER_FROM]
"""Looked at in `prepare`, and by the writer."""
ROOM = 2 * IN_WRITER_FROM
"""`max.message.bytes` for both."""


def packed(payload: bytes, count: int, codec: int = 0, **fields: int) -> bytearray:
    values = {"base_timestamp": 0, "max_timestamp": 0, "last_offset_delta": count - 1, **fields}
    return bytearray(
        assemble_batch(
            compress(CompressionType(codec), payload),
            base_offset=0,
            record_count=count,
            attributes=codec,
            **values,
        )
    )


def refused(built: LogBuilder, data: bytes | bytearray, **how: object) -> KafkaError:
    before = built.log.log_end_offset, built.log.size
    with pytest.raises(KafkaError) as error:
        built.log.append_as_leader(data, leader_epoch=0, **how)  # type: ignore[arg-type]
    assert (built.log.log_end_offset, built.log.size) == before
    assert error.value.code is not ErrorCode.UNKNOWN_SERVER_ERROR
    return error.value


def record(delta: int = 0, value: bytes | None = b"v", time: int = 0) -> bytes:
    return encode_record(delta, time, b"k", value)


GOOD = record(0) + record(1)
NULL_NAME = b"\0\0\0\1\1\2\1\1"  # one header, its name null
BROKEN = {
    "records too many": (GOOD + record(2), 2),
    "records too few": (GOOD, 3),
    "bytes too many": (GOOD + b"\0", 2),
    "empty": (b"", 1),
    "garbage": (b"garbage garbage", 1),
    "a length too long": (b"\x7e" + GOOD[1:], 2),
    "a length too short": (bytes((GOOD[0] - 2,)) + GOOD[1:], 2),
    "a negative length": (b"\x01" + GOOD[1:], 2),
    "a null header name": (encode_varint(len(NULL_NAME)) + NULL_NAME, 1),
    "offset deltas that begin at 1": (record(1) + record(2), 2),
    "offset deltas that repeat": (record(0) + record(0), 2),
    "offset deltas that are turned": (record(1) + record(0), 2),
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("what", BROKEN)
def test_s_app_1_records_that_cannot_be_read_are_refused(what: str, codec: int) -> None:
    payload, count = BROKEN[what]
    built = LogBuilder()
    error = refused(built, packed(payload, count, codec))
    assert error.code is ErrorCode.INVALID_RECORD
    assert error.record_errors == []  # type: ignore[attr-defined]
    built.append()


@pytest.mark.parametrize("what", BROKEN)
def test_s_app_1_a_large_batch_is_refused_by_its_writer(what: str) -> None:
    payload, count = BROKEN[what]
    large = record(0, bytes(IN_WRITER_FROM))
    if what.startswith("offset deltas"):
        data = packed(large + record(0), 2)
    else:
        data = packed(large + payload, count + 1)
    built = LogBuilder(max_message_bytes=ROOM)
    assert refused(built, data).code is ErrorCode.INVALID_RECORD
    built.append()


@pytest.mark.parametrize("codec", COMPRESSED)
def test_s_app_1_streams_that_cannot_be_inflated_are_refused(codec: int) -> None:
    built = LogBuilder()
    whole = packed(GOOD * 50, 100, codec)
    for stream in (b"garbage", bytes(whole[61:-3]), b""):
        data = packed(b"", 100, 0)
        data[61:] = stream
        struct.pack_into(">i", data, 8, len(data) - 12)
        struct.pack_into(">h", data, 21, codec)
        struct.pack_into(">I", data, 17, crc_of(data, 0, len(data)))
        assert refused(built, data).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", CODECS)
def test_s_app_1_claimed_counts_begin_no_segments(codec: int) -> None:
    built = LogBuilder()
    for _ in range(50):
        refused(built, packed(record(), 2**31 - 1, codec))
    assert len(built.log.segments) == 1


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("claimed", [0, -1, 2**40])
def test_s_app_4_the_max_timestamp_is_corrected(codec: int, size: int, claimed: int) -> None:
    built = LogBuilder(message_timestamp_after_max_ms=2**63 - 1, max_message_bytes=ROOM)
    now = built.clock.wall_ms()
    payload = record(0, bytes(size)) + record(1, time=7) + record(2)
    data = packed(payload, 3, codec, base_timestamp=now, max_timestamp=claimed)
    info = built.log.append_as_leader(data, leader_epoch=0)
    read = built.log.read(0, 1 << 24, FetchIsolation.LOG_END).records
    stored = read.read() if isinstance(read, FileSlice) else bytes(read)
    header = read_header(stored)
    assert header.max_timestamp == info.max_timestamp == now + 7
    assert verify_crc(stored, 0, header)
    assert offset_for_timestamp(built.log, now + 7) is not None


def test_s_app_4_a_record_out_of_bounds_cannot_hide_behind_its_header() -> None:
    built = LogBuilder(max_message_bytes=ROOM)
    now = built.clock.wall_ms()
    late = 10**10
    for size in SIZES:
        payload = record(0, bytes(size)) + record(1, time=late)
        error = refused(built, packed(payload, 2, base_timestamp=now, max_timestamp=now))
        assert error.code is ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in error.record_errors] == [1]  # type: ignore[attr-defined]


def test_s_app_4_log_append_time_does_not_spare_the_look() -> None:
    built = LogBuilder(message_timestamp_type="LogAppendTime")
    assert refused(built, packed(GOOD, 3)).code is ErrorCode.INVALID_RECORD
    info = built.log.append_as_leader(packed(GOOD, 2), leader_epoch=0)
    assert info.log_append_time == info.max_timestamp == built.clock.wall_ms()


def test_s_idem_1_an_epoch_below_any_is_refused_with_a_producer_id() -> None:
    built = LogBuilder()
    producer = {"producer_id": 5, "base_sequence": 0}
    error = refused(built, built.batch(producer_epoch=-2, **producer))
    assert error.code is ErrorCode.INVALID_PRODUCER_EPOCH
    built.append(producer_epoch=0, **producer)


def test_coordinators_batches_are_not_opened() -> None:
    built = LogBuilder(cleanup_policy=frozenset({"compact"}))
    data = packed(b"", 1)
    built.log.append_as_leader(data, leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    assert built.log.log_end_offset == 1


# Appends with a small `Effort`.


def odd(count: int) -> bytes:
    return b"".join(record(at, bytes(at % 2)) for at in range(count))


TOO_MUCH = {
    "odd records": packed(odd(4000), 4000),
    "compressed": packed(record(0, bytes(300_000)), 1, CompressionType.ZSTD),
    "many in a large batch": packed(
        odd(IN_WRITER_MOST_RECORDS + 20_000), IN_WRITER_MOST_RECORDS + 20_000
    ),
    "large compressed": bytearray(
        build_batch([(0, None, bytes(range(256)) * 2000, ())], codec=CompressionType.SNAPPY)
    ),
    "old messages": bytearray(
        build_message_set(((at, 0, None, b"v") for at in range(2000)), magic=1)
    ),
}


def bounded(
    built: LogBuilder, data: bytes, version: int = 9, opened: Opened | None = None
) -> AppendInfo | Opening:
    return built.log.append_if_light(
        data,
        leader_epoch=0,
        origin=AppendOrigin.CLIENT,
        request_version=version,
        opened=opened,
    )


def rules_of(built: LogBuilder) -> TopicRules:
    return built.log.appender._validator._rules()


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_bounded_append_changes_nothing_when_it_is_too_much(what: str) -> None:
    built = LogBuilder()
    version = 2 if what == "old messages" else 9
    data = bytes(TOO_MUCH[what])
    opening = bounded(built, data, version)
    assert isinstance(opening, Opening)
    assert built.log.log_end_offset == 0
    found = pickle.loads(pickle.dumps(opening.copied())).attempt()
    assert isinstance(found, Opened)
    info = bounded(built, data, version, found)
    assert isinstance(info, AppendInfo)
    assert info.first_offset == 0
    assert info.valid_bytes == len(data)
    assert built.log.log_end_offset == info.last_offset + 1
    assert sum(1 for _ in built.records()) == info.last_offset + 1


def test_libraries_are_not_loaded_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    built = LogBuilder()
    data = packed(GOOD, 2, CompressionType.ZSTD)
    monkeypatch.delitem(sys.modules, ZSTD_MODULE)
    assert isinstance(bounded(built, data), Opening)
    assert isinstance(bounded(built, packed(GOOD, 2, 1)), AppendInfo)


def test_small_batches_take_no_more_than_a_bounded_append() -> None:
    built = LogBuilder()
    for codec in CODECS:
        data = packed(GOOD, 2, codec)
        assert isinstance(bounded(built, data), AppendInfo)
    old = build_message_set([(0, 0, None, b"v")] * 20, magic=1, codec=CompressionType.GZIP)
    assert isinstance(bounded(built, old, 2), AppendInfo)
    assert built.log.log_end_offset == 2 * len(CODECS) + 20


def test_what_is_wrong_comes_back_as_a_value_without_its_frames() -> None:
    built = LogBuilder(cleanup_policy=frozenset({"compact"}))
    data = build_batch([(built.clock.wall_ms(), None, b"v", ())])
    opening = Opening(data, rules_of(built))
    found = opening.attempt()
    assert isinstance(found, RejectedRecords)
    assert found.__traceback__ is found.__cause__ is found.__context__ is None
    again = pickle.loads(pickle.dumps(found))
    assert (again.code, str(again), again.record_errors) == (
        found.code,
        str(found),
        found.record_errors,
    )
    assert opening.attempt(Effort(steps=0)) is None
    found = Opening(packed(GOOD, 3), rules_of(built)).attempt()
    assert isinstance(found, RejectedRecords)
    assert found.__traceback__ is found.__cause__ is found.__context__ is None


def test_headers_are_checked_before_anything_is_opened() -> None:
    built = LogBuilder(max_message_bytes=100)
    for data in (packed(GOOD, 2, last_offset_delta=5), packed(record(0, bytes(200)), 1)):
        with pytest.raises(KafkaError):
            bounded(built, data)


# A batch that is rebuilt takes no more than max.message.bytes.


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4"])
def test_s_app_5_recompressing_ends_at_max_message_bytes(target: str) -> None:
    built = LogBuilder(compression_type=target, max_message_bytes=200_000)
    # Ten megabytes that only zstd, with its large window, makes small.
    data = packed(record(0, os.urandom(100_000) * 100), 1, CompressionType.ZSTD)
    assert len(data) < 200_000
    tracemalloc.start()
    try:
        assert refused(built, data).code is ErrorCode.MESSAGE_TOO_LARGE
        assert tracemalloc.get_traced_memory()[1] < 45 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_s_app_5_large_batches_are_recompressed_in_pieces(target: str) -> None:
    built = LogBuilder(compression_type=target, max_message_bytes=10 << 20)
    values = [os.urandom(1000) * 1000 for _ in range(3)]
    now = built.clock.wall_ms()
    data = build_batch([(now, None, v, ()) for v in values], codec=CompressionType.ZSTD)
    built.log.append_as_leader(data, leader_epoch=0)
    assert [record.value for record in built.records()] == values


def test_s_app_7_converting_ends_at_max_message_bytes() -> None:
    built = LogBuilder(compression_type="uncompressed", max_message_bytes=100_000)
    many = ((at, 0, None, b"v" * 50) for at in range(20_000))
    data = build_message_set(many, magic=1, codec=CompressionType.GZIP)
    assert len(data) < 100_000
    effort = Effort()
    left = effort.steps
    found = Opening(data, rules_of(built)).attempt(effort)
    assert isinstance(found, KafkaError)
    assert found.code is ErrorCode.MESSAGE_TOO_LARGE
    assert left - effort.steps < 20_000


def one_record(size: int) -> bytes:
    """A batch of one record of so many bytes; its value is zeros, which nothing compresses like."""
    for around in range(6, 16):
        payload = encode_record(0, 0, None, bytes(size - around))
        if len(payload) == size:
            return bytes(packed(payload, 1, CompressionType.ZSTD))
    raise AssertionError(size)


@pytest.mark.parametrize(
    ("max_message_bytes", "most"),
    [(1 << 20, 32 << 20), (100, 32 << 20), ((1 << 20) + 1, (32 << 20) + 32)],
)
def test_a_record_may_inflate_to_so_much(max_message_bytes: int, most: int) -> None:
    rules = TopicRules("t-0", max_message_bytes, (1 << 31) - 1, None, None, False, None, None)
    whole = len(encode_varint(most)) + most
    assert Opening(one_record(whole), rules).run().max_timestamp == 0
    too_large = one_record(whole + 1)
    tracemalloc.start()
    try:
        with pytest.raises(KafkaError, match="Record 0 of the batch") as told:
            Opening(too_large, rules).run()
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert told.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("size", [63, 64, 300, 200_000])
def test_s_app_14_a_compressed_record_has_a_largest_size(codec: int, more: int, size: int) -> None:
    """At the sizes where a length becomes a byte longer, in one piece and in chunks."""
    value = b"v" * size
    length, start = read_varint(record(1, value), 0)
    built = LogBuilder(max_decompressed_message_bytes=length - more, max_message_bytes=1 << 20)
    data = packed(record(0) + record(1, value), 2, codec)
    plain = packed(record(0) + record(1, value), 2)
    if more:
        error = refused(built, data)
        assert error.code is ErrorCode.INVALID_RECORD
        assert "Record 1 of" in str(error)
    else:
        built.log.append_as_leader(data, leader_epoch=0)
    built.log.append_as_leader(plain, leader_epoch=0)
    assert start + length == len(record(1, value))
