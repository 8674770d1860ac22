"""Checkpoints in steps, beside what the event loop does with the logs (S-FL-3, S-RET-8)."""

from collections.abc import Callable

import pytest

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage import log_tasks
from storage.log.log import Log
from storage.log.results import StartOffsetReason
from storage.waits import PAUSE, Work, at_once
from tests.support.beside import Moment, at_every_moment
from tests.support.calls import Calls
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.log_tasks import run_task
from tests.support.manual_clock import ManualClock

TP = TopicPartition("t", 0)
CONFIG = TopicConfig(file_delete_delay_ms=0)
POINTS, STARTS = "/a/recovery-point-offset-checkpoint", "/a/log-start-offset-checkpoint"
TASKS = (log_tasks.RECOVERY_POINT_CHECKPOINT, log_tasks.LOG_START_CHECKPOINT)


class Broker:
    """One directory, one partition: [3, 8), all flushed."""

    def __init__(self, fs: FaultyFileSystem | None = None) -> None:
        self.fs = fs or FaultyFileSystem()
        self.failed: list[object] = []
        self.manager = log_manager(
            BrokerConfig.parse({"log.dirs": "/a"}),
            ManualClock(),
            self.fs,
            on_offline=self.failed.append,
        )
        self.manager.startup(lambda topic: CONFIG)
        if fs is None:
            self.fill(8)
            self.log.maybe_increment_log_start_offset(3, StartOffsetReason.CLIENT_RECORD_DELETION)
            at_once(self.log.flush())

    @property
    def log(self) -> Log:
        return self.manager.get_or_create_log(TP, bytes(16), CONFIG, is_new=True)

    def fill(self, count: int) -> None:
        for _ in range(count):
            self.log.append_as_leader(build_batch([(1, b"k", b"v", ())]), leader_epoch=0)
        self.log.update_high_watermark(self.log.log_end_offset)

    def work(self, name: str) -> Work[object]:
        """A run of the task of that name."""
        (task,) = [task for task in self.manager.tasks() if task.name == name]
        return task.run()

    def killed(self) -> "Broker":
        return Broker(self.fs.crash(keep_unsynced=True))

    # What may happen beside a checkpoint.

    def delete_and_make_anew(self) -> None:
        self.manager.async_delete(TP)
        self.fill(2)
        self.log.roll()
        self.fill(1)

    def truncate_below_the_start(self) -> None:
        self.manager.truncate_to({TP: 1})
        self.fill(1)
        self.log.roll()

    def start_over_lower(self) -> None:
        self.manager.truncate_fully_and_start_at(TP, 1)
        self.fill(2)
        self.log.roll()


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
        log = broker.log
        found = broker.killed().log
        assert found.log_end_offset == log.log_end_offset
        assert found.log_start_offset == log.log_start_offset
        assert found.recovery_point <= log.recovery_point
        assert broker.failed == []
        assert not [name for name in broker.fs.list_dir("/a") if name.endswith(".tmp")]

    assert at_every_moment(scenario) > 10


def test_a_partition_that_went_while_the_checkpoint_was_written_stays_marked() -> None:
    broker = Broker()
    other = TopicPartition("u", 0)

    def made() -> Log:
        return broker.manager.get_or_create_log(other, bytes(16), CONFIG, is_new=True)

    made().append_as_leader(build_batch([(1, b"k", b"v", ())]), leader_epoch=0)
    at_once(made().flush())
    checkpoint = Calls(broker.work(log_tasks.RECOVERY_POINT_CHECKPOINT))
    broker.manager.async_delete(other)
    checkpoint.finish()
    assert b"u 0 1" in broker.fs.read_bytes(POINTS)
    made()
    assert b"u 0" not in broker.fs.read_bytes(POINTS)


