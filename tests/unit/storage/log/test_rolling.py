"""When a segment ends, and what is indexed on the way (S-ROLL-1 to S-ROLL-5, S-IDX-1)."""

from dataclasses import replace

import pytest

from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from storage.log.results import FileSlice, RollReason
from storage.waits import at_once
from tests.support.log_builder import DIRECTORY, LogBuilder

DAY_MS = 86_400_000


def rolled_by(built: LogBuilder, *timestamps: int) -> list[RollReason | None]:
    return [built.append_dated(stamp).rolled for stamp in timestamps]


def test_s_roll_5_by_size() -> None:
    size = len(LogBuilder().batch())
    built = LogBuilder(segment_bytes=2 * size)
    assert [built.append().rolled for _ in range(4)] == [None, None, RollReason.SIZE, None]
    assert built.log.segments.base_offsets == [0, 2]


def test_s_roll_1_record_timestamps_drive_time() -> None:
    built = LogBuilder(segment_ms=7 * DAY_MS, message_timestamp_after_max_ms=2**63 - 1)
    now = built.clock.wall_ms()
    assert rolled_by(built, now, now + 8 * DAY_MS) == [None, RollReason.TIME]
    # A new segment counts from its own first batch, and old dates never roll.
    assert rolled_by(built, now + 8 * DAY_MS, now - 99 * DAY_MS, now) == [None, None, None]
    built.clock.advance(30 * 86_400)
    assert rolled_by(built, now + 8 * DAY_MS) == [None]


def test_s_roll_1_without_timestamps_the_wall_clock_drives_time() -> None:
    built = LogBuilder(segment_ms=7 * DAY_MS)
    assert rolled_by(built, -1) == [None]
    built.clock.advance(7 * 86_400)
    assert rolled_by(built, -1) == [None]
    built.clock.advance(1)
    assert rolled_by(built, -1) == [RollReason.TIME]


def test_s_roll_5_an_empty_segment_never_rolls_by_time() -> None:
    built = LogBuilder(segment_ms=1000)
    built.clock.advance(99)
    assert rolled_by(built, built.clock.wall_ms()) == [None]


def test_s_roll_2_compacted_topics_roll_within_the_compaction_lag() -> None:
    built = LogBuilder(segment_ms=7 * DAY_MS, max_compaction_lag_ms=1000)
    now = built.clock.wall_ms()
    assert rolled_by(built, now - 5000, now) == [None, None]
    built.log.update_config(
        TopicConfig(cleanup_policy=frozenset({"compact"}), max_compaction_lag_ms=1000)
    )
    assert rolled_by(built, now) == [RollReason.TIME]


def test_s_roll_5_jitter_is_taken_off_segment_ms() -> None:
    built = LogBuilder(segment_ms=10_000, segment_jitter_ms=9_000)
    jitter = built.log.roller.jitter_ms
    assert 0 < jitter < 9_000
    now = built.clock.wall_ms()
    assert rolled_by(built, now, now + 10_000 - jitter, now + 10_001 - jitter) == [
        None,
        None,
        RollReason.TIME,
    ]


def test_s_roll_5_each_segment_has_a_jitter_of_its_own() -> None:
    built = LogBuilder(segment_ms=10_000, segment_jitter_ms=9_000)
    drawn = {built.log.roller.jitter_ms}
    for _ in range(4):
        built.append()
        built.log.roll()
        drawn.add(built.log.roller.jitter_ms)
    assert len(drawn) > 2


def test_s_roll_5_a_batch_may_be_as_large_as_a_segment() -> None:
    size = len(LogBuilder().batch())
    built = LogBuilder(segment_bytes=size)
    assert [built.append().rolled for _ in range(3)] == [None, RollReason.SIZE, RollReason.SIZE]
    with pytest.raises(KafkaError) as caught:
        LogBuilder(segment_bytes=size - 1).append()
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_s_roll_5_when_an_index_is_full() -> None:
    built = LogBuilder(index_interval_bytes=0, segment_index_bytes=24)
    reasons = []
    for _ in range(4):
        built.clock.advance(1)
        reasons.append(built.append().rolled)
    # The first batch is never indexed; two time entries, one of them kept for the roll.
    assert reasons == [None, None, RollReason.TIME_INDEX_FULL, None]
    same_time = LogBuilder(index_interval_bytes=0, segment_index_bytes=24)
    assert [same_time.append().rolled for _ in range(4)][2] is RollReason.TIME_INDEX_FULL


def test_room_in_the_indexes_is_counted_anew_after_a_close() -> None:
    built = LogBuilder(index_interval_bytes=0, segment_index_bytes=36)
    now = built.clock.wall_ms()
    assert rolled_by(built, now) == [None]
    at_once(built.log.close())  # takes one of two places in the time index
    assert rolled_by(built, now + 1, now + 2) == [None, RollReason.TIME_INDEX_FULL]


def test_s_roll_5_when_the_offset_index_is_full() -> None:
    built = LogBuilder(index_interval_bytes=0, segment_index_bytes=36)
    # Without timestamps the time index stays empty.
    assert rolled_by(built, *[-1] * 6)[5] is RollReason.OFFSET_INDEX_FULL


def test_s_roll_5_before_a_relative_offset_overflows() -> None:
    built = LogBuilder()
    far = 2**31
    built.append()
    info = built.log.appender.append_as_follower(bytes(built.batch(base_offset=far - 1)))
    assert info.rolled is None
    info = built.log.appender.append_as_follower(bytes(built.batch(base_offset=far)))
    assert info.rolled is RollReason.OFFSET_OVERFLOW
    assert built.log.segments.base_offsets == [0, far]


