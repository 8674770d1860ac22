"""Tombstones and their delete horizon (S-CMP-6, KIP-534)."""

import struct

import pytest

from config.key_building import LONG_MAX
from protocol.records.batch import DELETE_HORIZON_BIT, crc_of
from protocol.records.compression import CompressionType
from protocol.records.message_set import build_message_set
from storage.cleaner.fates import RecordFate
from tests.support.compacted_log import CODECS, CompactedLog

RETENTION = 1000


def log_with_tombstone(codec: CompressionType = CompressionType.NONE) -> CompactedLog:
    log = CompactedLog(delete_retention_ms=RETENTION)
    log.put((b"a", b"1"), (b"b", b"2"), codec=codec)
    log.clock.advance(ms=10)
    log.put((b"a", None), (b"c", b"3"), (b"b", b"4"), codec=codec)
    return log


@pytest.mark.parametrize("codec", CODECS)
def test_s_cmp_6_the_first_cleaning_writes_the_horizon_into_the_batch(
    codec: CompressionType,
) -> None:
    log = log_with_tombstone(codec)
    dated = log.clock.wall_ms()
    log.clock.advance(ms=500)
    stats = log.clean()
    ((header, records),) = log.batches()
    assert header.attributes & DELETE_HORIZON_BIT
    assert header.base_timestamp == log.clock.wall_ms() + RETENTION
    assert [record.timestamp for record in records] == [dated] * 3
    assert header.max_timestamp == dated
    assert [record.key for record in records] == [b"a", b"c", b"b"]
    assert stats.fates[RecordFate.KEPT_TOMBSTONE] == 1


@pytest.mark.parametrize("codec", CODECS)
def test_s_cmp_6_a_tombstone_stays_until_the_horizon_and_goes_with_it(
    codec: CompressionType,
) -> None:
    log = log_with_tombstone(codec)
    dated = log.clock.wall_ms()
    log.clean()
    ((header, _),) = log.batches()
    horizon = header.base_timestamp
    before = log.batches()
    log.clock.advance(ms=RETENTION - 1)
    log.clean()
    assert log.batches() == before, "as it is, horizon included"
    log.clock.advance(ms=1)
    assert log.clock.wall_ms() == horizon
    stats = log.clean()
    ((header, records),) = log.batches()
    assert [(record.key, record.timestamp) for record in records] == [(b"c", dated), (b"b", dated)]
    assert stats.fates[RecordFate.DROPPED_TOMBSTONE] == 1
    assert header.base_timestamp == horizon, "a horizon that was set stays"
    assert header.attributes & DELETE_HORIZON_BIT


@pytest.mark.parametrize("retention", [0, RETENTION])
def test_s_cmp_6_a_batch_of_one_tombstone_is_seen_once_and_goes_as_a_whole(retention: int) -> None:
    log = CompactedLog(delete_retention_ms=retention)
    log.put((b"a", None))
    log.keys(1)
    log.clean()
    assert log.offsets() == [0, 1]
    log.clock.advance(ms=retention)
    log.clean()
    assert log.offsets() == [1]


def test_s_cmp_6_an_older_tombstone_goes_at_once() -> None:
    log = CompactedLog(delete_retention_ms=RETENTION)
    log.put((b"a", None), (b"b", b"1"))
    log.put((b"a", b"again"))
    log.clean()
    assert log.offsets() == [1, 2]
    assert not log.batches()[0][0].attributes & DELETE_HORIZON_BIT


def test_s_cmp_6_tombstones_above_the_map_get_a_horizon_as_well() -> None:
    """As in Kafka: whatever stays in a batch that is looked at."""
    log = CompactedLog(delete_retention_ms=RETENTION)
    for number in range(8):
        log.put((b"%d" % number, None))
    log.clean(map_bytes=24 * 4)
    assert log.cleaned_to == 3
    horizons = [bool(header.attributes & DELETE_HORIZON_BIT) for header, _ in log.batches()]
    assert horizons == [True] * 8


