"""Partitions on their way between log directories, over real logs on an in-memory disk."""

import pytest
import trio
import trio.testing

from broker.api.alter_replica_log_dirs import API, AlterReplicaLogDirsHandler
from broker.api.describe_log_dirs import DescribeLogDirsHandler
from broker.replication.append_order import appends_held_back
from broker.replication.log_mover import LogMover
from broker.world.clock import SystemClock
from broker.world.driver import Driver
from broker.world.machine import MachineWorkers
from broker.world.workers import InlineWorkers
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.types import TopicPartition
from storage import log_tasks
from storage.log.results import StartOffsetReason
from storage.paths import parent_dir
from storage.waits import Signal, at_once
from tests.support.api_calls import call
from tests.support.broker_bench import batch
from tests.support.log_tasks import run_task
from tests.support.real_bench import RealBench
from tests.support.refusals import code_of

TP = TopicPartition("t", 0)
DRIVER = Driver(InlineWorkers(), SystemClock())
KEY = ApiKey.ALTER_REPLICA_LOG_DIRS


class Moves(RealBench):
    """A broker with two directories and a topic whose partition lies in /a."""

    def __init__(self, log_dirs="/a,/b", fs=None, *, is_new=True):
        super().__init__(log_dirs, fs)
        (self.partition,) = self.topic(is_new=is_new, leader_epoch=int(not is_new))
        self.mover = LogMover(self.replicas, self.logs, Driver(MachineWorkers(), SystemClock()))

    def fill(self, count=20):
        for _ in range(count):
            self.partition.append_as_leader_nowait(batch([b"v" * 50] * 3))

    def run(self, until, *, seconds=5):
        """Let the mover work until `until()` holds."""

        async def main():
            with trio.fail_after(seconds):
                await self.works(until)

        trio.run(main)

    async def works(self, until, meanwhile=trio.lowlevel.checkpoint):
        """The same on a loop that runs, with something that happens `meanwhile`."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.mover.run)
            await meanwhile()
            while not until():
                await trio.sleep(0.001)
            nursery.cancel_scope.cancel()

    def lies_in(self, directory):
        def arrived():
            log = self.logs.get_log(TP)
            return parent_dir(log.dir) == directory and self.logs.future_log(TP) is None

        return arrived

    def killed(self):
        """The same disk after kill -9."""
        return Moves(fs=self.fs.crash(keep_unsynced=True), is_new=False)

    def names(self, directory):
        return [name for name in self.fs.list_dir(directory) if name.startswith("t-0")]


@pytest.fixture
def moves():
    """With 60 records."""
    moves = Moves()
    moves.fill()
    return moves


def test_a_partition_moves_with_all_it_knows(moves):
    moves.partition.append_as_leader_nowait(
        batch([b"x"], producer_id=7, producer_epoch=0, base_sequence=0)
    )
    source = moves.partition.log
    before = moves.values(0)
    source.maybe_increment_log_start_offset(9, StartOffsetReason.CLIENT_RECORD_DELETION)
    moves.mover.move(TP, "/b")
    moves.run(moves.lies_in("/b"))
    log = moves.partition.log
    assert log is moves.logs.get_log(TP)
    assert log is not source
    assert log.dir == "/b/t-0"
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (9, 61, 61)
    assert log.leader_epochs.entries == source.leader_epochs.entries
    assert 7 in log.producers.producers
    assert log.topic_id == source.topic_id
    assert moves.values(9) == before[9:]
    log._check()
    assert all(name.endswith("-delete") for name in moves.names("/a"))
    # Retried by its producer, the batch is known.
    again = moves.partition.append_as_leader_nowait(
        batch([b"x"], producer_id=7, producer_epoch=0, base_sequence=0)
    )
    assert again.duplicate
    assert moves.fs.read_bytes("/b/recovery-point-offset-checkpoint").startswith(b"0\n1\nt 0 61")
    assert moves.fs.read_bytes("/a/recovery-point-offset-checkpoint") == b"0\n0\n"


@pytest.mark.usefixtures("loop")
async def test_a_big_append_waits_for_the_switch_and_is_in_the_new_log(moves):
    released = Signal()
    run = Driver(MachineWorkers(), SystemClock()).run

    async def hold_back():
        async with appends_held_back(moves.partition):
            await released

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, hold_back())
            await trio.testing.wait_all_tasks_blocked()
            assert moves.partition.must_wait(10)
            nursery.start_soon(run, moves.partition.append_as_leader(batch([b"late"])))
            await trio.testing.wait_all_tasks_blocked()
            assert moves.partition.log.log_end_offset == 60
            released.fire()
            moves.mover.move(TP, "/b")
            nursery.start_soon(moves.mover.run)
            while not moves.lies_in("/b")():
                await trio.sleep(0.001)
            nursery.cancel_scope.cancel()
    assert moves.values(60) == [(60, b"late")]


def test_a_move_is_resumed_after_a_crash(moves):
    moves.mover.move(TP, "/b")
    again = moves.killed()
    future = again.logs.future_log(TP)
    assert future is not None
    again.mover.resume()
    again.run(again.lies_in("/b"))
    assert len(again.values(0)) == 60


def test_a_crash_between_the_two_renames_is_finished_by_the_next_start(moves):
    moves.mover.move(TP, "/b")
    future = moves.logs.future_log(TP)
    future.appender.append_as_follower(moves.fetch(0).records)
    at_once(future.flush())
    moves.logs.moves.retire_source(TP)
    again = moves.killed()
    assert again.logs.future_log(TP) is None
    assert again.logs.get_log(TP).dir == "/b/t-0"
    assert len(again.values(0)) == 60


def test_the_own_directory_gives_a_move_up_and_another_one_redirects_it():
    moves = Moves("/a,/b,/c")
    moves.mover.move(TP, "/a")
    assert moves.logs.future_log(TP) is None
    moves.mover.move(TP, "/b")
    first = moves.logs.future_log(TP)
    moves.mover.move(TP, "/b")
    assert moves.logs.future_log(TP) is first
    moves.mover.move(TP, "/c")
    assert moves.logs.future_log(TP).dir.startswith("/c/t-0.")
    assert [name[-7:] for name in moves.names("/b")] == ["-delete"]
    moves.mover.move(TP, "/a")
    assert moves.logs.future_log(TP) is None
    moves.fill()
    moves.run(lambda: not moves.mover._moving)
    assert moves.partition.log.dir == "/a/t-0"


@pytest.mark.parametrize("given_up", [False, True])
def test_what_a_move_leaves_behind_is_removed_from_the_disk_later(moves, given_up):
    moves.mover.move(TP, "/b")
    if given_up:
        moves.mover.move(TP, "/a")
    else:
        moves.run(moves.lies_in("/b"))
    left = "/b" if given_up else "/a"
    assert [name[-7:] for name in moves.names(left)] == ["-delete"]
    run_task(moves.logs, log_tasks.DELETE_LOGS)
    assert moves.names(left)
    moves.clock.advance(60)
    run_task(moves.logs, log_tasks.DELETE_LOGS)
    assert moves.names(left) == []
    assert moves.names("/a" if given_up else "/b") == ["t-0"]
    assert len(moves.values(0)) == 60


def test_the_copy_follows_a_log_start_beyond_its_end_and_a_truncation():
    moves = Moves()
    moves.fill(4)
    moves.mover.move(TP, "/b")
    future = moves.logs.future_log(TP)
    future.appender.append_as_follower(moves.fetch(0).records)
    moves.partition.log.truncate_to(6)
    moves.mover._follow_ends(moves.partition.log, future)
    assert future.log_end_offset == 6
    moves.fill(10)
    moves.partition.log.maybe_increment_log_start_offset(
        20, StartOffsetReason.CLIENT_RECORD_DELETION
    )
    moves.run(moves.lies_in("/b"))
    assert moves.partition.log.log_start_offset == 20
    assert [offset for offset, _ in moves.values(20)] == list(range(20, 36))


@pytest.mark.parametrize("offline", ["/a", "/b"])
def test_refusals_are_those_of_kafka(offline):
    moves = Moves()
    assert code_of(moves.mover.move, TP, "/nowhere") is ErrorCode.LOG_DIR_NOT_FOUND
    missing = TopicPartition("missing", 0)
    assert code_of(moves.mover.move, missing, "/b") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    long = TopicPartition("l" * 240, 0)
    assert code_of(moves.mover.move, long, "/b") is ErrorCode.INVALID_TOPIC_EXCEPTION
    moves.logs.report_failure(offline, OSError(5, "gone"))
    assert code_of(moves.mover.move, TP, "/b") is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_target_that_fails_ends_the_move_and_nothing_else(moves):
    moves.mover.move(TP, "/b")
    moves.logs.report_failure("/b", OSError(5, "gone"))
    moves.run(lambda: not moves.mover._moving)
    assert moves.logs.future_log(TP) is None
    assert len(moves.values(0)) == 60


@pytest.mark.parametrize("operation", ["rename", "fsync_dir"])
def test_a_switch_that_fails_leaves_the_partition_where_it_was(moves, operation):
    moves.mover.move(TP, "/b")
    future = moves.logs.future_log(TP).dir
    moves.fs.fail(operation, future if operation == "rename" else "/b")
    moves.run(lambda: not moves.mover._moving)
    moves.fs.heal()
    if operation == "rename":
        assert moves.logs.offline_dirs == ("/b",)
        assert moves.logs.get_log(TP).dir == "/a/t-0"
        assert len(moves.values(0)) == 60


def test_a_topic_that_is_deleted_takes_its_copy_along(moves):
    moves.mover.move(TP, "/b")
    moves.replicas.delete_partition(TP)
    moves.run(lambda: not moves.mover._moving)
    assert [name[-7:] for name in moves.names("/b")] == ["-delete"]
    assert moves.logs.future_log(TP) is None


@pytest.mark.parametrize("version", range(API.versions[1] + 1))
def test_the_api_answers_for_each_partition_and_describe_shows_the_future_log(moves, version):
    handler = AlterReplicaLogDirsHandler(moves.mover)
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path="/b", topics=[AlterReplicaLogDirTopic(name="t", partitions=[0, 5])]
            )
        ]
    )
    response = call(handler, KEY, version, request)
    (topic,) = response.results
    assert topic.topic_name == "t"
    assert {p.partition_index: p.error_code for p in topic.partitions} == {
        0: ErrorCode.NONE,
        5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    described = call(
        DescribeLogDirsHandler(moves.logs, moves.fs),
        ApiKey.DESCRIBE_LOG_DIRS,
        4,
        DescribeLogDirsRequest(topics=None),
    )
    shown = {
        result.log_dir: [
            (partition.partition_index, partition.is_future_key, partition.offset_lag)
            for found in result.topics
            for partition in found.partitions
        ]
        for result in described.results
    }
    assert shown == {"/a": [(0, False, 0)], "/b": [(0, True, 60)]}


@pytest.mark.usefixtures("loop")
async def test_a_partition_moves_while_it_is_written_to():
    moves = Moves()
    moves.fill(3)
    moves.mover.move(TP, "/b")
    sent = []

    async def produce():
        for number in range(200):
            append = moves.partition.append_as_leader(batch([b"%d" % number]))
            info = await DRIVER.run(append)
            sent.append((info.first_offset, b"%d" % number))
            await trio.sleep(0)
            if moves.lies_in("/b")():
                break

    with trio.fail_after(60):
        await moves.works(moves.lies_in("/b"), produce)
    assert moves.values(9) == sent
    moves.partition.log._check()
    again = moves.killed()
    assert again.values(9) == sent


def test_a_coordinators_partition_is_switched_without_a_pause():
    moves = Moves()
    (partition,) = moves.topic("__consumer_offsets")
    tp = partition.topic_partition
    target = "/a" if moves.logs.dir_of(tp) == "/b" else "/b"
    partition.append_as_leader_nowait(batch([b"offsets"] * 3))
    moves.mover.move(tp, target)

    def arrived():
        # It could append at any time.
        assert not partition.must_wait(1 << 30)
        return moves.logs.dir_of(tp) == target and moves.logs.future_log(tp) is None

    moves.run(arrived)
    assert partition.log.log_end_offset == 3


def test_a_damaged_batch_stops_the_move_and_nothing_else():
    moves = Moves()
    moves.fill(3)
    segment = moves.partition.log.segments.active
    segment.file.pwrite(b"\xff", segment.size - 1)
    moves.mover.move(TP, "/b")
    moves.run(lambda: not moves.mover._moving)
    assert moves.partition.log.dir == "/a/t-0"
    assert moves.logs.future_log(TP) is not None
    assert moves.logs.offline_dirs == ()


def test_a_source_that_cannot_be_read_goes_offline(moves):
    moves.mover.move(TP, "/b")
    moves.fs.fail("pread", "/a/*.log", times=None)
    moves.run(lambda: not moves.mover._moving)
    assert moves.logs.offline_dirs == ("/a",)
    assert moves.partition.unavailable == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_copy_that_cannot_be_written_ends_the_move(moves):
    moves.mover.move(TP, "/b")
    moves.fs.fail("pwrite", "/b/*.log", times=None)
    moves.run(lambda: not moves.mover._moving)
    assert moves.logs.offline_dirs == ("/b",)
    assert len(moves.values(0)) == 60


def test_a_bug_in_a_move_is_not_hidden(moves):
    moves.mover.move(TP, "/b")
    moves.fs.fail("pwrite", "/b/*.log", errno=None)  # to say what None means is a TypeError
    with pytest.raises(ExceptionGroup) as caught:
        moves.run(lambda: False)
    assert caught.group_contains(TypeError)


@pytest.mark.parametrize("give_up", ["delete", "cancel"])
@pytest.mark.parametrize("hop", range(8))
def test_a_move_that_is_given_up_between_two_steps_leaves_nothing(give_up, hop):
    moves = Moves()
    moves.fill(3)
    moves.mover.move(TP, "/b")
    hops = []

    class GivingUp(MachineWorkers):
        async def in_thread(self, work, *values, limiter=None):
            result = await super().in_thread(work, *values, limiter=limiter)
            hops.append(work)
            if len(hops) == hop + 1:
                if give_up == "delete":
                    moves.replicas.delete_partition(TP)
                elif moves.logs.future_log(TP) is not None:
                    moves.mover.move(TP, moves.logs.dir_of(TP))
            return result

    moves.mover._workers = GivingUp()
    moves.run(lambda: not moves.mover._moving)
    assert moves.logs.future_log(TP) is None
    assert moves.logs.offline_dirs == ()
    if moves.logs.get_log(TP) is not None:
        assert len(moves.values(0)) == 9
        (directory,) = [d for d in ("/a", "/b") if "t-0" in moves.names(d)]
        assert moves.partition.log.dir == f"{directory}/t-0"
    else:
        assert give_up == "delete"
        assert all(name.endswith("-delete") for d in ("/a", "/b") for name in moves.names(d))
