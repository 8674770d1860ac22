"""One cleaning from begin to end: what is never touched, what an interruption leaves, refusals."""

import pickle
import struct
from collections.abc import Callable
from typing import Any

import pytest

from protocol.records.batch import crc_of
from protocol.records.compression import CompressionType
from storage.cleaner import work
from storage.cleaner.cleaning import clean, clean_here
from storage.cleaner.errors import (
    CleaningAborted,
    SegmentOverflow,
    UncleanableLog,
    UncleanableReason,
)
from storage.cleaner.request import CleanerStats
from storage.index.mapped_index import MAX_RELATIVE_OFFSET
from storage.paths import log_file
from storage.waits import call
from tests.support.calls import Calls
from tests.support.compacted_log import DIRECTORY, CompactedLog


def three_segments(**config: Any) -> CompactedLog:
    """Two closed segments of three batches and an active one, all of keys 0 to 2."""
    log = CompactedLog(**config)
    for _ in range(3):
        for key in range(3):
            log.keys(key)
        log.log.roll()
    log.keys(0)
    return log


def leftovers(log: CompactedLog) -> list[str]:
    return [name for name in log.names() if name.endswith((".cleaned", ".swap"))]


class Cleaning(Calls[CleanerStats]):
    """A cleaning that stands still before each call of its child."""

    def __init__(self, log: CompactedLog, **how: Any) -> None:
        self.state: dict[str, Any] = {}
        super().__init__(clean(log.log, log.request(), self._child, **how))

    async def _child(self, function: Callable[..., Any], *args: Any) -> Any:
        return await call(function, self.state, *args)

    @property
    def name(self) -> str:
        """The name of the call that is to be made."""
        assert self.call is not None
        return self.call.work.__name__

    def run_until(self, name: str) -> None:
        """Up to the first call of that name, which is still to be made."""
        while self.name != name:
            self.run()
            self.complete()


def test_s_cmp_8_the_active_segment_and_the_end_stay() -> None:
    log = three_segments()
    active = log.log.segments.active
    before = active.file.pread(active.size, 0)
    end = log.log.log_end_offset
    log.clean(roll=False)
    assert log.log.segments.active is active
    assert active.file.pread(active.size, 0) == before
    assert log.log.log_end_offset == end
    assert log.offsets() == [6, 7, 8, 9], "the active segment's keys are not in the map"
    log.killed()
    assert log.log.log_end_offset == end
    assert log.log.log_start_offset == 0
    log.log._check()


def test_s_cmp_8_a_reader_at_any_offset_goes_on() -> None:
    log = three_segments()
    log.clean(roll=False)
    for offset in range(10):
        assert log.records(offset)[0].offset == max(offset, 6)


def test_s_cmp_8_what_may_not_be_cleaned_is_not() -> None:
    log = three_segments()
    second = list(log.log.segments)[1].base_offset
    stats = log.clean(roll=False, end=second)
    assert stats.end_offset == second == 3
    assert log.offsets() == list(range(10))
    log.clean(roll=False, end=6)
    assert log.offsets() == [3, 4, 5, 6, 7, 8, 9]


def test_s_cmp_9_a_group_is_installed_as_soon_as_it_is_written() -> None:
    log = three_segments(segment_bytes=300)
    cleaning = Cleaning(log, step_bytes=1)
    names = []
    while not cleaning.done:
        names.append(cleaning.name)
        cleaning.run()
        cleaning.complete()
    assert names[:2] == ["begin", "map_some"]
    assert names[-1] == "end"
    assert names.count("begin_group") == 3
    assert leftovers(log) == []
    assert [name for name in log.names() if name.endswith(".log.deleted")]
    log.killed()
    assert log.offsets() == [6, 7, 8, 9]


@pytest.mark.parametrize("at", ["map_some", "begin_group", "rewrite_some"])
def test_s_cmp_11_a_cleaning_that_is_closed_leaves_nothing(at: str) -> None:
    log = three_segments()
    before = log.seen()
    cleaning = Cleaning(log, step_bytes=1)
    cleaning.run_until(at)
    cleaning.run()
    cleaning.close()
    work.end(cleaning.state)
    assert (leftovers(log), log.seen()) == ([], before)
    log.clean(roll=False)
    assert log.offsets() == [6, 7, 8, 9]


@pytest.mark.parametrize("change", ["truncated", "rolled and truncated", "moved"])
def test_s_cmp_11_a_log_that_changed_meanwhile_is_left_alone(change: str) -> None:
    log = three_segments()
    cleaning = Cleaning(log)
    cleaning.run_until("rewrite_some")
    cleaning.run()
    if change == "moved":
        log.fs.rename(DIRECTORY, "/logs/elsewhere")
        log.log.moved_to("/logs/elsewhere")
    else:
        log.log.truncate_to(4 if change == "truncated" else 9)
    before = log.seen()
    with pytest.raises(CleaningAborted):
        cleaning.complete()
    assert log.seen() == before
    assert not [name for name in log.fs.list_dir(log.log.dir) if ".cleaned" in name] or (
        change == "moved"
    )


def test_s_cmp_11_a_request_of_another_time_is_refused() -> None:
    log = three_segments()
    request = log.request()
    log.log.truncate_to(4)
    with pytest.raises(CleaningAborted, match="has changed"):
        clean_here(log.log, request)


