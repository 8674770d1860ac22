"""Which log is cleaned next, and what holds it back.

S-CMP-1, S-CMP-2, S-CMP-11, S-CMP-13, S-CMP-14.
"""

import logging
from dataclasses import replace

import pytest

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage import log_tasks
from storage.cleaner.manager import FRESH_S
from storage.cleaner.planner import Due, NotDue, RatioBelow
from storage.cleaner.states import LogCleaningAborted, LogCleaningInProgress, LogCleaningPaused
from storage.errors import BeingRepaired
from storage.log.log import Log
from storage.log.results import StartOffsetReason
from storage.waits import at_once
from tests.support.begun import begin
from tests.support.compacted_logs import CompactedLogs, compacted
from tests.support.log_tasks import run_task

TP = TopicPartition("t", 0)


def test_s_cmp_1_the_filthiest_log_comes_first_and_then_the_next() -> None:
    logs = CompactedLogs(compacted(min_cleanable_dirty_ratio=0.1))
    for topic, cleaned in (("one", 4), ("two", 2), ("three", 3)):
        log = logs.filled(topic, cleaned)
        logs.clean(log)
        logs.extend(log, 5)
    first = logs.grabbed()
    assert first.log.topic_partition.topic == "two"
    order = [logs.cleaner.grab_filthiest() for _ in range(3)]
    assert [one and one.log.topic_partition.topic for one in order] == ["three", "one", None]


def test_s_cmp_1_a_log_without_anything_new_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = CompactedLogs()
    log = logs.filled()
    read: list[str] = []
    real = logs.cleaner.facts_of

    def noting(log: Log) -> object:
        read.append(log.topic_partition.topic)
        return real(log)

    monkeypatch.setattr(logs.cleaner, "facts_of", noting)
    work = logs.grabbed()
    assert read
    read.clear()
    logs.cleaner.done_cleaning(work, log.segments.active.base_offset)
    assert (logs.grab(), read) == (None, [])
    log.roll()
    logs.grab()
    assert read


def test_s_cmp_1_a_log_that_is_being_cleaned_is_not_given_to_another_cleaner() -> None:
    logs = CompactedLogs()
    logs.filled()
    work = logs.grabbed()
    assert logs.cleaner.state_of(TP) == LogCleaningInProgress()
    assert logs.grab() is None
    logs.cleaner.done_cleaning(work, None)
    assert logs.cleaner.state_of(TP) is None
    assert logs.grab() is not None


def test_s_cmp_1_what_was_found_is_looked_at_again_when_it_is_taken_and_when_it_is_old() -> None:
    logs = CompactedLogs()
    for topic in ("one", "two"):
        logs.filled(topic)
    at_once(logs.cleaner.look())
    logs.manager.update_topic_config("one", TopicConfig())
    work = logs.cleaner.grab_filthiest()
    assert work is not None
    assert work.log.topic_partition.topic == "two"
    logs.cleaner.done_cleaning(work, None)
    at_once(logs.cleaner.look())
    logs.clock.advance(FRESH_S + 0.1)
    assert logs.cleaner.grab_filthiest() is None


def test_s_cmp_1_looking_at_many_logs_gives_others_their_turn_and_opens_no_file() -> None:
    logs = CompactedLogs()
    for number in range(250):
        logs.filled(f"t{number}", 2)
    logs.restart()
    assert begin(logs.cleaner.look()).pauses == 250
    assert all(
        segment.files.opened is None for log in logs.manager.all_logs() for segment in log.segments
    )


def test_s_cmp_1_with_a_lag_there_is_a_turn_for_each_question() -> None:
    logs = CompactedLogs(compacted(min_compaction_lag_ms=5))
    logs.filled("t", 4)
    logs.clock.advance(60)
    assert begin(logs.cleaner.look()).pauses == 1 + 3


def test_s_cmp_2_the_checkpoint_is_corrected_when_it_is_below_the_log_start(caplog) -> None:
    logs = CompactedLogs()
    log = logs.filled()
    logs.cleaner.checkpoints.set(log, 1)
    log.maybe_increment_log_start_offset(3, StartOffsetReason.CLIENT_RECORD_DELETION)
    with caplog.at_level(logging.WARNING):
        work = logs.grabbed()
    assert work.due.extent.first_dirty_offset == 3
    assert "Resetting first dirty offset of" in caplog.text
    run_task(logs.manager, log_tasks.FLUSH_ROLLED)
    assert logs.written() == {TP: 3}


