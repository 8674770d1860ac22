"""Retention deletes or keeps segments (S-RET-2 to S-RET-7), and a log is truncated."""

import pytest

from protocol.records.errors import CorruptBatch
from storage.errors import OffsetOutOfRange
from storage.log.results import DeletionReason, FetchIsolation, FileSlice, StartOffsetReason
from tests.support.log_builder import DIRECTORY, LogBuilder

HOUR = 3_600_000
DELETED = StartOffsetReason.CLIENT_RECORD_DELETION


def segments_of(built: LogBuilder, *counts: int, age_ms: int = 0) -> None:
    """One segment per count; the last stays active."""
    for at, count in enumerate(counts):
        if at:
            built.log.roll()
        now = built.clock.wall_ms()
        built.append_dated(*[now - age_ms] * count)


def went(built: LogBuilder) -> list[tuple[int, DeletionReason]]:
    return [(gone.base_offset, gone.reason) for gone in built.log.delete_old_segments()]


def test_s_ret_2_by_time_oldest_first_until_one_is_young() -> None:
    built = LogBuilder(retention_ms=HOUR)
    segments_of(built, 1, 1, age_ms=2 * HOUR)
    built.log.roll()
    built.append()
    built.log.roll()
    built.append_dated(built.clock.wall_ms() - 2 * HOUR)
    time = DeletionReason.RETENTION_TIME
    assert went(built) == [(0, time), (1, time)]
    assert built.log.log_start_offset == 2
    assert went(built) == []


def test_s_ret_2_a_record_from_the_future_pins_its_segment() -> None:
    built = LogBuilder(retention_ms=HOUR)
    built.append_dated(built.clock.wall_ms() + HOUR)
    built.log.roll()
    built.append()
    built.clock.advance(2 * 3600 - 1)
    assert went(built) == []
    built.clock.advance(2)
    assert [base for base, _ in went(built)] == [0, 1]


def test_s_ret_2_exactly_retention_ms_old_stays() -> None:
    built = LogBuilder(retention_ms=HOUR)
    segments_of(built, 1, 1)
    built.clock.advance(3600)
    assert went(built) == []


def test_s_ret_3_by_size_never_below_the_limit() -> None:
    size = len(LogBuilder().batch())
    built = LogBuilder(retention_bytes=2 * size, retention_ms=-1)
    segments_of(built, 1, 1, 1, 1)
    by_size = DeletionReason.RETENTION_SIZE
    assert went(built) == [(0, by_size), (1, by_size)]
    assert built.log.size == 2 * size
    tight = LogBuilder(retention_bytes=2 * size + 1, retention_ms=-1)
    segments_of(tight, 1, 1, 1, 1)
    assert went(tight) == [(0, by_size)]


def test_s_ret_4_below_the_log_start_whatever_the_policy() -> None:
    built = LogBuilder(cleanup_policy=frozenset({"compact"}), retention_ms=0, retention_bytes=0)
    for at in range(4):
        if at:
            built.log.roll()
        built.append(2)
    built.log.maybe_increment_log_start_offset(4, DELETED)
    start = DeletionReason.LOG_START_OFFSET
    assert went(built) == [(0, start), (2, start)]


def test_s_ret_5_nothing_at_or_above_the_watermark() -> None:
    built = LogBuilder(retention_ms=HOUR)
    segments_of(built, 1, 1, 1)
    built.log.update_high_watermark(1)  # as a leader has it whose followers lag
    built.clock.advance(9 * 3600)
    assert [base for base, _ in went(built)] == [0]


def test_s_ret_5_a_fully_expired_active_segment_goes_an_empty_one_stays() -> None:
    built = LogBuilder(retention_ms=HOUR)
    assert went(built) == []
    segments_of(built, 2, 3)
    built.clock.advance(9 * 3600)
    assert [base for base, _ in went(built)] == [0, 2]
    log = built.log
    assert (log.segments.base_offsets, log.log_start_offset, log.log_end_offset) == ([5], 5, 5)
    assert went(built) == []
    assert built.append().first_offset == 5


def test_s_ret_6_start_epochs_and_snapshots_follow() -> None:
    built = LogBuilder(retention_ms=HOUR)
    for epoch in range(3):
        if epoch:
            built.log.roll()
        built.log.append_as_leader(built.batch(2), leader_epoch=epoch)
    built.log.update_high_watermark(6)
    built.log.maybe_increment_log_start_offset(3, DELETED)
    assert [base for base, _ in went(built)] == [0]
    assert built.log.leader_epochs.entries == [(1, 3), (2, 4)]
    assert f"{2:020d}.snapshot" in built.names()
    built.log.maybe_increment_log_start_offset(4, DELETED)
    assert [base for base, _ in went(built)] == [2]
    assert f"{2:020d}.snapshot" not in built.names()


def test_s_ret_6_start_never_passes_the_watermark() -> None:
    built = LogBuilder()
    built.append(3)
    with pytest.raises(OffsetOutOfRange):
        built.log.maybe_increment_log_start_offset(4, DELETED)
    assert built.log.maybe_increment_log_start_offset(3, DELETED)
    assert not built.log.maybe_increment_log_start_offset(2, DELETED)
    assert built.log.log_start_offset == 3


