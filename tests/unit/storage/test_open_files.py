"""Segments take turns at having their files open."""

import errno
from collections.abc import Callable

import pytest

from storage.errors import OutOfResources
from storage.log.log import Log
from storage.log.results import FileSlice, StartOffsetReason
from storage.open_files import FILES_OF_A_SEGMENT, OpenFiles
from storage.waits import at_once
from tests.support.log_builder import LogBuilder

CONFIG = {"segment_bytes": 300, "index_interval_bytes": 0, "segment_index_bytes": 4096}


def connect(builder: LogBuilder, openings: OpenFiles) -> LogBuilder:
    builder.log.connect(failed=lambda *_: None, rolled=lambda *_: None, openings=openings)
    return builder


def connected(most: int, appends: int = 0) -> tuple[LogBuilder, OpenFiles]:
    builder = LogBuilder(**CONFIG)
    openings = OpenFiles(most * FILES_OF_A_SEGMENT)
    connect(builder, openings)
    for number in range(appends):
        builder.append(value=b"%d" % number * 60)
    return builder, openings


def open_segments(builder: LogBuilder) -> list[int]:
    return [s.base_offset for s in builder.log.segments if s.files.opened is not None]


def test_rolled_segments_let_go_of_their_files_oldest_first() -> None:
    builder, openings = connected(2, appends=12)
    bases = builder.log.segments.base_offsets
    assert len(bases) > 4
    assert open_segments(builder) == bases[-2:]
    assert len(openings) == 2
    assert openings.closed == len(bases) - 2


def test_what_was_let_go_of_is_read_and_appended_to_as_ever() -> None:
    builder, _ = connected(2, appends=12)
    values = builder.records()
    assert len(values) == 12
    for segment in builder.log.segments:
        segment._check()
        assert segment.read_end()[1]
    active = builder.log.segments.active
    assert active.files.opened is None or active.indexes.offset.entries >= 0
    for number in range(12, 15):
        builder.append(value=b"%d" % number * 60)
    assert len(builder.records()) == 15
    builder.log._check()


def test_a_slice_outlives_the_closing_of_its_file() -> None:
    builder, _ = connected(2, appends=3)
    records = builder.log.read(0, 10_000).records
    assert isinstance(records, FileSlice)
    before = records.read()
    for number in range(3, 15):
        builder.append(value=b"%d" % number * 60)
    assert builder.log.segments.first.files.opened is None
    assert records.read() == before


def test_an_active_segment_that_grows_is_spared_once() -> None:
    first, openings = connected(2, appends=1)
    others = [LogBuilder(**CONFIG) for _ in range(2)]
    first.append(value=b"more")
    for other in others:
        connect(other, openings)
        assert other.log.segments.active.file
    assert first.log.segments.active.files.opened is not None
    assert others[0].log.segments.active.files.opened is None


def test_indexes_are_as_after_a_clean_stop_when_an_active_segment_lets_go() -> None:
    builder, _ = connected(2, appends=2)
    active = builder.log.segments.active
    entries = active.indexes.offset.entries
    active.let_go()
    assert builder.fs.size(active.files.offset_index_path) == 8 * entries
    assert active.indexes.offset.entries == entries
    at_once(builder.log.close())
    assert len(builder.open(clean=True).segments) == 1


def test_trouble_with_a_closed_one_is_not_the_trouble_of_the_opened_one() -> None:
    builder, openings = connected(2, appends=1)
    other = connect(LogBuilder(**CONFIG), openings)
    builder.fs.fail("truncate", "*index", times=None, errno=errno.EIO)
    third = connect(LogBuilder(**CONFIG), openings)
    for each in (other, third):
        each.append(value=b"x")
    assert builder.log.segments.active.files.opened is None
    builder.fs.heal()
    assert len(builder.records()) == 1
    builder.append(value=b"y")
    assert len(builder.records()) == 2


def test_a_segment_that_is_gone_counts_no_more() -> None:
    builder, openings = connected(4, appends=4)
    before = len(openings)
    builder.log.take_out_of_service()
    assert before
    assert len(openings) == 0


@pytest.mark.parametrize(
    "shrink",
    [
        lambda log: log.truncate_to(3),
        lambda log: log.truncate_fully_and_start_at(3),
        lambda log: log.truncate_fully_and_start_at(100),
        lambda log: (
            log.update_high_watermark(12),
            log.maybe_increment_log_start_offset(10, StartOffsetReason.CLIENT_RECORD_DELETION),
            log.delete_old_segments(),
        ),
        lambda log: at_once(log.close()),
        lambda log: log.release(),
    ],
    ids=["cut", "restarted within", "restarted beyond", "deleted from", "closed", "released"],
)
def test_whatever_is_taken_out_of_a_log_counts_no_more(shrink: Callable[[Log], object]) -> None:
    builder, openings = connected(100, appends=12)
    shrink(builder.log)
    assert len(openings) == len(open_segments(builder))


def test_a_caller_that_finds_no_descriptor_makes_room_for_the_next() -> None:
    builder, openings = connected(100, appends=24)
    before = len(openings)
    builder.fs.fail("open", "*0.log", nth=1, errno=errno.EMFILE)
    builder.log.segments.first.let_go()
    with pytest.raises(OutOfResources):
        builder.log.read(0, 1)
    assert len(openings) == before - before // 4
    assert builder.log.segments.active.files.opened is not None
    assert builder.log.read(0, 1).records
    assert len(builder.records()) == 24