# ---- S-CMP-11: aborted, paused, uncleanable


def test_s_cmp_11_truncation_ends_a_cleaning_and_lowers_the_checkpoint_on_the_disk() -> None:
    logs = CompactedLogs()
    log = logs.filled()
    end = logs.clean(log)
    logs.extend(log, 8)
    run_task(logs.manager, log_tasks.FLUSH_ROLLED)
    assert logs.written() == {TP: end}
    work = logs.grabbed()
    log.truncate_to(7)
    assert not logs.cleaner.is_wanted(work)
    assert logs.written() == {TP: log.segments.active.base_offset}
    logs.cleaner.done_cleaning(work, 20)
    assert logs.cleaner.state_of(TP) is None
    assert logs.cleaner.checkpoints.get(log) == log.segments.active.base_offset <= 7


def test_s_cmp_11_a_truncation_of_the_active_segment_disturbs_no_cleaning() -> None:
    logs = CompactedLogs()
    log = logs.filled()
    logs.append(log)
    end = logs.clean(log)
    log.truncate_to(log.log_end_offset - 1)
    assert logs.cleaner.checkpoints.get(log) == end


def test_s_cmp_11_a_log_that_is_emptied_is_dirty_from_its_new_start() -> None:
    logs = CompactedLogs()
    log = logs.filled()
    logs.clean(log)
    log.truncate_fully_and_start_at(5)
    assert logs.written() == {TP: 5}


def test_s_cmp_11_deletion_ends_a_cleaning_and_the_next_log_of_that_name_waits_for_its_end() -> (
    None
):
    logs = CompactedLogs()
    log = logs.filled()
    work = logs.grabbed()
    logs.manager.async_delete(TP)
    assert logs.cleaner.state_of(TP) == LogCleaningAborted()
    again = logs.filled()
    assert again is not log
    assert logs.grab() is None
    logs.cleaner.done_cleaning(work, 99)
    assert logs.cleaner.checkpoints.get(again) is None
    assert logs.grab() is not None


def test_s_cmp_11_a_paused_partition_is_left_alone_until_it_is_resumed_as_often() -> None:
    logs = CompactedLogs()
    logs.filled()
    logs.cleaner.pause(TP)
    logs.cleaner.pause(TP)
    assert logs.grab() is None
    logs.cleaner.resume(TP)
    assert logs.cleaner.state_of(TP) == LogCleaningPaused(1)
    assert logs.grab() is None
    logs.cleaner.resume(TP)
    assert logs.grab() is not None


def test_s_cmp_11_a_log_that_was_paused_and_deleted_is_resumed_in_vain() -> None:
    logs = CompactedLogs()
    logs.filled()
    logs.cleaner.pause(TP)
    logs.manager.async_delete(TP)
    logs.cleaner.resume(TP)
    assert logs.cleaner.state_of(TP) is None


def test_s_cmp_11_an_uncleanable_partition_is_left_alone_until_the_next_start(caplog) -> None:
    logs = CompactedLogs()
    log = logs.filled()
    work = logs.grabbed()
    logs.cleaner.mark_uncleanable(log, "corrupt batch: at 7")
    logs.cleaner.done_cleaning(work, None)
    assert "Marking partition" in caplog.text
    assert logs.grab() is None
    statistics = logs.cleaner.statistics(("/a", "/b"))
    assert statistics.uncleanable_partitions == {"/a": 1, "/b": 0}
    assert statistics.uncleanable_bytes == {"/a": log.size - log.segments.active.size, "/b": 0}
    assert logs.cleaner.why_uncleanable(log) == "corrupt batch: at 7"
    logs.restart()
    assert logs.grab() is not None


