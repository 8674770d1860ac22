"""S-CMP-14: `cleaner-offset-checkpoint`, file and moments."""

import errno

import pytest

from protocol.types import TopicPartition
from storage import log_tasks
from storage.checkpoint import OffsetCheckpoint
from storage.errors import OutOfResources
from storage.paths import CLEANER_CHECKPOINT, join, parent_dir
from storage.waits import at_once
from tests.support.compacted_logs import CompactedLogs
from tests.support.log_tasks import run_task

TP = TopicPartition("t", 0)


def flush(logs: CompactedLogs) -> None:
    run_task(logs.manager, log_tasks.FLUSH_ROLLED)


def test_s_cmp_14_the_end_of_a_cleaning_is_written_and_found_again() -> None:
    logs = CompactedLogs()
    log = logs.filled()
    end = logs.clean(log)
    flush(logs)
    assert logs.fs.read_bytes("/a/cleaner-offset-checkpoint") == f"0\n1\nt 0 {end}\n".encode()
    logs.kill()
    assert logs.cleaner.checkpoints.get(logs.log()) == end
    assert logs.grab() is None


def test_s_cmp_14_an_orderly_stop_writes_it_at_once() -> None:
    logs = CompactedLogs()
    end = logs.clean(logs.filled())
    logs.restart()
    assert logs.written() == {TP: end}


def test_s_cmp_14_one_that_does_not_change_is_not_written() -> None:
    logs = CompactedLogs()
    logs.clean(logs.filled())
    flush(logs)
    logs.fs.unlink("/a/cleaner-offset-checkpoint")
    flush(logs)
    assert not logs.fs.exists("/a/cleaner-offset-checkpoint")


def test_s_cmp_14_a_deleted_partition_is_not_named_when_there_is_another_of_its_name() -> None:
    logs = CompactedLogs()
    logs.clean(logs.filled())
    flush(logs)
    logs.manager.async_delete(TP)
    # Nothing reads it before there is another log of that name.
    logs.filled(segments=2)
    assert TP not in logs.written()
    logs.kill()
    assert logs.cleaner.checkpoints.get(logs.log()) is None


def test_s_cmp_14_a_deleted_partition_is_dropped_from_the_file_soon() -> None:
    logs = CompactedLogs()
    logs.clean(logs.filled())
    flush(logs)
    logs.manager.async_delete(TP)
    flush(logs)
    assert logs.written() == {}


def test_s_cmp_14_what_kafka_left_of_partitions_that_are_gone_is_dropped() -> None:
    logs = CompactedLogs()
    log = logs.filled()
    at_once(logs.manager.shutdown())
    OffsetCheckpoint(logs.fs, join("/a", CLEANER_CHECKPOINT)).write(
        {TP: 5, TopicPartition("gone", 3): 8}
    )
    OffsetCheckpoint(logs.fs, join("/b", CLEANER_CHECKPOINT)).write({TP: 9})
    logs.start()
    assert logs.cleaner.checkpoints.get(logs.log()) == 5
    flush(logs)
    assert (logs.written("/a"), logs.written("/b")) == ({TP: 5}, {})
    assert parent_dir(log.dir) == "/a"


@pytest.mark.parametrize("content", [b"", b"0\n", b"0\n1\n", b"nonsense", b"1\n0\n", b"\xff"])
def test_s_cmp_14_a_file_that_makes_no_sense_is_an_empty_one(content: bytes) -> None:
    logs = CompactedLogs()
    logs.filled()
    at_once(logs.manager.shutdown())
    logs.fs.write_atomic("/a/cleaner-offset-checkpoint", (content,))
    logs.start()
    assert logs.cleaner.checkpoints.get(logs.log()) is None


def test_s_cmp_14_what_a_crash_has_cut_off_was_not_cleaned(caplog) -> None:
    logs = CompactedLogs()
    log = logs.filled()
    at_once(logs.manager.shutdown())
    OffsetCheckpoint(logs.fs, join("/a", CLEANER_CHECKPOINT)).write({TP: log.log_end_offset + 1})
    logs.start()
    assert logs.cleaner.checkpoints.get(logs.log()) is None
    assert "which is larger than the log end offset" in caplog.text
    flush(logs)
    assert logs.written() == {}


def moved(logs: CompactedLogs) -> None:
    """The partition lies in /b."""
    source = logs.log()
    future = logs.manager.future_log(TP) or logs.manager.moves.create_future_log(TP, "/b")
    while len(future.segments) < len(source.segments) or (
        future.log_end_offset < source.log_end_offset
    ):
        logs.append(future)
    logs.manager.moves.retire_source(TP)
    logs.manager.moves.promote_future(TP)