def test_s_ret_7_files_are_renamed_at_once_and_due_later() -> None:
    built = LogBuilder(retention_ms=HOUR, file_delete_delay_ms=60_000)
    segments_of(built, 1, 1)
    info = built.log.read(0, 1000)
    assert isinstance(info.records, FileSlice)
    data = info.records.read()
    built.log.maybe_increment_log_start_offset(1, DELETED)
    built.log.delete_old_segments()
    pending = built.log.store.take_pending()
    names = {one.path.removeprefix(DIRECTORY + "/") for one in pending}
    stem = f"{0:020d}"
    assert names == {f"{stem}.{kind}.deleted" for kind in ("log", "index", "timeindex")}
    assert names <= set(built.names())
    assert {one.due_ms for one in pending} == {built.clock.wall_ms() + 60_000}
    assert built.log.store.take_pending() == []
    assert info.records.read() == data


def test_truncation_drops_the_batch_that_holds_the_offset() -> None:
    built = LogBuilder(index_interval_bytes=0, segment_bytes=400)
    for epoch in range(6):
        built.log.append_as_leader(built.batch(3), leader_epoch=epoch)
    log = built.log
    log.update_high_watermark(18)
    assert not log.truncate_to(18)
    assert log.truncate_to(10)
    assert (log.log_end_offset, log.high_watermark) == (10, 10)
    assert [record.offset for record in built.records()] == list(range(9))
    # Epoch 3 began at 9: nothing of it is left, but it did begin below the cut.
    assert log.leader_epochs.entries == [(0, 0), (1, 3), (2, 6), (3, 9)]
    log._check()
    assert built.append().first_offset == 10


def test_a_truncation_that_cannot_find_its_place_for_damage_cuts_nothing() -> None:
    built = LogBuilder()
    for at in range(3):
        if at:
            built.log.roll()
        for _ in range(3):
            built.append()
    log = built.log
    before = {segment.base_offset: segment.size for segment in log.segments}
    log.segments[3].file.pwrite(b"\xff", 8)
    with pytest.raises(CorruptBatch):
        log.truncate_to(4)
    assert {segment.base_offset: segment.size for segment in log.segments} == before
    assert (log.log_end_offset, log.recovery_point) == (9, 0)
    assert built.append().first_offset == 9
    assert log.truncate_to(2)
    assert built.append().first_offset == 2
    log._check()


@pytest.mark.parametrize("segment_bytes", [300, 10_000], ids=["snapshots", "no snapshot yet"])
def test_truncation_restores_the_producers_of_that_point(segment_bytes: int) -> None:
    built = LogBuilder(segment_bytes=segment_bytes)
    for at in range(8):
        built.append(1, producer_id=9, producer_epoch=0, base_sequence=at)
    assert (built.log.producers.snapshots.latest is None) == (segment_bytes > 300)
    built.log.truncate_to(5)
    entry = built.log.producers.entry(9)
    assert entry is not None
    assert entry.last_sequence == 4
    assert built.append(1, producer_id=9, producer_epoch=0, base_sequence=5).first_offset == 5


def test_truncation_below_the_first_segment_starts_over_there() -> None:
    built = LogBuilder()
    built.append(3)
    built.log.truncate_fully_and_start_at(20)
    built.append(2)
    assert built.log.truncate_to(10)
    log = built.log
    assert (log.log_start_offset, log.log_end_offset, log.segments.base_offsets) == (10, 10, [10])
    with pytest.raises(ValueError, match="-1"):
        log.truncate_to(-1)


def test_starting_over_forgets_everything() -> None:
    built = LogBuilder()
    built.append(3, producer_id=9, producer_epoch=0, base_sequence=0)
    log = built.log
    log.truncate_fully_and_start_at(100, log_start_offset=50)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (50, 100, 100)
    assert log.producers.is_empty
    assert log.leader_epochs.is_empty
    assert log.read(100, 10, FetchIsolation.LOG_END).records == b""
    assert built.append().first_offset == 100


def test_watermark_rules() -> None:
    built = LogBuilder()
    built.log.append_as_leader(built.batch(5), leader_epoch=0)
    log = built.log
    assert log.update_high_watermark(3)
    assert not log.update_high_watermark(3)
    assert log.high_watermark == 3
    assert log.update_high_watermark(99)
    assert log.high_watermark == 5


def test_statistics() -> None:
    built = LogBuilder()
    built.append(3, producer_id=9, producer_epoch=0, base_sequence=0)
    numbers = built.log.statistics()
    assert (numbers.log_end_offset, numbers.segment_count, numbers.producer_count) == (3, 1, 1)
    assert numbers.size == built.log.size


def test_s_ret_7_a_producer_snapshot_waits_as_long_as_its_segment() -> None:
    built = LogBuilder(retention_ms=HOUR, file_delete_delay_ms=60_000)
    segments_of(built, 1, 1, 1)
    built.log.maybe_increment_log_start_offset(2, DELETED)
    built.log.delete_old_segments()
    pending = built.log.store.take_pending()
    assert f"{DIRECTORY}/{1:020d}.snapshot.deleted" in {one.path for one in pending}
    assert {one.due_ms for one in pending} == {built.clock.wall_ms() + 60_000}


def test_s_ts_4_segments_without_timestamps_are_as_old_as_their_file() -> None:
    built = LogBuilder(retention_ms=HOUR)
    for _ in range(3):
        built.append_dated(-1)
        built.log.roll()
    built.append_dated(-1)
    now = built.clock.wall_ms()
    ages = {0: HOUR + 1, 1: HOUR, 2: 2 * HOUR, 3: 0}
    for segment in built.log.segments:
        built.fs.set_mtime_ms(segment.files.path, now - ages[segment.base_offset])
    assert went(built) == [(0, DeletionReason.RETENTION_TIME)], "the next one is just young enough"
    assert built.log.log_start_offset == 1
