"""A coordinator's batches over the real log: durable when the in-sync replicas have them."""

from typing import Any

import pytest

from broker.coordinator.partition_writer import ReplicaPartitionWriter
from broker.world.in_turn import begin
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from storage.waits import Signal
from tests.support.broker_bench import batch
from tests.support.real_bench import RealBench
from tests.support.refusals import code_of

NONE = ErrorCode.NONE
T0 = TopicPartition("t", 0)


class Lab:
    def __init__(self, **topic: Any) -> None:
        self.bench = RealBench()
        [self.partition] = self.bench.topic(**topic)
        self.writer = ReplicaPartitionWriter(self.bench.replicas, timeout_ms=1000)
        self.diary: list[tuple[int, ErrorCode]] = []

    def append(self, tp: TopicPartition = T0) -> Signal[None]:
        first_offset, durable = self.writer.append(tp, bytes(batch([b"v"])))

        async def wait() -> None:
            self.diary += [(first_offset, await durable)]

        return begin(wait())

    def follow(self, offset: int) -> None:
        """The follower has what lies below `offset`."""
        self.bench.fetch(offset, replica_id=2)


@pytest.fixture
def lab() -> Lab:
    return Lab(replicas=(1, 2), isr=(1, 2))


def test_a_batch_is_durable_at_once_if_no_other_replica_is_in_sync() -> None:
    alone = Lab()
    for offset in range(2):
        assert alone.append().fired
        assert alone.diary[offset] == (offset, NONE)


def test_batches_are_durable_in_their_order_when_the_follower_has_them(lab: Lab) -> None:
    for _ in range(3):
        assert not lab.append().fired
    lab.follow(0)
    assert lab.diary == []
    lab.follow(2)
    assert lab.diary == [(0, NONE), (1, NONE)], "in the turn of the follower's request"
    lab.follow(3)
    assert lab.diary[2:] == [(2, NONE)]
    assert lab.bench.purgatories.produce.statistics().parked == 0


def test_a_batch_that_the_follower_does_not_take_times_out(lab: Lab) -> None:
    lab.append()
    lab.bench.advance(0.9)
    assert lab.diary == []
    lab.bench.advance(0.2)
    assert lab.diary == [(0, ErrorCode.REQUEST_TIMED_OUT)]
    lab.follow(1)
    assert len(lab.diary) == 1


def test_a_batch_of_a_partition_that_is_not_here_is_refused(lab: Lab) -> None:
    assert code_of(lab.append, TopicPartition("gone", 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert lab.writer.leader_epoch(TopicPartition("gone", 0)) is None
