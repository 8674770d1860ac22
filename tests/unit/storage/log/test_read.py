"""Reading by offset and by time (S-READ-1 to S-READ-7, S-TS-1 to S-TS-6)."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType
from storage.errors import OffsetOutOfRange
from storage.filesystem import File
from storage.log.looking import look_here
from storage.log.results import FetchIsolation, FileSlice, StartOffsetReason, TimestampOffset
from storage.waits import PAUSE, at_once
from tests.support.begun import begin
from tests.support.log_builder import DIRECTORY, LogBuilder
from tests.support.time_lookups import max_timestamp, offset_for_timestamp

T = TypeVar("T")
END, HW, COMMITTED = FetchIsolation


def bases(built: LogBuilder, offset: int, max_bytes: int = 10**6, **options: object) -> list[int]:
    records = built.log.read(offset, max_bytes, **options).records
    data = records if isinstance(records, bytes) else records.read()
    return [header.base_offset for _, header in iter_batches(data)]


def test_s_read_1_at_the_end_empty_and_beyond_out_of_range() -> None:
    built = LogBuilder()
    built.append(3)
    built.append(2)
    assert built.log.read(5, 100).records == b""
    built.log.maybe_increment_log_start_offset(2, StartOffsetReason.CLIENT_RECORD_DELETION)
    for offset in (1, 6):
        with pytest.raises(OffsetOutOfRange) as caught:
            built.log.read(offset, 100)
        assert (caught.value.start, caught.value.high_watermark, caught.value.end) == (2, 5, 5)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_s_read_1_between_watermark_and_end_consumers_see_nothing() -> None:
    built = LogBuilder()
    built.append(3)
    built.log.append_as_leader(built.batch(2), leader_epoch=0)
    assert bases(built, 3) == []
    assert bases(built, 4) == []
    assert bases(built, 3, isolation=END) == [3]


def test_s_read_6_a_fetch_of_an_older_segment_or_above_the_limit_must_not_wait() -> None:
    built = LogBuilder()
    built.append()
    built.log.roll()
    built.append()
    built.log.append_as_leader(built.batch(), leader_epoch=0)
    built.log.roll()
    urgent = [built.log.read(offset, 1000).urgent for offset in range(4)]
    assert urgent == [True, False, False, True]


def test_a_read_where_the_last_one_ended_looks_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    built = LogBuilder()
    built.append()
    assert bases(built, 0) == [0]
    monkeypatch.setattr(type(built.log.segments.active.file), "pread", None)
    for offset in range(1, 100):
        assert built.log.read(offset, 1000).records == b""
        built.append()
        assert built.log.read(offset, 1000).records
    assert len(built.log.reader._ends) <= 64


@pytest.mark.parametrize("interval", [0, 4096])
def test_s_read_2_the_batch_that_holds_the_offset_comes_whole(interval: int) -> None:
    built = LogBuilder(index_interval_bytes=interval)
    for _ in range(5):
        built.append(4)
    assert bases(built, 6) == [4, 8, 12, 16]
    assert bases(built, 19) == [16]
    assert bases(built, 0)[0] == 0


@pytest.mark.parametrize("interval", [0, 4096])
@pytest.mark.parametrize("roll", [False, True])
def test_s_read_3_gaps_are_skipped(interval: int, roll: bool) -> None:
    built = LogBuilder(index_interval_bytes=interval)
    for base in (0, 10, 20):
        built.log.appender.append_as_follower(bytes(built.batch(2, base_offset=base)))
        if roll:
            built.log.roll()
    built.log.update_high_watermark(22)
    assert bases(built, 5)[0] == 10
    assert bases(built, 12)[0] == 20
    assert bases(built, 2)[0] == 10


def test_s_read_4_at_least_one_batch_even_above_max_bytes() -> None:
    built = LogBuilder()
    built.append(3)
    built.append(3)
    size = len(built.batch(3))
    for offset in (0, 4):
        info = built.log.read(offset, 10)
        assert (len(info.records), info.first_entry_incomplete) == (size, False)
    for most in (size, 10, 1, 0):
        cut = built.log.read(0, most, HW, False)
        assert (len(cut.records), cut.first_entry_incomplete) == (most, 0 < most < size)
    assert len(built.log.read(0, size + 5).records) == size + 5
    assert bases(built, 0, size + 5) == [0]
    assert bases(built, 3) == [3]
    built.append(3)
    assert len(built.log.read(6, 10).records) == size  # where the last read ended


def test_s_read_5_consumers_stop_at_the_watermark() -> None:
    built = LogBuilder()
    built.append(2)
    built.log.append_as_leader(built.batch(2), leader_epoch=0)
    built.log.append_as_leader(built.batch(2), leader_epoch=0)
    assert bases(built, 0) == [0]
    assert bases(built, 0, isolation=END) == [0, 2, 4]
    assert built.log.update_high_watermark(4)
    assert bases(built, 0) == [0, 2]


def test_s_read_5_committed_readers_stop_at_the_stable_offset() -> None:
    built = LogBuilder()
    built.append(1)
    built.write(5, count=2)
    built.append(1)
    log = built.log
    assert (log.last_stable_offset, log.high_watermark) == (1, 4)
    info = log.read(0, 1000, COMMITTED)
    assert info.aborted == []
    assert bases(built, 0, isolation=COMMITTED) == [0]
    assert bases(built, 0) == [0, 1, 3]
    built.end_transaction(5)
    assert log.last_stable_offset == 5
    info = log.read(0, 1000, COMMITTED)
    assert [(txn.producer_id, txn.first_offset) for txn in info.aborted or ()] == [(5, 1)]
    assert log.read(0, 1000, HW).aborted is None
    assert log.read(5, 1000, COMMITTED).aborted == []
    built.write(5, 2)
    log.append_as_leader(built.batch(), leader_epoch=0)
    assert bases(built, 3, isolation=COMMITTED) == [3, 4]
    assert bases(built, 3) == [3, 4, 5]


def test_s_read_5_aborted_markers_are_looked_up_in_later_segments() -> None:
    built = LogBuilder()
    built.write(5)
    built.write(6)
    built.log.roll()
    built.append(1)
    built.end_transaction(6, ControlType.COMMIT)
    built.log.roll()
    built.end_transaction(5)
    info = built.log.read(0, 1000, COMMITTED)
    assert [txn.producer_id for txn in info.aborted or ()] == [5]


def test_s_read_7_a_watermark_in_the_middle_of_a_batch_hides_it() -> None:
    built = LogBuilder()
    built.append(2)
    built.log.append_as_leader(built.batch(4), leader_epoch=0)
    built.log.update_high_watermark(4)
    assert bases(built, 0) == [0]
    assert bases(built, 2) == []
    assert bases(built, 3) == []
    built.log.update_high_watermark(6)
    assert bases(built, 3) == [2]


def test_s_read_7_positions_hold_across_a_roll() -> None:
    built = LogBuilder()
    built.append(2)
    assert bases(built, 0) == [0]
    built.log.roll()
    assert bases(built, 0) == [0]
    assert bases(built, 2) == []
    built.log.append_as_leader(built.batch(4), leader_epoch=0)
    assert bases(built, 0) == [0]
    assert bases(built, 2) == []
    built.log.update_high_watermark(6)
    assert bases(built, 2) == [2]


def test_damaged_bytes_are_corrupt_message() -> None:
    built = LogBuilder()
    built.append(2)
    built.append(2)
    file = built.fs.open(f"{DIRECTORY}/{0:020d}.log")
    file.pwrite(bytes(20), 0)
    with pytest.raises(KafkaError) as caught:
        built.log.read(3, 1000)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_s_ts_1_greatest_timestamp() -> None:
    built = LogBuilder(segment_bytes=300)
    assert max_timestamp(built.log) is None
    now = built.clock.wall_ms()
    built.append_dated(now, now + 50, now + 50)
    for _ in range(5):
        built.append_dated(now + 20)
    found = max_timestamp(built.log)
    assert found is not None
    assert (found.timestamp, found.offset, found.leader_epoch) == (now + 50, 1, 0)


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
@pytest.mark.parametrize("interval", [0, 4096])
def test_s_ts_2_first_record_not_first_batch(codec: CompressionType, interval: int) -> None:
    built = LogBuilder(index_interval_bytes=interval, segment_bytes=300)
    now = built.clock.wall_ms()
    for at in range(6):
        built.append_dated(*(now + at * 100 + step * 10 for step in range(4)), codec=codec)
    found = offset_for_timestamp(built.log, now + 311)
    assert found is not None
    assert (found.offset, found.timestamp, found.leader_epoch) == (14, now + 320, 0)
    assert offset_for_timestamp(built.log, now + 531) is None
    first = offset_for_timestamp(built.log, 0)
    assert first is not None
    assert first.offset == 0


def test_s_ts_2_not_below_the_log_start_nor_above_the_watermark() -> None:
    built = LogBuilder()
    now = built.clock.wall_ms()
    built.append_dated(now, now + 1, now + 2)
    built.log.maybe_increment_log_start_offset(2, StartOffsetReason.CLIENT_RECORD_DELETION)
    found = offset_for_timestamp(built.log, now)
    assert found is not None
    assert found.offset == 2
    built.log.append_as_leader(build_batch([(now + 10, b"", b"", ())]), leader_epoch=0)
    assert offset_for_timestamp(built.log, now + 10, HW) is None
    assert offset_for_timestamp(built.log, now + 10) is not None


def test_s_ts_3_out_of_order_timestamps_give_the_first_by_offset() -> None:
    built = LogBuilder(index_interval_bytes=0)
    now = built.clock.wall_ms()
    for stamp in (now + 5, now + 90, now + 20, now + 60):
        built.append_dated(stamp)
    found = offset_for_timestamp(built.log, now + 10)
    assert found is not None
    assert (found.offset, found.timestamp) == (1, now + 90)


def test_s_ts_3_log_append_time_batches_have_one_time() -> None:
    built = LogBuilder(message_timestamp_type="LogAppendTime")
    built.append_dated(1, 2, 3)
    found = offset_for_timestamp(built.log, built.clock.wall_ms())
    assert found is not None
    assert (found.offset, found.timestamp) == (0, built.clock.wall_ms())


def test_s_ts_4_and_6_records_without_time_are_never_found() -> None:
    built = LogBuilder()
    built.append_dated(-1, -1)
    assert offset_for_timestamp(built.log, 0) is None
    latest = max_timestamp(built.log)
    assert latest is not None
    assert (latest.offset, latest.timestamp) == (0, -1)  # as Kafka: the greatest is -1
    built.log.roll()
    now = built.clock.wall_ms()
    built.append_dated(now)
    found = offset_for_timestamp(built.log, 5)
    assert found is not None
    assert found.offset == 2


def test_s_ts_5_segments_by_their_last_write() -> None:
    built = LogBuilder()
    for _ in range(3):
        built.append(10)
        built.log.roll()
    built.append(10)
    for at, segment in enumerate(built.log.segments):
        built.fs.set_mtime_ms(segment.files.path, 1000 + at)
    assert built.log.times.segments_before(1002, 10) == [20, 10, 0]
    assert built.log.times.segments_before(1002, 2) == [20, 10]
    assert built.log.times.segments_before(-1, 10) == [40, 30, 20, 10, 0]
    assert built.log.times.segments_before(-2, 10) == [0]
    assert built.log.times.segments_before(5, 10) == []
    now = built.clock.wall_ms()
    assert built.log.times.segments_before(now - 1, 10) == [30, 20, 10, 0]
    for time in (now, now + 3_600_000):
        assert built.log.times.segments_before(time, 10) == [40, 30, 20, 10, 0]
    assert built.log.times.segments_before(now, 0) == []


def test_s_ts_5_the_last_segment_that_is_old_enough_counts_and_all_before_it() -> None:
    """A copy of the files, or a compaction, may have written an earlier segment later."""
    built = LogBuilder()
    for at in range(3):
        if at:
            built.log.roll()
        built.append(10)
    for at, written in enumerate((5000, 1000, 3000)):
        built.fs.set_mtime_ms(built.log.segments[at * 10].files.path, written)
    assert built.log.times.segments_before(2000, 10) == [10, 0]
    assert built.log.times.segments_before(2000, 1) == [10]
    assert built.log.times.segments_before(999, 10) == []


def test_s_ts_5_a_consumer_gets_the_high_watermark_for_all_above_it() -> None:
    built = LogBuilder()
    for at in range(3):
        if at:
            built.log.roll()
        built.log.append_as_leader(built.batch(10), leader_epoch=0)
    built.log.update_high_watermark(15)
    now = built.clock.wall_ms()
    for time in (now, -1):
        assert built.log.times.segments_before(time, 10) == [15, 10, 0]
        assert built.log.times.segments_before(time, 2) == [15]
    built.log.roll()
    assert built.log.times.segments_before(now, 10) == [15, 10, 0]
    built.log.update_high_watermark(30)
    assert built.log.times.segments_before(now, 10) == [30, 20, 10, 0]


@pytest.mark.parametrize("interval", [0, 4096])
def test_s_ts_6_the_first_of_equal_greatest_timestamps_stands_after_a_truncation_too(
    interval: int,
) -> None:
    built = LogBuilder(index_interval_bytes=interval)
    now = built.clock.wall_ms()
    for step in (0, 50, 50, 70):
        built.append_dated(now + step)
    for end, place in ((4, (now + 70, 3)), (3, (now + 50, 1)), (2, (now + 50, 1)), (1, (now, 0))):
        built.log.truncate_to(end)
        found = max_timestamp(built.log)
        assert found is not None
        assert (found.timestamp, found.offset) == place
        assert offset_for_timestamp(built.log, place[0] + 1) is None
        assert offset_for_timestamp(built.log, place[0]) == found


def packed(count: int, *, last: int = 0) -> bytes:
    """A batch of empty records dated as the base; the last one `last` milliseconds later."""
    rows = [(5_000, None, None, ())] * (count - 1) + [(5_000 + last, None, None, ())]
    return build_batch(rows, codec=CompressionType.GZIP)


class Elsewhere:
    """A `Look` that notes what it is given."""

    def __init__(self) -> None:
        self.opened: list[FileSlice] = []

    async def look(self, batches: FileSlice, look: Callable[..., T], /, *values: Any) -> T:
        self.opened.append(batches)
        return await look_here(batches, look, *values)


def test_s_ts_2_a_small_batch_is_searched_at_once() -> None:
    built = LogBuilder()
    built.log.append_as_leader(packed(300, last=7), leader_epoch=3)
    built.log.update_high_watermark(built.log.log_end_offset)
    elsewhere = Elsewhere()
    found = at_once(built.log.times.search(5_007, look=elsewhere.look))
    assert elsewhere.opened == []
    assert found == TimestampOffset(timestamp=5_007, offset=299, leader_epoch=3)


def test_s_ts_2_a_batch_of_many_records_is_opened_elsewhere() -> None:
    built = LogBuilder()
    built.log.append_as_leader(packed(20_000, last=7), leader_epoch=3)
    built.log.update_high_watermark(built.log.log_end_offset)
    wanted = TimestampOffset(timestamp=5_007, offset=19_999, leader_epoch=3)
    elsewhere = Elsewhere()
    assert at_once(built.log.times.search(5_007, look=elsewhere.look)) == wanted
    assert len(elsewhere.opened) == 1
    assert at_once(built.log.times.search_latest(elsewhere.look)) == wanted
    assert len(elsewhere.opened) == 2


def test_s_ts_2_a_search_gives_others_their_turn() -> None:
    built = LogBuilder(segment_bytes=200)
    for at in range(40):
        built.append_dated(built.clock.wall_ms() - 1000 + at)
    assert len(built.log.segments) > 15
    for search in (
        built.log.times.search(built.clock.wall_ms()),
        built.log.times.search_latest(),
    ):
        assert begin(search).pauses >= len(built.log.segments)


def test_s_ts_2_only_heads_are_read_of_batches_that_are_too_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = LogBuilder(segment_bytes=1 << 30, index_interval_bytes=1 << 30)
    now = built.clock.wall_ms()
    built.append_dated(now)
    for _ in range(10):
        built.append(1, value=bytes(50_000))
    built.append_dated(now + 50)
    kind = type(built.log.segments.active.file)
    read: list[int] = []
    pread = kind.pread

    def counted(file: File, size: int, position: int) -> bytes:
        read.append(size)
        return pread(file, size, position)  # type: ignore[arg-type]  # of that very kind

    monkeypatch.setattr(kind, "pread", counted)
    found = offset_for_timestamp(built.log, now + 50)
    assert found is not None
    assert found.offset == 11
    assert sum(read) < 100_000  # of half a megabyte


def test_s_ts_2_a_search_outlives_the_segment_it_reads() -> None:
    built = LogBuilder(segment_bytes=300)
    for at in range(9):
        built.append_dated(built.clock.wall_ms() - 1000 + at)
    search = built.log.times.search(built.clock.wall_ms() - 1000 + 8)
    assert search.send(None) is PAUSE
    built.log.maybe_increment_log_start_offset(7, StartOffsetReason.CLIENT_RECORD_DELETION)
    built.log.delete_old_segments()
    found = begin(search).reply
    assert found is not None
    assert found.offset == 8


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("segment_bytes", [300, 10**6])
def test_s_ts_1_the_first_record_of_equal_greatest_timestamps_is_the_answer(
    segment_bytes: int, reopened: bool
) -> None:
    built = LogBuilder(segment_bytes=segment_bytes, index_interval_bytes=0)
    now = built.clock.wall_ms()
    for stamps in ((0, 1), (0, 50, 50), (7,), (50, 50), (9,), (50,)):
        built.append_dated(*(now + stamp for stamp in stamps))
    if reopened:
        built.stopped()
    found = max_timestamp(built.log)
    assert found is not None
    assert (found.timestamp, found.offset) == (now + 50, 3)
    for segment in built.log.segments:
        segment.indexes.rebuild(segment.size)
    assert max_timestamp(built.log) == found
