"""The explanation of retention agrees with what retention does."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.explain.opened import LogOpener, partitions_of
from storage.explain.retention import Kept, RetentionVerdict, explain_retention
from storage.log.results import DeletionReason, StartOffsetReason
from tests.support.log_builder import DIRECTORY, LogBuilder

HOUR = 3_600_000

segments = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=6
)  # batches, hours of age


def built_of(shape: list[tuple[int, int]], **config: object) -> LogBuilder:
    built = LogBuilder(**config)
    now = built.clock.wall_ms()
    for at, (batches, age) in enumerate(shape):
        if at and built.log.segments.active.size:
            built.log.roll()
        for _ in range(batches):
            built.append_dated(now - age * HOUR)
    return built


def explained(built: LogBuilder) -> list[RetentionVerdict]:
    return explain_retention(built.log, built.clock.wall_ms())


def taken(verdicts: list[RetentionVerdict]) -> list[tuple[int, DeletionReason]]:
    return [(one.base_offset, one.taken_by) for one in verdicts if one.taken_by is not None]


def went(built: LogBuilder) -> list[tuple[int, DeletionReason]]:
    return [(gone.base_offset, gone.reason) for gone in built.log.delete_old_segments()]


@settings(max_examples=60, deadline=None)
@given(
    shape=segments,
    policy=st.sampled_from([("delete",), ("compact",), ("compact", "delete")]),
    retention_ms=st.sampled_from([-1, 0, HOUR, 2 * HOUR]),
    retention_bytes=st.sampled_from([-1, 0, 150, 400]),
    start=st.integers(0, 6),
    watermark=st.integers(0, 12),
)
def test_s_ret_1_what_is_said_to_go_goes_by_that_rule(
    shape: list[tuple[int, int]],
    policy: tuple[str, ...],
    retention_ms: int,
    retention_bytes: int,
    start: int,
    watermark: int,
) -> None:
    built = built_of(
        shape,
        cleanup_policy=frozenset(policy),
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
    )
    log = built.log
    log.update_high_watermark(min(watermark, log.log_end_offset))
    log.maybe_increment_log_start_offset(
        min(start, log.high_watermark), StartOffsetReason.CLIENT_RECORD_DELETION
    )
    verdicts = explained(built)
    before = [(s.base_offset, s.size) for s in log.segments]
    assert [(one.base_offset, one.size) for one in verdicts] == before
    assert taken(verdicts) == went(built)
    assert all((one.taken_by is None) != (one.kept is one.held_back_by is None) for one in verdicts)


@settings(max_examples=60, deadline=None)
@given(shape=segments, retention_ms=st.sampled_from([-1, HOUR, 3 * HOUR]))
def test_s_ret_2_what_is_due_goes_then_and_not_before(
    shape: list[tuple[int, int]], retention_ms: int
) -> None:
    built = built_of(shape, retention_ms=retention_ms)
    went(built)
    left = explained(built)
    for one in left:
        if one.due_ms is None:
            assert one.kept in (Kept.UNLIMITED, Kept.EMPTY)
    for due in sorted({one.due_ms for one in left if one.due_ms is not None}):
        built.clock.advance(ms=due - 1 - built.clock.wall_ms())
        assert went(built) == []
        built.clock.advance(ms=1)
        assert [base for base, _ in went(built)] == [
            one.base_offset for one in left if one.due_ms == due
        ]


def test_s_ret_2_an_older_segment_with_younger_records_holds_the_next_back() -> None:
    built = built_of([(1, 1), (1, 3), (1, 0)], retention_ms=2 * HOUR)
    young, old, active = explained(built)
    assert (young.kept, young.held_back_by) == (Kept.YOUNG, None)
    assert (old.kept, old.held_back_by) == (None, 0)
    assert old.due_ms == young.due_ms == built.clock.wall_ms() + HOUR + 1
    assert active.due_ms == built.clock.wall_ms() + 2 * HOUR + 1


def test_s_ret_3_so_many_bytes_more_take_a_segment() -> None:
    size = len(LogBuilder().batch())
    built = built_of([(2, 0), (2, 0), (1, 0)], retention_ms=-1, retention_bytes=5 * size)
    assert taken(explained(built)) == []
    assert [one.bytes_to_come for one in explained(built)] == [2 * size, 4 * size, None]
    built.append()
    assert taken(explained(built)) == []
    built.append()
    assert taken(explained(built)) == [(0, DeletionReason.RETENTION_SIZE)]


@pytest.mark.parametrize("clean", [True, False])
def test_a_directory_is_looked_at_and_left_alone(clean: bool) -> None:
    built = built_of([(1, 3), (1, 1)], retention_ms=2 * HOUR)
    if clean:
        built.stopped()
    else:
        built.killed()
    built.fs.write_bytes("/logs/replication-offset-checkpoint", b"0\n1\nt 0 1\n")
    before = {name: built.fs.read_bytes(f"{DIRECTORY}/{name}") for name in built.names()}
    opener = LogOpener(built.fs, built.clock, Random(0), lambda _: built.config)
    for path in ("/logs", DIRECTORY):
        (view,) = partitions_of(path, built.fs)
        opened = opener.open(view)
        assert opened.first_dirty_offset is None
        assert (opened.log.log_end_offset, opened.log.high_watermark) == (2, 1)
        verdicts = explain_retention(opened.log, built.clock.wall_ms())
        assert [one.taken_by for one in verdicts] == [DeletionReason.RETENTION_TIME, None]
        assert verdicts[1].kept is Kept.HIGH_WATERMARK
    assert before == {name: built.fs.read_bytes(f"{DIRECTORY}/{name}") for name in built.names()}
