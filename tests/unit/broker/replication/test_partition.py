"""One partition: who may append, what may be seen, and the order of threaded appends."""

import threading
from functools import partial

import pytest
import trio
import trio.testing

from broker.cluster.image import PartitionImage
from broker.replication.offset_lookup import look_up_offset
from broker.replication.partition import Partition
from broker.replication.partition_state import PartitionState, Role
from broker.replication.topic_statistics import TopicStatistics
from broker.world.clock import SystemClock
from broker.world.driver import Driver
from broker.world.machine import MachineWorkers
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.log.looking import look_here
from storage.log.results import FetchIsolation
from storage.waits import at_once
from tests.support.broker_bench import NOW, batch, led
from tests.support.fake_log import FakeLog
from tests.support.refusals import code_of

TP = TopicPartition("t", 0)


def offset_for_timestamp(*asked):
    return at_once(look_up_offset(*asked, look_here))


DRIVER = Driver(MachineWorkers(), SystemClock())


def make(config=None, leader_epoch=0, threaded=256 * 1024, **leadership):
    log = FakeLog(TP, config)
    partition = Partition(
        topic_partition=TP,
        topic_id=b"t" * 16,
        log=log,
        image=led(leader_epoch),
        broker_id=1,
        statistics=TopicStatistics(),
        threaded_append_bytes=threaded,
    )
    log.leader_epochs.assign(leader_epoch, 0)
    if leadership:
        partition.lead(led(leader_epoch, **leadership))
    return partition


def test_alone_the_high_watermark_moves_with_the_append():
    partition = make()
    info = partition.append_as_leader_nowait(batch([b"a", b"b"]))
    assert (info.first_offset, info.last_offset) == (0, 1)
    assert partition.log.high_watermark == 2
    assert partition.statistics.messages_in == 2
    assert partition.statistics.bytes_in == partition.appended_bytes == info.valid_bytes


def test_with_followers_the_high_watermark_is_the_least_log_end_of_the_isr():
    partition = make(replicas=(1, 2, 3), isr=(1, 2, 3))
    partition.append_as_leader_nowait(batch([b"a", b"b"]), required_acks=-1)
    assert partition.log.high_watermark == 0
    assert not partition.record_follower_fetch(2, 2, knows_epoch=True)
    assert partition.record_follower_fetch(3, 1, knows_epoch=True)
    assert partition.log.high_watermark == 1
    assert partition.record_follower_fetch(3, 2, knows_epoch=True)
    assert partition.log.high_watermark == 2


def test_the_high_watermark_does_not_wait_for_replicas_out_of_sync():
    partition = make(replicas=(1, 2), isr=(1,))
    partition.append_as_leader_nowait(batch())
    assert partition.log.high_watermark == 1


def test_a_follower_that_stays_one_is_as_far_as_it_was():
    partition = make(replicas=(1, 2, 3), isr=(1, 2, 3))
    partition.append_as_leader_nowait(batch([b"a", b"b"]))
    partition.record_follower_fetch(2, 2, knows_epoch=True)
    assert partition.lead(led(0, (1, 2, 4), (1, 2)))
    assert partition.log.high_watermark == 2
    partition.append_as_leader_nowait(batch())
    assert not partition.lead(led(0, (1, 2, 4), (1, 2, 4)))
    partition.record_follower_fetch(2, 3, knows_epoch=True)
    assert partition.log.high_watermark == 2
    partition.record_follower_fetch(4, 3, knows_epoch=True)
    assert partition.log.high_watermark == 3


def test_a_state_is_swapped_whole_and_the_old_one_stays_as_it_was():
    partition = make(replicas=(1, 2), isr=(1, 2), leader_epoch=3)
    before = partition.state
    assert before == PartitionState(Role.LEADER, led(3, (1, 2)), ErrorCode.NONE)
    partition.follow(PartitionImage(leader=2, leader_epoch=4, replicas=(1, 2), isr=(2,)))
    assert before.role is Role.LEADER
    assert partition.state.role is Role.FOLLOWER
    assert (partition.state.image.leader, partition.leader_epoch) == (2, 4)
    assert partition.unavailable == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(partition.append_as_leader_nowait, batch()) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (
        code_of(partition.record_follower_fetch, 2, 0, knows_epoch=True)
        == ErrorCode.UNKNOWN_LEADER_EPOCH
    )
    partition.close(ErrorCode.KAFKA_STORAGE_ERROR)
    assert partition.state.role is Role.OFFLINE
    assert partition.replicas == (1, 2)
    partition.lead(led(5, (1,), (1,)))
    assert (partition.unavailable, partition.alone) == (ErrorCode.NONE, True)
    assert partition.append_as_leader_nowait(batch()).first_offset == 0


def test_a_stranger_is_no_follower():
    partition = make()
    asked = {"replica_id": 9, "fetch_offset": 0}
    assert (
        code_of(partition.record_follower_fetch, **asked, knows_epoch=True)
        == ErrorCode.UNKNOWN_LEADER_EPOCH
    )
    assert (
        code_of(partition.record_follower_fetch, **asked, knows_epoch=False)
        == ErrorCode.NOT_LEADER_OR_FOLLOWER
    )


def test_s_app_8_min_isr_is_checked_before_the_append_for_acks_all_only():
    partition = make(TopicConfig(min_insync_replicas=2), replicas=(1, 2), isr=(1,))
    assert (
        code_of(partition.append_as_leader_nowait, batch(), required_acks=-1)
        == ErrorCode.NOT_ENOUGH_REPLICAS
    )
    assert partition.log.log_end_offset == 0
    partition.append_as_leader_nowait(batch(), required_acks=1)
    assert partition.log.log_end_offset == 1