def test_s_fl_2_a_recovery_point_that_a_truncation_makes_untrue_is_lowered_before() -> None:
    broker = Broker()
    run_task(broker.manager, log_tasks.RECOVERY_POINT_CHECKPOINT)
    for offset, cut in ((6, broker.manager.truncate_to), (4, broker.manager.truncate_to)):
        broker.fs.operations.clear()
        cut({TP: offset})
        done = [f"{op} {path}" for op, path in broker.fs.operations]
        written = next(at for at, line in enumerate(done) if line.startswith("rename /a/recovery"))
        cut_off = done.index("truncate /a/t-0/00000000000000000000.log")
        assert written < done.index("fsync_dir /a", written) < cut_off
        assert broker.fs.read_bytes(POINTS) == b"0\n1\nt 0 %d\n" % offset
    broker.log.truncate_to(3)  # by whomever it is cut
    assert broker.fs.read_bytes(POINTS) == b"0\n1\nt 0 3\n"
    broker.manager.truncate_fully_and_start_at(TP, 2)
    assert broker.fs.read_bytes(POINTS) == b"0\n1\nt 0 2\n"


def test_recovery_points_of_partitions_that_are_not_there_are_taken_for_gone_by_a_start() -> None:
    broker = Broker()
    broker.fs.write_bytes(POINTS, b"0\n2\nt 0 8\nother 3 50\n")
    again = broker.killed()
    again.manager.get_or_create_log(TopicPartition("other", 3), bytes(16), CONFIG, is_new=True)
    assert b"other" not in again.fs.read_bytes(POINTS)


def test_s_ret_8_a_log_start_that_an_earlier_life_has_written_is_not_that_of_a_new_log() -> None:
    broker = Broker()
    run_task(broker.manager, log_tasks.LOG_START_CHECKPOINT)
    again = broker.killed()
    again.manager.async_delete(TP)  # before this life has written any checkpoint
    again.fill(2)
    assert again.killed().log.log_end_offset == 2


def test_thousands_of_logs_are_asked_in_turns() -> None:
    broker = Broker()
    for partition in range(1, 10):
        tp = TopicPartition("t", partition)
        broker.manager.get_or_create_log(tp, bytes(16), CONFIG, is_new=True)
    work = broker.work(log_tasks.RECOVERY_POINT_CHECKPOINT)
    for _ in range(4):
        assert work.send(None) is PAUSE
    # One that is asked later, and one that was asked already.
    broker.manager.async_delete(TopicPartition("t", 9))
    broker.manager.async_delete(TopicPartition("t", 1))
    at_once(work)
    written = broker.fs.read_bytes(POINTS).splitlines()[2:]
    assert [line.split()[1] for line in written] == [b"%d" % n for n in (0, 1, 2, 3, 4, 5, 6, 7, 8)]
    # The one that was asked is named yet, and its directory marked.
    run_task(broker.manager, log_tasks.FLUSH_ROLLED)
    assert b"t 1 0" not in broker.fs.read_bytes(POINTS)


def test_a_disk_that_fails_is_reported_and_the_file_stays() -> None:
    broker = Broker()
    run_task(broker.manager, log_tasks.LOG_START_CHECKPOINT)
    before = broker.fs.read_bytes(STARTS)
    broker.fs.fail("rename", "*/log-start-*")
    run_task(broker.manager, log_tasks.LOG_START_CHECKPOINT)
    assert len(broker.failed) == 1
    assert broker.fs.read_bytes(STARTS) == before


def test_s_rec_2_what_a_crash_left_of_replacements_is_removed_by_the_next_start() -> None:
    broker = Broker()
    left = (f"{POINTS}.{7:016x}.tmp", f"/a/t-0/leader-epoch-checkpoint.{7:016x}.tmp")
    for path in (*left, "/a/other.tmp"):
        broker.fs.write_bytes(path, b"half")
    again = broker.killed()
    assert not any(again.fs.exists(path) for path in left)
    assert again.fs.exists("/a/other.tmp")


def test_s_start_5_a_log_that_cannot_be_closed_costs_its_directory_the_marker() -> None:
    broker = Broker()
    broker.fill(1)
    broker.fs.fail("fsync", "/a/t-0/*.log", times=None)
    at_once(broker.manager.shutdown())
    broker.fs.heal()
    assert not broker.fs.exists("/a/.kafka_cleanshutdown")
    assert broker.killed().log.log_end_offset == 9