def test_s_cmp_14_a_moved_partition_takes_its_checkpoint_along() -> None:
    logs = CompactedLogs()
    end = logs.clean(logs.filled())
    flush(logs)
    moved(logs)
    assert parent_dir(logs.log().dir) == "/b"
    assert logs.cleaner.checkpoints.get(logs.log()) == end
    flush(logs)
    assert (logs.written("/a"), logs.written("/b")) == ({}, {TP: end})


def test_s_cmp_14_what_was_cleaned_while_a_copy_was_made_is_not_clean_in_the_copy() -> None:
    logs = CompactedLogs()
    log = logs.filled()
    end = logs.clean(log)
    logs.extend(log, 9)
    logs.manager.moves.create_future_log(TP, "/b")
    assert logs.clean(log) > end
    moved(logs)
    assert logs.cleaner.checkpoints.get(logs.log()) == end


def test_s_cmp_14_what_follows_a_cut_is_not_clean_in_a_copy_that_began_before() -> None:
    logs = CompactedLogs()
    log = logs.filled()
    end = logs.clean(log)
    logs.manager.moves.create_future_log(TP, "/b")
    log.truncate_to(end - 1)
    cut = log.segments.active.base_offset
    logs.extend(log, 9)
    assert logs.clean(log) > end > cut > 0
    moved(logs)
    assert logs.cleaner.checkpoints.get(logs.log()) == cut


def test_s_cmp_14_a_copy_that_is_cut_leaves_the_cleaning_of_its_source_alone() -> None:
    logs = CompactedLogs()
    log = logs.filled()
    end = logs.clean(log)
    logs.extend(log, 9)
    work = logs.grabbed()
    future = logs.manager.moves.create_future_log(TP, "/b")
    future.truncate_fully_and_start_at(3)
    assert logs.cleaner.is_wanted(work)
    assert logs.cleaner.checkpoints.get(log) == end


def test_s_cmp_14_a_cut_without_a_descriptor_for_the_file_is_no_failure() -> None:
    logs = CompactedLogs()
    log = logs.filled()
    logs.clean(log)
    flush(logs)
    logs.fs.fail("open", "/a/cleaner-offset-checkpoint*", errno=errno.EMFILE)
    assert log.truncate_to(2)
    assert logs.offline == []
    flush(logs)
    assert logs.written() == {TP: log.segments.active.base_offset}


def test_s_cmp_14_a_cleaning_of_the_log_that_is_moved_away_ends_and_none_begins_meanwhile() -> None:
    logs = CompactedLogs()
    logs.filled()
    work = logs.grabbed()
    logs.manager.moves.create_future_log(TP, "/b")
    assert logs.cleaner.is_wanted(work)
    logs.manager.moves.retire_source(TP)
    assert not logs.cleaner.is_wanted(work)
    logs.cleaner.done_cleaning(work, None)
    assert logs.grab() is None
    logs.manager.moves.restore_source(TP)
    assert logs.grab() is not None


def test_s_cmp_14_an_uncleanable_partition_stays_so_where_it_is_moved_to() -> None:
    logs = CompactedLogs()
    logs.cleaner.mark_uncleanable(logs.filled(), "why")
    moved(logs)
    assert logs.grab() is None
    assert logs.cleaner.statistics(("/a", "/b")).uncleanable_partitions == {"/a": 0, "/b": 1}


def test_s_cmp_14_a_failed_directory_is_forgotten_and_the_others_go_on() -> None:
    logs = CompactedLogs()
    one, two = logs.filled("one"), logs.filled("two")
    assert (parent_dir(one.dir), parent_dir(two.dir)) == ("/a", "/b")
    work = logs.grabbed()
    failing = parent_dir(work.log.dir)
    logs.cleaner.checkpoints.set(work.log, 3)
    logs.manager.report_failure(failing, OSError(errno.EIO, "gone"))
    assert not logs.cleaner.is_wanted(work)
    logs.cleaner.done_cleaning(work, 10)
    flush(logs)
    assert not logs.fs.exists(join(failing, CLEANER_CHECKPOINT))
    other = logs.grabbed()
    assert other.log is not work.log


def test_s_cmp_14_a_disk_that_refuses_the_file_goes_offline() -> None:
    logs = CompactedLogs()
    logs.clean(logs.filled())
    logs.fs.fail("rename", "/a/cleaner-offset-checkpoint*")
    flush(logs)
    assert logs.offline == ["/a"]


def test_s_cmp_14_a_shortage_of_descriptors_does_not_take_the_disk_and_is_tried_again() -> None:
    logs = CompactedLogs()
    end = logs.clean(logs.filled())
    logs.fs.fail("open", "/a/cleaner-offset-checkpoint*", errno=errno.EMFILE)
    with pytest.raises(OutOfResources):
        flush(logs)
    assert logs.offline == []
    flush(logs)
    assert logs.written() == {TP: end}