def test_min_isr_is_never_more_than_there_are_replicas():
    partition = make(TopicConfig(min_insync_replicas=2))
    partition.append_as_leader_nowait(batch(), required_acks=-1)
    assert partition.log.log_end_offset == 1


def test_s_app_8_reached_tells_of_an_isr_that_shrank_after_the_append():
    partition = make(TopicConfig(min_insync_replicas=2), replicas=(1, 2), isr=(1, 2))
    partition.append_as_leader_nowait(batch(), required_acks=-1)
    assert partition.reached(1) == (False, ErrorCode.NONE)
    partition.lead(led(0, (1, 2), (1,)))
    assert partition.reached(1) == (True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    partition.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert partition.reached(1) == (True, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_s_read_12_leader_epochs_fence():
    partition = make(leader_epoch=5)
    partition.check_leader_epoch(-1)
    partition.check_leader_epoch(5)
    for older in (4, -2, -(2**31)):
        assert code_of(partition.check_leader_epoch, older) == ErrorCode.FENCED_LEADER_EPOCH
    assert code_of(partition.check_leader_epoch, 6) == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_s_ts_2_an_answer_never_exceeds_what_the_reader_sees():
    partition = make(replicas=(1, 2), isr=(1, 2))
    partition.append_as_leader_nowait(batch([b"a"], timestamp=500))
    assert offset_for_timestamp(partition, 400, FetchIsolation.HIGH_WATERMARK) is None
    assert offset_for_timestamp(partition, 400, FetchIsolation.LOG_END).offset == 0
    partition.record_follower_fetch(2, 1, knows_epoch=True)
    assert offset_for_timestamp(partition, 400, FetchIsolation.HIGH_WATERMARK).offset == 0
    assert offset_for_timestamp(partition, 501, FetchIsolation.HIGH_WATERMARK) is None


def test_latest_is_not_available_while_a_new_leader_lags_behind_its_own_epoch():
    partition = make(replicas=(1, 2), isr=(1, 2))
    partition.append_as_leader_nowait(batch())
    partition.lead(led(1, (1, 2), (1, 2)))
    ask = partial(offset_for_timestamp, partition)
    assert code_of(ask, -1, FetchIsolation.HIGH_WATERMARK) == ErrorCode.OFFSET_NOT_AVAILABLE
    assert code_of(ask, NOW, FetchIsolation.HIGH_WATERMARK) == ErrorCode.OFFSET_NOT_AVAILABLE
    assert ask(-1, FetchIsolation.LOG_END).offset == 1
    partition.record_follower_fetch(2, 1, knows_epoch=True)
    assert ask(-1, FetchIsolation.HIGH_WATERMARK).offset == 1


def test_a_closed_partition_says_why():
    partition = make()
    partition.close(ErrorCode.KAFKA_STORAGE_ERROR)
    assert code_of(partition.append_as_leader_nowait, batch()) == ErrorCode.KAFKA_STORAGE_ERROR
    read = partition.read
    assert code_of(read, 0, 10, FetchIsolation.LOG_END) == ErrorCode.KAFKA_STORAGE_ERROR
    ask = partial(offset_for_timestamp, partition)
    assert code_of(ask, -1, FetchIsolation.LOG_END) == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.usefixtures("loop")
async def test_a_big_append_is_written_in_a_thread():
    partition = make(threaded=64)
    written = []
    begin = partition.log.appender.begin_append

    def spy(*args, **kwargs):
        written.append(begin(*args, **kwargs))
        return written[-1]

    partition.log.appender.begin_append = spy
    info = await DRIVER.run(partition.append_as_leader(batch()))
    assert info.first_offset == 0
    assert written[0].thread is not threading.main_thread()
    assert partition.appending == 0


@pytest.mark.usefixtures("loop")
async def test_what_comes_during_a_threaded_append_queues_and_keeps_its_order():
    partition = make(threaded=200)
    big = batch([b"x" * 300])
    order = []

    async def append(records, name):
        info = await DRIVER.run(partition.append_as_leader(records))
        order.append((name, info.first_offset))

    partition.log.writing = threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(append, big, "big")
        await trio.testing.wait_all_tasks_blocked()
        assert partition.appending == 1
        assert partition.must_wait(1)
        nursery.start_soon(append, batch([b"s"]), "small")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(append, batch([b"t"]), "small 2")
        await trio.testing.wait_all_tasks_blocked()
        assert partition.log.log_end_offset == 0
        partition.log.writing.set()
    assert order == [("big", 0), ("small", 1), ("small 2", 2)]
    assert partition.appending == 0
    assert partition.log.high_watermark == 3
    assert partition.append_as_leader_nowait(batch()).first_offset == 3


@pytest.mark.usefixtures("loop")
async def test_a_cancelled_append_is_finished_if_it_had_begun_and_forgotten_if_not():
    partition = make(threaded=200)
    partition.log.writing = threading.Event()
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            append = partition.append_as_leader(batch([b"x" * 300]))
            nursery.start_soon(DRIVER.run, append)
            await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        partition.log.writing.set()
    assert partition.appending == 0
    assert partition.log.log_end_offset == 1
    assert partition.append_as_leader_nowait(batch()).first_offset == 1


@pytest.mark.usefixtures("loop")
async def test_a_failed_threaded_append_frees_the_partition():
    partition = make(threaded=64)
    partition.log.fail_with = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
    with pytest.raises(KafkaError):
        await DRIVER.run(partition.append_as_leader(batch()))
    assert partition.appending == 0
    info = await DRIVER.run(partition.append_as_leader(batch()))
    assert info.first_offset == 0
