"""S-CMP-1 and S-CMP-2: what may be cleaned, when it is due, and each reason why it is not."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from config.topic_config import TopicConfig
from storage.cleaner.planner import (
    ActiveSegmentOnly,
    CleanerDisabled,
    Due,
    DueReason,
    InProgress,
    LagNotOver,
    LogFacts,
    NotCompacted,
    NotDue,
    NothingDirty,
    NotReplicated,
    OpenTransaction,
    Paused,
    RatioBelow,
    ResetReason,
    Uncleanable,
    Verdict,
    judge,
)
from storage.cleaner.states import LogCleaningAborted, LogCleaningInProgress, LogCleaningPaused
from storage.waits import at_once
from tests.support.begun import begin

NOW = 1_000_000
COMPACT = TopicConfig(cleanup_policy=frozenset({"compact"}))


@dataclass(frozen=True, slots=True)
class Segment:
    base_offset: int
    size: int = 100
    timestamp: int = 1000
    first: int = 500

    def largest_timestamp(self) -> int:
        return self.timestamp

    def read_first_timestamp(self) -> int:
        return self.first


def facts(**changes: Any) -> LogFacts:
    """Segments at 0, 10, 20 and 30, the last one active; the log ends at 40."""
    known = LogFacts(
        segments=[Segment(base) for base in (0, 10, 20, 30)],
        log_start_offset=0,
        log_end_offset=40,
        last_stable_offset=40,
        checkpointed=None,
        config=COMPACT,
        now_ms=NOW,
    )
    return replace(known, **changes)


def of_topic(**config: Any) -> TopicConfig:
    return replace(COMPACT, **config)


def judged(known: LogFacts) -> Verdict:
    return at_once(judge(known))


def bounds(**changes: Any) -> tuple[int, int]:
    extent = judged(facts(**changes)).extent
    assert extent is not None
    return extent.first_dirty_offset, extent.first_uncleanable_offset


# ---- S-CMP-2: the range


def test_s_cmp_2_a_log_that_was_never_cleaned_is_dirty_from_its_start_to_the_active_segment() -> (
    None
):
    assert bounds() == (0, 30)
    assert bounds(log_start_offset=7) == (7, 30)


def test_s_cmp_2_the_dirty_part_begins_at_the_checkpoint() -> None:
    assert bounds(checkpointed=20) == (20, 30)
    assert bounds(checkpointed=15) == (15, 30)
    assert bounds(checkpointed=40) == (40, 30)


@pytest.mark.parametrize(
    ("checkpointed", "start", "reason"),
    [
        (4, 5, ResetReason.BELOW_LOG_START),
        (41, 5, ResetReason.ABOVE_LOG_END),
        (5, 5, None),
        (40, 5, None),
        (None, 5, None),
    ],
)
def test_s_cmp_2_a_checkpoint_outside_the_log_is_reset_to_its_start(
    checkpointed, start, reason
) -> None:
    verdict = judged(facts(checkpointed=checkpointed, log_start_offset=start))
    assert verdict.extent is not None
    assert verdict.extent.reset is reason
    if reason is not None:
        assert verdict.extent.first_dirty_offset == start


def test_s_cmp_2_nothing_is_cleaned_from_the_segment_of_the_last_stable_offset_on() -> None:
    assert bounds(last_stable_offset=20) == (0, 20)
    assert bounds(last_stable_offset=19) == (0, 10)
    assert bounds(last_stable_offset=3) == (0, 0)
    assert bounds(last_stable_offset=35) == (0, 30)


def test_s_cmp_2_nor_from_the_first_segment_on_that_is_younger_than_the_lag() -> None:
    young = [Segment(0), Segment(10, timestamp=NOW - 999), Segment(20), Segment(30)]
    assert bounds(segments=young, config=of_topic(min_compaction_lag_ms=1000)) == (0, 10)
    assert bounds(segments=young, config=of_topic(min_compaction_lag_ms=999)) == (0, 30)
    assert bounds(segments=young) == (0, 30)
    # Segments below the dirty part are cleaned, however young they are.
    assert bounds(segments=young, checkpointed=20, config=of_topic(min_compaction_lag_ms=1000)) == (
        20,
        30,
    )


def test_s_cmp_2_the_lowest_of_several_limits_counts() -> None:
    young = [Segment(0), Segment(10), Segment(20, timestamp=NOW), Segment(30)]
    lagging = of_topic(min_compaction_lag_ms=1)
    assert bounds(segments=young, config=lagging, last_stable_offset=12) == (0, 10)
    assert bounds(segments=young, config=lagging, last_stable_offset=25) == (0, 20)


def test_s_cmp_2_timestamps_are_asked_only_where_a_lag_is_set_and_only_where_they_matter() -> None:
    asked: list[str] = []

    def noting(what: str) -> Any:
        def ask(segment: Segment) -> int:
            asked.append(f"{what} {segment.base_offset}")
            return 1000

        return ask

    def ask_all(**changes: Any) -> tuple[int, list[str]]:
        asked.clear()
        known = facts(
            largest_timestamp_of=noting("largest"), first_timestamp_of=noting("first"), **changes
        )
        judging = begin(judge(known))
        return judging.pauses, list(asked)

    assert ask_all() == (0, [])
    turns, questions = ask_all(config=of_topic(min_compaction_lag_ms=5), last_stable_offset=15)
    assert (turns, questions) == (2, ["largest 0", "largest 10"])
    turns, questions = ask_all(config=of_topic(max_compaction_lag_ms=5), checkpointed=12)
    assert (turns, questions) == (2, ["first 10", "first 20"])


# ---- S-CMP-1: due or not


def test_s_cmp_1_the_ratio_is_of_the_bytes_that_may_be_cleaned() -> None:
    verdict = judged(facts(checkpointed=20))
    assert verdict.extent is not None
    assert (verdict.extent.clean_bytes, verdict.extent.cleanable_bytes) == (200, 100)
    assert verdict.extent.ratio == pytest.approx(1 / 3)


@pytest.mark.parametrize(("wanted", "due"), [(0.33, True), (1 / 3, False), (0.34, False)])
def test_s_cmp_1_a_log_is_due_when_its_ratio_is_above_what_is_wanted(wanted, due) -> None:
    verdict = judged(facts(checkpointed=20, config=of_topic(min_cleanable_dirty_ratio=wanted)))
    assert isinstance(verdict, Due) == due
    if isinstance(verdict, Due):
        assert verdict.reason is DueReason.RATIO
    else:
        assert verdict.reasons[0] == RatioBelow(
            ratio=pytest.approx(1 / 3), wanted=wanted, due_at_ms=None
        )


@pytest.mark.parametrize(("first", "due"), [(NOW - 1001, True), (NOW - 1000, False)])
def test_s_cmp_1_a_log_is_due_when_its_oldest_dirty_segment_is_too_old(first, due) -> None:
    segments = [Segment(0), Segment(10, first=NOW), Segment(20, first=first), Segment(30)]
    config = of_topic(max_compaction_lag_ms=1000, min_cleanable_dirty_ratio=1.0)
    verdict = judged(facts(segments=segments, checkpointed=10, config=config))
    if due:
        assert isinstance(verdict, Due)
        assert (verdict.reason, verdict.delay_ms) == (DueReason.MAX_LAG, 1)
    else:
        assert isinstance(verdict, NotDue)
        assert verdict.reasons[0] == RatioBelow(
            ratio=pytest.approx(2 / 3), wanted=1.0, due_at_ms=NOW
        )


def test_s_cmp_1_however_old_what_cannot_be_cleaned_makes_nothing_due() -> None:
    config = of_topic(max_compaction_lag_ms=1)
    verdict = judged(facts(checkpointed=20, last_stable_offset=20, config=config))
    assert isinstance(verdict, NotDue)
    assert verdict.delay_ms > 0
    assert verdict.reasons == (NotReplicated(first_offset=20),)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cleaner_enabled": False}, CleanerDisabled()),
        ({"uncleanable": "a batch is damaged"}, Uncleanable(why="a batch is damaged")),
        ({"state": LogCleaningInProgress()}, InProgress(aborted=False)),
        ({"state": LogCleaningAborted(1)}, InProgress(aborted=True)),
        ({"state": LogCleaningPaused(2)}, Paused(times=2)),
    ],
)
def test_s_cmp_1_what_is_due_by_its_bytes_may_not_be_touched_all_the_same(changes, reason) -> None:
    verdict = judged(facts(**changes))
    assert isinstance(verdict, NotDue)
    assert verdict.reasons == (reason,)
    assert verdict.extent is not None
    assert verdict.extent.cleanable_bytes == 300


def test_s_cmp_13_a_log_without_compact_in_its_policy_is_not_looked_at() -> None:
    delete = TopicConfig(min_compaction_lag_ms=5)
    verdict = judged(facts(config=delete))
    assert verdict == NotDue(reasons=(NotCompacted(policy=frozenset({"delete"})),), extent=None)
    both = TopicConfig(cleanup_policy=frozenset({"compact", "delete"}))
    assert isinstance(judged(facts(config=both)), Due)


# ---- why nothing of a log may be cleaned


def reasons(**changes: Any) -> tuple[object, ...]:
    verdict = judged(facts(**changes))
    assert isinstance(verdict, NotDue)
    return verdict.reasons


def test_all_was_cleaned() -> None:
    assert reasons(checkpointed=40) == (NothingDirty(),)
    empty = {"segments": [Segment(0, size=0)], "log_end_offset": 0, "last_stable_offset": 0}
    assert reasons(**empty) == (NothingDirty(),)


def test_what_is_dirty_lies_in_the_active_segment() -> None:
    config = of_topic(segment_bytes=1000, segment_ms=60, max_compaction_lag_ms=50)
    assert reasons(checkpointed=30, config=config)[0] == ActiveSegmentOnly(
        base_offset=30, size=100, segment_bytes=1000, segment_ms=50
    )


def test_a_transaction_is_open_and_whose() -> None:
    hanging = OpenTransaction(producer_id=7, first_offset=12, since_ms=99)
    assert reasons(checkpointed=10, last_stable_offset=12, open_transaction=hanging) == (hanging,)
    # One that begins in the active segment holds nothing back.
    later = OpenTransaction(producer_id=7, first_offset=33)
    assert isinstance(judged(facts(last_stable_offset=33, open_transaction=later)), Due)


def test_the_lag_is_not_over_and_when_it_will_be() -> None:
    young = [Segment(0), Segment(10, timestamp=NOW - 400), Segment(20), Segment(30)]
    assert reasons(
        segments=young, checkpointed=10, config=of_topic(min_compaction_lag_ms=1000)
    ) == (LagNotOver(base_offset=10, until_ms=NOW + 600),)


def test_a_ratio_that_is_too_low_tells_what_holds_the_rest_back_as_well() -> None:
    hanging = OpenTransaction(producer_id=7, first_offset=25)
    below, limit = reasons(
        checkpointed=10,
        last_stable_offset=25,
        open_transaction=hanging,
        config=of_topic(min_cleanable_dirty_ratio=0.9),
    )
    assert isinstance(below, RatioBelow)
    assert limit == hanging