def test_s_roll_3_new_base_is_the_first_offset_of_the_batch() -> None:
    built = LogBuilder(segment_bytes=100)
    built.append()
    built.log.appender.append_as_follower(bytes(built.batch(base_offset=10)))
    assert built.log.segments.base_offsets == [0, 10]


def test_s_roll_3_files_that_stand_in_the_way_are_deleted() -> None:
    built = LogBuilder()
    built.append(3)
    for suffix in ("log", "index", "timeindex", "txnindex"):
        built.fs.write_bytes(f"{DIRECTORY}/{3:020d}.{suffix}", b"rubbish")
    built.log.roll()
    built.append()
    assert [record.offset for record in built.records()] == [0, 1, 2, 3]
    assert f"{3:020d}.txnindex" not in built.names()


def test_s_roll_3_rolling_an_empty_segment_begins_it_again() -> None:
    built = LogBuilder(index_interval_bytes=0, segment_index_bytes=24)
    built.append(2)
    built.log.roll()
    built.log.update_config(replace(built.config, segment_index_bytes=80, preallocate=True))
    built.log.roll()
    log = built.log
    assert log.segments.base_offsets == [0, 2]
    assert log.segments.active.indexes.offset.free == 10
    assert built.fs.size(log.segments.active.files.path) == log.config.segment_bytes
    assert built.append().first_offset == 2
    assert not [name for name in built.names() if name.endswith(".deleted")]
    log._check()


def test_s_roll_3_what_a_failed_write_left_goes_when_an_empty_segment_begins_again() -> None:
    built = LogBuilder(index_interval_bytes=0)
    for _ in range(3):
        built.append(2)
    built.log.truncate_to(0)
    active = built.log.segments.active
    active.file.pwrite(b"half a batch", 0)
    built.fs.write_bytes(f"{DIRECTORY}/{0:020d}.txnindex", b"")
    built.log.roll()
    assert [built.fs.size(f"{DIRECTORY}/{name}") for name in built.names()[:3]] == [0, 0, 0]
    assert f"{0:020d}.txnindex" not in built.names()


def test_s_roll_4_a_rolled_segment_is_trimmed_and_has_its_last_time_entry() -> None:
    built = LogBuilder(preallocate=True, segment_bytes=10_000)
    told = []
    built.log.connect(failed=lambda d, e: None, rolled=lambda log, offset: told.append(offset))
    assert built.fs.size(f"{DIRECTORY}/{0:020d}.log") == 10_000
    now = built.clock.wall_ms()
    built.append_dated(now)
    built.append_dated(now + 5)
    used = built.log.size
    built.log.roll()
    first = built.log.segments.first
    assert built.fs.size(f"{DIRECTORY}/{0:020d}.log") == used == first.size
    assert built.fs.size(f"{DIRECTORY}/{0:020d}.index") == 0
    assert first.indexes.time.last_entry == (now + 5, 1)
    assert built.fs.size(f"{DIRECTORY}/{0:020d}.timeindex") == 12
    assert f"{2:020d}.snapshot" in built.names()
    assert told == [2]


def test_s_idx_1_an_entry_names_the_batch_that_follows_an_interval() -> None:
    built = LogBuilder(index_interval_bytes=100)
    sizes = [len(built.batch(count)) for count in (1, 3, 1, 2)]
    assert sizes[0] < 100 < sizes[0] + sizes[1]
    for count in (1, 3, 1, 2, 1):
        built.append(count)
    index = built.log.segments.active.indexes.offset
    # Bytes since the last entry must exceed the interval *before* the append; the entry holds the
    # last offset of that batch and the position of its start.
    expected, since, position, offset = [], 0, 0, -1
    for count in (1, 3, 1, 2, 1):
        offset += count
        if since > 100:
            expected.append((offset, position))
            since = 0
        size = len(built.batch(count))
        since += size
        position += size
    assert [index.entry(slot) for slot in range(index.entries)] == expected
    assert expected[0] == (4, sizes[0] + sizes[1])


def test_s_idx_1_an_interval_of_zero_indexes_every_batch_but_the_first() -> None:
    built = LogBuilder(index_interval_bytes=0)
    for _ in range(4):
        built.append(2)
    index = built.log.segments.active.indexes.offset
    assert [index.entry(slot)[0] for slot in range(index.entries)] == [3, 5, 7]


def test_s_idx_2_time_entries_rise() -> None:
    built = LogBuilder(index_interval_bytes=0)
    now = built.clock.wall_ms()
    for stamp in (now, now + 5, now + 3, now + 5, now + 9):
        built.append_dated(stamp)
    index = built.log.segments.active.indexes.time
    assert [index.entry(slot) for slot in range(index.entries)] == [(now + 5, 1), (now + 9, 4)]


def test_s_idx_7_slices_of_a_deleted_segment_stay_readable() -> None:
    built = LogBuilder(file_delete_delay_ms=0)
    built.append(value=b"keep me")
    info = built.log.read(0, 1000)
    built.log.truncate_fully_and_start_at(5)
    for pending in built.log.store.take_pending():
        built.fs.unlink(pending.path)
    assert isinstance(info.records, FileSlice)
    assert b"keep me" in info.records.read()


@pytest.mark.parametrize("count", [1, 7])
def test_files_of_a_new_log(count: int) -> None:
    built = LogBuilder()
    assert built.names() == [f"{0:020d}.{suffix}" for suffix in ("index", "log", "timeindex")]
    built.append(count)
    built.stopped()
    assert built.names() == [
        *(f"{0:020d}.{suffix}" for suffix in ("index", "log", "timeindex")),
        f"{count:020d}.snapshot",
        "leader-epoch-checkpoint",
    ]