def test_s_cmp_6_batches_dated_by_the_log_keep_their_date_beside_the_horizon() -> None:
    log = CompactedLog(delete_retention_ms=RETENTION, message_timestamp_type="LogAppendTime")
    log.put((b"a", None), (b"b", b"1"))
    dated = log.clock.wall_ms()
    log.clock.advance(ms=77)
    log.clean()
    ((header, records),) = log.batches()
    assert (header.base_timestamp, header.max_timestamp) == (dated + 77 + RETENTION, dated)
    assert {record.timestamp for record in records} == {dated}


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("is_old", [False, True])
def test_s_cmp_6_in_old_formats_the_segment_tells_the_age(
    magic: int, codec: CompressionType, is_old: bool
) -> None:
    log = CompactedLog(delete_retention_ms=RETENTION)
    data = build_message_set([(0, 1, b"a", None), (1, 1, b"b", b"1")], magic=magic, codec=codec)
    log.log.appender.append_as_follower(data)
    for key in (7, 8):
        log.log.roll()
        log.keys(key)
    first, last_clean, _ = log.log.segments
    log.cleaned_to = 3
    log.log.roll()
    log.fs.set_mtime_ms(last_clean.files.path, 20_000)
    log.fs.set_mtime_ms(first.files.path, 20_000 - RETENTION + (not is_old))
    stats = log.clean()
    assert log.offsets() == ([1, 2, 3] if is_old else [0, 1, 2, 3])
    assert stats.fates[RecordFate.DROPPED_TOMBSTONE] == is_old
    horizon = log.clock.wall_ms() + RETENTION
    old = [header.base_timestamp for header, records in log.batches() if records[0].key == b"a"]
    assert old == ([] if is_old else [horizon])
    assert {header.magic for header, _ in log.batches()} == {2}


def test_s_cmp_6_without_a_clean_segment_old_formats_keep_all_tombstones() -> None:
    log = CompactedLog(delete_retention_ms=RETENTION)
    log.log.appender.append_as_follower(build_message_set([(0, 1, b"a", None)], magic=1))
    log.clock.advance(ms=10**9)
    log.keys(7)
    log.clean()
    assert log.offsets() == [0, 1]


@pytest.mark.parametrize(("topic_codec", "stands"), [("producer", True), ("gzip", False)])
def test_a_clients_horizon_goes_when_its_batch_is_compressed_anew(
    topic_codec: str, stands: bool
) -> None:
    log = CompactedLog(compression_type=topic_codec)
    data = log.batch(2)
    data[22] |= DELETE_HORIZON_BIT
    struct.pack_into(">I", data, 17, crc_of(data, 0, len(data)))
    log.log.append_as_leader(data, leader_epoch=0)
    ((header, records),) = log.batches()
    assert bool(header.attributes & DELETE_HORIZON_BIT) is stands
    assert [record.timestamp for record in records] == [log.clock.wall_ms()] * 2


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("beyond", [-1, 0, 1, None])
@pytest.mark.parametrize("magic", [1, 2])
def test_s_cmp_6_no_horizon_lies_behind_the_last_moment(
    codec: CompressionType, beyond: int | None, magic: int
) -> None:
    """`beyond`: how far now and the retention lie beyond it; None: the longest retention."""
    dated = CompactedLog().clock.wall_ms()
    retention = LONG_MAX if beyond is None else LONG_MAX - dated + beyond
    log = CompactedLog(delete_retention_ms=retention)
    if magic == 2:
        log.put((b"a", None), (b"b", b"1"), codec=codec)
    else:
        old = [(0, dated, b"a", None), (1, dated, b"b", b"1")]
        codec = codec if codec != CompressionType.ZSTD else CompressionType.NONE
        log.log.appender.append_as_follower(build_message_set(old, magic=1, codec=codec))
        log.log.update_high_watermark(2)
    for _ in range(2):
        log.clean()
        seen = [(header, record) for header, records in log.batches() for record in records]
        assert [(one.key, one.value, one.timestamp) for _, one in seen] == [
            (b"a", None, dated),
            (b"b", b"1", dated),
        ]
        assert seen[0][0].base_timestamp == min(dated + retention, LONG_MAX)
        log.clock.advance(ms=10**12)
