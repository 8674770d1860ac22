"""A role or a leader epoch that changes while a thread writes a big batch.

Kafka's appends hold `Partition.leaderIsrUpdateLock`, so none is under way then.
"""

import os
from dataclasses import replace

import pytest

from broker.cluster.image import PartitionImage
from broker.cluster.image_delta import TopicDelta
from broker.replication.delta_application import apply_delta
from broker.replication.partition import THREADED_APPEND_BYTES, Partition
from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from storage.waits import Until
from tests.support.replication.cluster import SimBroker, image_of
from tests.support.replication.pair import FOLLOWER, LEADER, TP, Pair

BOTH = (LEADER, FOLLOWER)


def pair_with_big_batches() -> Pair:
    pair = Pair([(0, 5)], [(0, 5)])
    pair.cluster.topic_config = TopicConfig(segment_bytes=1 << 28, max_message_bytes=8 << 20)
    for broker in (pair.leader, pair.follower):
        pair.log_of(broker).update_config(pair.cluster.topic_config)
    pair.begin(1, isr=BOTH)
    pair.loop.run(2.0)
    return pair


def begin_big_append(pair: Pair) -> Partition:
    """Append, and return when a thread writes the batch."""
    leader = pair.leader.replicas.find(TP)
    assert leader is not None
    value = os.urandom(THREADED_APPEND_BYTES)
    batch = memoryview(bytearray(build_batch([(1_700_000_000_000, b"k", value, ())])))
    pair.loop.start(leader.append_as_leader(batch, required_acks=1))
    while leader.log.appender.is_idle:
        pair.loop.run(0.00001)
    return leader


def tell(pair: Pair, broker: SimBroker, image: PartitionImage) -> None:
    """Have a broker carry out a state from the controller."""
    topic = image_of({0: image})
    broker.image.set_topic(topic)
    delta = TopicDelta(name=TP.topic, topic=topic, changed=(0,))
    broker.start(apply_delta(broker.replicas, delta, pair.cluster.topic_config))


def test_an_epoch_of_the_same_leader_begins_behind_the_batch_that_is_written() -> None:
    """Otherwise leader and follower would cut the batch for ever."""
    pair = pair_with_big_batches()
    leader = begin_big_append(pair)
    image = replace(pair.image(2, isr=BOTH), partition_epoch=5)
    for broker in (pair.leader, pair.follower):
        tell(pair, broker, image)
    pair.loop.run(5.0)
    assert leader.log.leader_epochs.entries[-1] == (2, leader.log.log_end_offset)
    requests = pair.requests
    pair.loop.run(10.0)
    assert pair.requests - requests < 100
    pair.check_equal()


def test_a_leader_that_resigns_meanwhile_shows_no_record_that_others_lack() -> None:
    pair = pair_with_big_batches()
    leader = begin_big_append(pair)
    mark = leader.log.high_watermark
    pair.cluster.links.isolate(LEADER, [FOLLOWER])
    image = replace(pair.image(2, leader=FOLLOWER, isr=BOTH), partition_epoch=5)
    delta = TopicDelta(name=TP.topic, topic=image_of({0: image}), changed=(0,))
    work = apply_delta(pair.leader.replicas, delta, pair.cluster.topic_config)
    assert isinstance(work.send(None), Until)
    pair.loop.run(1.0)
    assert (leader.is_following, leader.log.log_end_offset) == (False, mark + 1)
    with pytest.raises(StopIteration):
        while True:
            work.send(None)
    pair.loop.run(1.0)
    assert (leader.is_following, leader.log.high_watermark) == (True, mark)
