"""The table of partitions: found, opened, closed, taken offline, checkpointed."""

import pytest

from broker.cluster.image import PartitionImage
from broker.replication.partition import THREADED_APPEND_BYTES
from broker.replication.partition_state import following
from broker.replication.purgatory import DelayedOperation
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from storage.errors import StorageError
from storage.log.results import AppendOrigin
from storage.waits import at_once
from tests.support.broker_bench import Bench, batch, led
from tests.support.refusals import code_of

OFFSETS = "__consumer_offsets"


@pytest.fixture
def bench():
    return Bench()


class Watcher(DelayedOperation):
    def is_complete(self, key=None):
        return True


def watch(bench, tp):
    watcher = Watcher()
    bench.purgatories.fetch.watch(watcher, [tp], 10)
    return watcher


def test_a_partition_is_found_by_name_and_by_id(bench):
    (partition,) = bench.topic("t")
    tp = TopicPartition("t", 0)
    assert bench.replicas.partition(tp) is partition
    assert bench.replicas.partition_by_id(partition.topic_id, 0) is partition
    assert bench.replicas.find(("t", 0)) is partition


def test_what_is_not_here_has_a_reason(bench):
    bench.topic("t")
    bench.image.add("far", b"f" * 16, 2)
    find, by_id = bench.replicas.partition, bench.replicas.partition_by_id
    assert code_of(find, TopicPartition("x", 0)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(find, TopicPartition("t", 1)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(find, TopicPartition("far", 1)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(by_id, b"?" * 16, 0) == ErrorCode.UNKNOWN_TOPIC_ID
    assert code_of(by_id, b"f" * 16, 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    bench.image.topics["t"].topic_id = b"n" * 16
    assert code_of(by_id, b"n" * 16, 0) == ErrorCode.INCONSISTENT_TOPIC_ID


def test_the_coordinator_appends_at_once_and_wakes_readers(bench):
    (partition,) = bench.topic(OFFSETS)
    tp = partition.topic_partition
    watcher = watch(bench, tp)
    info = bench.replicas.append(
        tp, batch([bytes(THREADED_APPEND_BYTES)]), origin=AppendOrigin.COORDINATOR
    )
    assert (info.first_offset, partition.log.high_watermark) == (0, 1)
    assert watcher.ended


def test_leading_again_keeps_the_log_and_raises_the_epoch(bench):
    (partition,) = bench.topic("t")
    partition.append_as_leader_nowait(batch())
    again = bench.replicas.make_leader(
        partition.topic_partition, partition.topic_id, led(3), TopicConfig()
    )
    assert again is partition
    assert (again.leader_epoch, again.epoch_start_offset) == (3, 1)
    assert again.log.leader_epochs.entries == [(0, 0), (3, 1)]


def test_an_opened_log_starts_at_its_checkpointed_high_watermark(bench):
    tp = TopicPartition("t", 0)
    log = bench.logs.get_or_create_log(tp, b"t" * 16, TopicConfig())
    for _ in range(5):
        log.append_if_light(batch(), leader_epoch=0)
    bench.logs.watermarks = {tp: 3}
    partition = bench.replicas.make_leader(tp, b"t" * 16, led(1, (1, 2)), TopicConfig())
    assert partition.log.high_watermark == 3
    bench.replicas.make_leader(tp, b"t" * 16, led(1), TopicConfig())
    assert partition.log.high_watermark == 5


def test_s_fl_3_high_watermarks_are_checkpointed_when_they_moved(bench):
    (one,) = bench.topic("t")
    bench.topic("b")
    one.append_as_leader_nowait(batch())
    for _ in range(2):
        at_once(bench.replicas.checkpoint_high_watermarks())
    assert bench.logs.writes == 1
    assert bench.logs.watermarks == {TopicPartition("t", 0): 1, TopicPartition("b", 0): 0}
    one.append_as_leader_nowait(batch())
    at_once(bench.replicas.checkpoint_high_watermarks())
    assert bench.logs.writes == 2


def test_deleting_a_partition_wakes_who_waits_and_deletes_the_log(bench):
    (partition,) = bench.topic("t")
    tp = partition.topic_partition
    watcher = watch(bench, tp)
    bench.replicas.delete_partition(tp)
    bench.replicas.delete_partition(tp)
    assert watcher.ended
    assert bench.logs.deleted == [tp]
    assert partition.unavailable == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_made_again_is_a_new_partition(bench):
    (old,) = bench.topic("t")
    new = bench.replicas.make_leader(old.topic_partition, b"n" * 16, led(), TopicConfig(), True)
    assert new is not old


def test_s_rec_11_a_failed_directory_takes_only_its_own_partitions_offline(bench):
    here = bench.topic("t", 2)
    (elsewhere,) = bench.topic("b")
    watcher = watch(bench, here[1].topic_partition)
    bench.replicas.storage_failed(here[0], StorageError("/data/t-0", "EIO"))
    bench.replicas.storage_failed(here[0], StorageError("/data/t-0", "EIO"))
    assert bench.logs.failed == ["/data"]
    assert all(p.unavailable == ErrorCode.KAFKA_STORAGE_ERROR for p in here)
    assert not elsewhere.unavailable
    assert watcher.ended
    find = bench.replicas.partition
    assert code_of(find, here[1].topic_partition) == ErrorCode.KAFKA_STORAGE_ERROR
    statistics = at_once(bench.replicas.statistics())
    assert (statistics.leader_count, statistics.offline_replica_count) == (1, 2)


def test_statistics_count_replicas(bench):
    bench.topic("t", 2)
    bench.topic("u", replicas=(1, 2), isr=(1,), config=TopicConfig(min_insync_replicas=2))
    statistics = at_once(bench.replicas.statistics())
    assert statistics.partition_count == 3
    assert statistics.under_replicated_partitions == 1
    assert statistics.under_min_isr_partition_count == 1
    assert statistics.at_min_isr_partition_count == 2


@pytest.mark.parametrize(
    ("adding", "isr", "under"),
    [
        ((), (1, 2, 3, 4), 0),
        ((), (1, 2, 3), 1),
        ((3, 4), (1, 2), 0),
        ((3, 4), (1, 3), 0),
        ((3, 4), (1,), 1),
        ((4,), (1, 2), 1),
    ],
)
def test_a_replica_that_is_being_added_is_not_missing(bench, adding, isr, under):
    image = PartitionImage(
        leader=1, leader_epoch=1, replicas=(1, 2, 3, 4), isr=isr, adding_replicas=adding
    )
    bench.replicas.make_leader(TopicPartition("t", 0), b"t" * 16, image, TopicConfig())
    statistics = at_once(bench.replicas.statistics())
    assert statistics.under_replicated_partitions == under


def test_a_deleted_topics_numbers_stay_in_the_total(bench):
    (partition,) = bench.topic("t")
    partition.append_as_leader_nowait(batch([b"a", b"b"]))
    bench.replicas.delete_partition(partition.topic_partition)
    bench.replicas.forget_topic("t")
    statistics = at_once(bench.replicas.statistics())
    assert statistics.all_topics.messages_in == 2
    assert statistics.topics == {}


def test_a_partition_that_is_led_elsewhere_is_refused_and_who_waits_is_woken(bench):
    (partition,) = bench.topic()
    tp = partition.topic_partition
    bench.replicas.append(tp, batch([b"a"]))
    waiting = watch(bench, tp)
    elsewhere = PartitionImage(leader=7, leader_epoch=4, replicas=(7, 1), isr=(7,))
    bench.replicas.resign(tp, elsewhere)
    assert waiting.ended
    assert partition.state == following(elsewhere)
    assert code_of(bench.replicas.partition, tp) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    back = bench.replicas.make_leader(tp, partition.topic_id, led(5), TopicConfig())
    assert bench.replicas.partition(tp) is back
    assert back.log is partition.log
    bench.replicas.storage_failed(back, StorageError("/data/t-0", "EIO"))
    bench.replicas.resign(tp, elsewhere)
    assert back.unavailable == ErrorCode.KAFKA_STORAGE_ERROR
    bench.replicas.resign(TopicPartition("nowhere", 0), elsewhere)
