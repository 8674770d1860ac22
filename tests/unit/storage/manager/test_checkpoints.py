"""Checkpoints in steps, beside what the event loop does with the logs (S-FL-3, S-RET-8)."""

from collections.abc import Callable

import pytest

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage import log_tasks
from storage.log.results import StartOffsetReason
from storage.paths import temporary_file
from storage.waits import PAUSE, Work, at_once
from tests.support.beside import Moment, at_every_moment
from tests.support.calls import Calls
from tests.support.log_tasks import begin_task, run_task
from tests.support.managed_logs import Managed

TP = TopicPartition("t", 0)
CONFIG = TopicConfig(file_delete_delay_ms=0)
POINTS, STARTS = "/a/recovery-point-offset-checkpoint", "/a/log-start-offset-checkpoint"
TASKS = (log_tasks.RECOVERY_POINT_CHECKPOINT, log_tasks.LOG_START_CHECKPOINT)


class Broker(Managed):
    """One directory, one partition: [3, 8), all flushed."""

    def __init__(self) -> None:
        super().__init__("/a", CONFIG)
        self.grow(8)
        self.log().maybe_increment_log_start_offset(3, StartOffsetReason.CLIENT_RECORD_DELETION)
        at_once(self.log().flush())

    def grow(self, count: int) -> None:
        for _ in range(count):
            self.append(self.log())

    def work(self, name: str) -> Work[int | None]:
        return begin_task(self.manager, name)

    # Changes that may happen beside a checkpoint.

    def delete_and_make_anew(self) -> None:
        self.manager.async_delete(TP)
        self.grow(2)
        self.log().roll()
        self.grow(1)

    def truncate_below_the_start(self) -> None:
        self.log().truncate_to(1)
        self.grow(1)
        self.log().roll()

    def start_over_lower(self) -> None:
        self.log().truncate_fully_and_start_at(1)
        self.grow(2)
        self.log().roll()


INTERLOPERS = [
    Broker.delete_and_make_anew,
    Broker.truncate_below_the_start,
    Broker.start_over_lower,
]


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("interloper", INTERLOPERS)
def test_offsets_of_before_do_not_haunt_what_comes_after(
    name: str, interloper: Callable[[Broker], None]
) -> None:
    def scenario(moment: Moment) -> None:
        broker = Broker()
        moment.perform(broker.work(name), lambda: interloper(broker))
        if not moment.came:
            return
        log = broker.log()
        assert not [name for name in broker.fs.list_dir("/a") if name.endswith(".tmp")]
        broker.kill()
        found = broker.log()
        assert found.log_end_offset == log.log_end_offset
        assert found.log_start_offset == log.log_start_offset
        assert found.recovery_point <= log.recovery_point
        assert broker.offline == []

    assert at_every_moment(scenario) > 10


def test_a_partition_that_went_while_the_checkpoint_was_written_stays_marked() -> None:
    broker = Broker()
    broker.append(broker.log("u"))
    at_once(broker.log("u").flush())
    checkpoint = Calls(broker.work(log_tasks.RECOVERY_POINT_CHECKPOINT))
    broker.manager.async_delete(TopicPartition("u", 0))
    checkpoint.finish()
    assert b"u 0 1" in broker.fs.read_bytes(POINTS)
    broker.log("u")
    assert b"u 0" not in broker.fs.read_bytes(POINTS)


def test_s_fl_2_a_recovery_point_that_a_truncation_makes_untrue_is_lowered_before() -> None:
    """`test_aborted_notes` has the order of the operations."""
    broker = Broker()
    run_task(broker.manager, log_tasks.RECOVERY_POINT_CHECKPOINT)
    broker.log().truncate_to(6)
    assert broker.fs.read_bytes(POINTS) == b"0\n1\nt 0 6\n"
    broker.log().truncate_fully_and_start_at(2)
    assert broker.fs.read_bytes(POINTS) == b"0\n1\nt 0 2\n"


