"""OffsetForLeaderEpoch: where an epoch ends (S-READ-12)."""

import pytest

from broker.api.offset_for_leader_epoch import OffsetForLeaderEpochHandler
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from storage.waits import at_once
from tests.support.broker_bench import Bench, batch, context, led


def ask(bench, epochs, version=4, current=-1, topic="t"):
    message = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=0, leader_epoch=epoch, current_leader_epoch=current
                    )
                    for epoch in epochs
                ],
            )
        ],
    )
    codec = OffsetForLeaderEpochRequest.codec(version)
    message = codec.parse(codec.build(message))
    handler = OffsetForLeaderEpochHandler(bench.replicas)
    response = at_once(handler(context(version), message))
    codec = OffsetForLeaderEpochResponse.codec(version)
    told = codec.parse(codec.build(response)).topics[0].partitions
    return [(r.error_code, r.leader_epoch, r.end_offset) for r in told]


def led_twice():
    bench = Bench()
    (partition,) = bench.topic("t", leader_epoch=1)
    partition.append_as_leader_nowait(batch([b"a", b"b"]))
    bench.replicas.make_leader(partition.topic_partition, partition.topic_id, led(4), TopicConfig())
    partition.append_as_leader_nowait(batch([b"c"]))
    return bench


@pytest.mark.parametrize("version", range(5))
def test_s_read_12_ends_of_epochs(version):
    known = lambda epoch: epoch if version >= 1 else -1  # noqa: E731
    assert ask(led_twice(), (4, 1, 3, 9, 0), version) == [
        (0, known(4), 3),
        (0, known(1), 2),
        (0, known(1), 2),
        (0, -1, -1),
        (0, -1, -1),
    ]


@pytest.mark.parametrize(("current", "code"), [(4, 0), (3, 74), (5, 75)])
def test_s_read_12_fencing(current, code):
    assert ask(led_twice(), (4,), current=current)[0][0] == code


def test_unknown_partition():
    assert ask(led_twice(), (4,), topic="x") == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]