def damage(log: CompactedLog, position: int, data: bytes) -> None:
    segment = log.log.segments.first
    segment.file.pwrite(data, position)


def refused(log: CompactedLog) -> UncleanableLog:
    before = log.log.segments.first.file.pread(10_000, 0)
    with pytest.raises(UncleanableLog) as caught:
        log.clean(roll=False)
    assert leftovers(log) == []
    assert log.log.segments.first.file.pread(10_000, 0) == before
    return caught.value


@pytest.mark.parametrize("size", [-1, 0, 13, 50, 10_000, 2**31 - 1])
def test_s_cmp_12_a_corrupt_size_makes_a_log_uncleanable(size: int) -> None:
    log = three_segments()
    damage(log, 8, struct.pack(">i", size))
    error = refused(log)
    assert error.reason is UncleanableReason.CORRUPT_BATCH
    assert log_file(DIRECTORY, 0) in str(error)


def test_s_cmp_12_a_wrong_checksum_is_not_given_a_right_one() -> None:
    log = three_segments()
    damage(log, 70, b"\xff")
    assert refused(log).reason is UncleanableReason.CORRUPT_BATCH


def test_s_cmp_12_an_unknown_codec() -> None:
    log = CompactedLog()
    log.keys(1, 2, codec=CompressionType.LZ4)
    log.log.roll()
    segment = log.log.segments.first
    data = bytearray(segment.file.pread(segment.size, 0))
    data[22] = 6
    struct.pack_into(">I", data, 17, crc_of(data, 0, len(data)))
    damage(log, 0, bytes(data))
    assert refused(log).reason is UncleanableReason.UNSUPPORTED_CODEC


def test_s_cmp_12_a_message_larger_than_max_message_bytes_is_cleaned_like_others() -> None:
    log = CompactedLog(max_message_bytes=10**7)
    log.put((b"a", bytes(3_000_000)), (b"b", bytes(100)))
    log.put((b"a", b"small"))
    log.log.update_config(CompactedLog(max_message_bytes=1000).config)
    stats = log.clean(io_buffer_bytes=1)
    assert log.offsets() == [1, 2]
    assert stats.bytes_read > 3_000_000 > stats.bytes_written


@pytest.mark.parametrize("step_bytes", [1, 1 << 20])
def test_s_cmp_15_an_overflowed_segment_is_split_and_the_run_ends(step_bytes: int) -> None:
    log = CompactedLog()
    for key in range(4):
        log.keys(key)
    log.log.roll()
    log.keys(0)
    segment = log.log.segments.first
    data = bytearray(segment.file.pread(segment.size, 0))
    far = MAX_RELATIVE_OFFSET + 1
    starts = [segment.size // 4 * at for at in range(4)]
    # A cleaner of an old Kafka left such a segment: offsets 0, 1, then far away.
    for at, offset in zip(starts, (0, 1, far, far + 1), strict=True):
        struct.pack_into(">q", data, at, offset)
    damage(log, 0, bytes(data))
    active = log.log.segments.active
    log.log.segments.remove(active.base_offset)
    active.base_offset = far + 2
    log.log.segments.add(active)
    request = log.request()
    with pytest.raises(CleaningAborted, match="split"):
        clean_here(log.log, request, step_bytes=step_bytes)
    pieces = [(one.base_offset, one.read_end()[0]) for one in list(log.log.segments)[:-1]]
    assert pieces == [(0, 2), (far, far + 2)]
    assert leftovers(log) == []
    stats = clean_here(log.log, log.request())
    assert stats.messages_read == 4


def test_all_that_travels_to_a_child_and_back_pickles() -> None:
    log = three_segments(segment_bytes=300)
    log.transactional(1, 0, (b"a", b"1"))
    log.abort(1)
    log.log.roll()
    cleaning = Cleaning(log, step_bytes=100)
    while not cleaning.done:
        assert cleaning.call is not None
        _, *args = cleaning.call.values
        rest = args[1:] if cleaning.call.work is work.begin else args
        assert pickle.loads(pickle.dumps(rest)) == rest
        cleaning.run()
        returned = pickle.loads(pickle.dumps(cleaning.returned))
        assert returned == cleaning.returned
        cleaning.returned = returned
        cleaning.complete()
    assert isinstance(cleaning.result, CleanerStats)
    for error in (
        UncleanableLog(UncleanableReason.CORRUPT_BATCH, "x"),
        SegmentOverflow(3, 4),
        CleaningAborted("y"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_steps_are_as_small_as_they_are_asked_to_be() -> None:
    log = three_segments()
    for _ in range(30):
        log.keys(*range(200))
    log.log.roll()
    request = log.request(io_buffer_bytes=1)
    state: dict[str, Any] = {}
    work.begin(state, log.fs, request)
    read = [0]
    while not (step := work.map_some(state, 1)).is_done:
        read.append(step.read_bytes)
    assert len(read) >= len(request.segments)
    assert step.end_offset == request.first_uncleanable_offset
    work.end(state)
    assert state == {}


def test_nothing_dirty_is_nothing_done() -> None:
    log = three_segments()
    log.clean(roll=False)
    before = log.seen()
    log.clean(roll=False)
    assert log.seen() == before