def test_s_fl_3_a_log_start_that_a_truncation_lowers_is_written_at_once() -> None:
    broker = Broker()
    run_task(broker.manager, log_tasks.LOG_START_CHECKPOINT)
    assert broker.fs.read_bytes(STARTS) == b"0\n1\nt 0 3\n"
    broker.log().truncate_to(1)
    assert broker.fs.read_bytes(STARTS) == b"0\n1\nt 0 1\n"
    broker.grow(1)
    broker.kill()
    assert (broker.log().log_start_offset, broker.log().log_end_offset) == (1, 2)


def test_recovery_points_of_partitions_that_are_not_there_are_taken_for_gone_by_a_start() -> None:
    broker = Broker()
    broker.fs.write_bytes(POINTS, b"0\n2\nt 0 8\nother 3 50\n")
    broker.kill()
    broker.log("other", 3)
    assert b"other" not in broker.fs.read_bytes(POINTS)


@pytest.mark.parametrize("life", ["this", "an earlier"])
def test_s_ret_8_a_log_start_that_was_written_is_not_that_of_a_new_log(life: str) -> None:
    broker = Broker()
    run_task(broker.manager, log_tasks.LOG_START_CHECKPOINT)
    if life != "this":
        broker.kill()
    broker.manager.async_delete(TP)
    broker.grow(2)
    broker.kill()
    assert (broker.log().log_start_offset, broker.log().log_end_offset) == (0, 2)


def test_thousands_of_logs_are_asked_in_turns() -> None:
    broker = Broker()
    for partition in range(1, 10):
        broker.log(partition=partition)
    work = broker.work(log_tasks.RECOVERY_POINT_CHECKPOINT)
    for _ in range(4):
        assert work.send(None) is PAUSE
    # Delete a log that the task has yet to ask, and one that it has asked.
    broker.manager.async_delete(TopicPartition("t", 9))
    broker.manager.async_delete(TopicPartition("t", 1))
    at_once(work)
    written = broker.fs.read_bytes(POINTS).splitlines()[2:]
    assert [line.split()[1] for line in written] == [b"%d" % n for n in (0, 1, 2, 3, 4, 5, 6, 7, 8)]
    # The file still names the log that the task had asked, and its directory is marked.
    run_task(broker.manager, log_tasks.FLUSH_ROLLED)
    assert b"t 1 0" not in broker.fs.read_bytes(POINTS)


def test_a_disk_that_fails_is_reported_and_the_file_stays() -> None:
    broker = Broker()
    run_task(broker.manager, log_tasks.LOG_START_CHECKPOINT)
    before = broker.fs.read_bytes(STARTS)
    broker.fs.fail("rename", "*/log-start-*")
    run_task(broker.manager, log_tasks.LOG_START_CHECKPOINT)
    assert len(broker.offline) == 1
    assert broker.fs.read_bytes(STARTS) == before


def test_s_rec_2_what_a_crash_left_of_replacements_is_removed_by_the_next_start() -> None:
    broker = Broker()
    replaced = ("leader-epoch-checkpoint", f"{0:020d}.timeindex", f"{3:020d}.snapshot")
    left = [temporary_file(path, 7) for path in (POINTS, *(f"/a/t-0/{one}" for one in replaced))]
    for path in (*left, "/a/other.tmp"):
        broker.fs.write_bytes(path, b"half")
    broker.kill()
    assert not any(broker.fs.exists(path) for path in left)
    assert broker.fs.exists("/a/other.tmp")


def test_s_start_5_a_log_that_cannot_be_closed_costs_its_directory_the_marker() -> None:
    broker = Broker()
    broker.grow(1)
    broker.fs.fail("fsync", "/a/t-0/*.log", times=None)
    at_once(broker.manager.shutdown())
    broker.fs.heal()
    assert not broker.fs.exists("/a/.kafka_cleanshutdown")
    broker.kill()
    assert broker.log().log_end_offset == 9