def test_s_cmp_11_a_deleted_partition_is_uncleanable_no_more() -> None:
    logs = CompactedLogs()
    logs.cleaner.mark_uncleanable(logs.filled(), "why")
    logs.manager.async_delete(TP)
    assert logs.cleaner.statistics(("/a",)).uncleanable_partitions == {"/a": 0}
    logs.filled()
    assert logs.grab() is not None


def test_s_cmp_11_a_segment_that_cannot_be_read_makes_a_partition_uncleanable(monkeypatch) -> None:
    from protocol.errors import ErrorCode, KafkaError

    logs = CompactedLogs(compacted(min_compaction_lag_ms=5))
    log = logs.filled()

    def damaged(self, segment):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "no batch at 7")

    monkeypatch.setattr(type(log.times), "largest_timestamp_of", damaged)
    assert logs.grab() is None
    assert "no batch at 7" in (logs.cleaner.why_uncleanable(log) or "")


def test_an_index_that_is_being_rebuilt_puts_a_log_off(monkeypatch) -> None:
    logs = CompactedLogs(compacted(min_compaction_lag_ms=5))
    log = logs.filled()

    def being_repaired(self, segment):
        raise BeingRepaired("its index")

    with monkeypatch.context() as patched:
        patched.setattr(type(log.times), "largest_timestamp_of", being_repaired)
        assert logs.grab() is None
        assert logs.cleaner.why_uncleanable(log) is None
    logs.clock.advance(60)
    assert logs.grab() is not None


# ---- S-CMP-13: policies that change


def test_s_cmp_13_a_topic_that_is_compacted_no_more_is_let_go_of() -> None:
    logs = CompactedLogs()
    logs.filled()
    work = logs.grabbed()
    assert logs.cleaner.is_wanted(work)
    logs.manager.update_topic_config(
        "t", replace(logs.config, cleanup_policy=frozenset({"delete"}))
    )
    assert not logs.cleaner.is_wanted(work)
    logs.cleaner.done_cleaning(work, 10)
    assert logs.grab() is None
    logs.manager.update_topic_config("t", logs.config)
    assert logs.cleaner.checkpoints.get(work.log) is None
    assert logs.grab() is not None


def test_s_cmp_13_what_came_while_a_topic_was_not_compacted_is_dirty() -> None:
    logs = CompactedLogs()
    log = logs.filled()
    end = logs.clean(log)
    logs.manager.update_topic_config("t", TopicConfig(segment_bytes=400))
    logs.extend(log, 9)
    logs.manager.update_topic_config("t", logs.config)
    verdict = logs.cleaner.verdict_of(log)
    assert isinstance(verdict, Due)
    assert verdict.extent.first_dirty_offset == end


def test_s_cmp_13_nothing_is_deleted_from_a_log_that_is_being_cleaned_or_cannot_be() -> None:
    logs = CompactedLogs(compacted("delete", retention_ms=1000))
    log = logs.filled()
    plain = logs.filled("plain", config=TopicConfig(segment_bytes=400, retention_ms=1000))
    work = logs.grabbed()
    logs.clock.advance(2)
    at_once(logs.manager.apply_retention_to_compacted())
    assert len(log.segments) == 4
    logs.cleaner.mark_uncleanable(log, "why")
    logs.cleaner.done_cleaning(work, None)
    at_once(logs.manager.apply_retention_to_compacted())
    assert len(log.segments) == 4
    assert len(plain.segments) == 4, "the retention task does that"


def test_what_a_look_has_found_is_told() -> None:
    logs = CompactedLogs(compacted(max_compaction_lag_ms=1000))
    logs.filled("one")
    logs.filled("two", 3, compacted(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=99_000))
    logs.clock.advance(5)
    assert logs.grab() is not None
    statistics = logs.cleaner.statistics(())
    assert statistics.max_dirty_percent == 100
    assert statistics.in_progress == 1
    assert statistics.look.cleanable == 1
    assert (statistics.look.delayed, statistics.look.max_delay_ms) == (1, 4000)
    logs.clock.advance(7)
    assert logs.cleaner.statistics(()).time_since_last_run_ms == 7000
    two = logs.cleaner.verdict_of(logs.log("two"))
    assert isinstance(two, NotDue)
    assert isinstance(two.reasons[0], RatioBelow)
