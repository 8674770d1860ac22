"""Proposals on their way to the controller: gathered, sent one at a time, sent again (S-REP-4)."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from broker.cluster.image import PartitionImage
from broker.peers.peer import PeerError
from broker.replication.isr import ClusterRules
from broker.replication.isr_keeper import IsrKeeper
from broker.replication.partition import Partition
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition import (
    AlteredPartitionResult,
    AlteredTopicResult,
    AlterPartitionResponse,
)
from protocol.messages.registry import request_codec
from storage.waits import Signal
from tests.support.fake_log import led_partition
from tests.support.stepping import Loop

LAG_S = 10.0


class Kept:
    """A keeper of three partitions with a follower each, and a controller that a test plays."""

    def __init__(self) -> None:
        self.loop = Loop(Random(1))
        self.requests: list[Any] = []
        self.answers: list[Callable[[Any], Any]] = []
        """Answers to the next requests; after these, each request is granted."""
        self.held: Signal[None] | None = None
        self.woken: list[int] = []
        self.keeper = IsrKeeper(
            alter=self._alter,
            broker_id=1,
            broker_epoch=lambda: 44,
            partitions=lambda: self.partitions,
            wake=lambda partition: self.woken.append(partition.topic_partition.partition),
            lag_time_s=LAG_S,
            clock=self.loop,
        )
        self.partitions = [self._partition(index) for index in range(3)]
        self.loop.start(self.keeper.run())

    def _partition(self, index: int) -> Partition:
        image = PartitionImage(
            leader=1, leader_epoch=4, replicas=(1, 2), isr=(1, 2), partition_epoch=index
        )
        partition: Partition = led_partition(
            image,
            index=index,
            rules=ClusterRules(
                monotonic=self.loop.monotonic,
                lag_time_s=LAG_S,
                may_join=lambda _: True,
                alter_isr=self.keeper.send,
            ),
        )
        partition.log.log_end_offset = 5  # type: ignore[misc]
        return partition

    async def _alter(self, request: Any) -> AlterPartitionResponse:
        for version in range(4):
            request_codec(ApiKey.ALTER_PARTITION, version).build(request)
        self.requests.append(request)
        if self.held is not None:
            await self.held
        make = self.answers.pop(0) if self.answers else done
        response: AlterPartitionResponse = make(request)
        return response

    def isrs(self) -> list[tuple[int, ...]]:
        return [partition.isr for partition in self.partitions]


def answered(request: Any, **fields: Any) -> AlterPartitionResponse:
    topics = [
        AlteredTopicResult(
            topic_id=topic.topic_id,
            partitions=[
                AlteredPartitionResult(
                    **{
                        "partition_index": asked.partition_index,
                        "leader_epoch": asked.leader_epoch,
                        "isr": [state.broker_id for state in asked.new_isr_with_epochs],
                        "partition_epoch": asked.partition_epoch + 1,
                        **fields,
                    }
                )
                for asked in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return AlterPartitionResponse(topics=topics)


def done(request: Any) -> AlterPartitionResponse:
    return answered(request)


def test_s_rep_2_followers_that_lag_are_left_out_in_one_request() -> None:
    kept = Kept()
    kept.loop.run(LAG_S)
    assert kept.requests == []
    kept.loop.run(LAG_S / 2 + 1)
    (request,) = kept.requests
    (topic,) = request.topics
    assert (request.broker_id, request.broker_epoch) == (1, 44)
    assert [(p.partition_index, p.new_isr, p.partition_epoch) for p in topic.partitions] == [
        (0, [1], 0),
        (1, [1], 1),
        (2, [1], 2),
    ]
    assert kept.isrs() == [(1,)] * 3
    assert (kept.keeper.statistics.shrinks, kept.woken) == (3, [0, 1, 2])
    assert [partition.log.high_watermark for partition in kept.partitions] == [5] * 3


def test_s_rep_4_what_comes_meanwhile_waits_for_the_answer() -> None:
    kept = Kept()
    kept.loop.run(LAG_S * 1.5 + 1)
    kept.held = Signal()
    for partition in kept.partitions[:2]:
        partition.record_follower_fetch(2, 5, knows_epoch=True)
        kept.loop.run(1.0)
    assert len(kept.requests) == 2
    kept.held.fire()
    kept.loop.run(1.0)
    assert len(kept.requests) == 3
    assert kept.isrs() == [(1, 2), (1, 2), (1,)]
    assert kept.keeper.statistics.expands == 2


def failing(error: Exception) -> Callable[[Any], Any]:
    def fail(_: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    "answer",
    [
        failing(PeerError("no controller")),
        failing(KafkaError(ErrorCode.NOT_CONTROLLER)),
        lambda _: AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, topics=[]),
        lambda _: AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER, topics=[]),
        lambda _: AlterPartitionResponse(topics=[]),
        lambda request: answered(request, error_code=ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_s_rep_4_what_failed_is_sent_again(answer: Callable[[Any], Any]) -> None:
    kept = Kept()
    kept.answers = [answer] * 3
    kept.loop.run(LAG_S * 1.5 + 1)
    assert len(kept.requests) == 4
    assert kept.isrs() == [(1,)] * 3


def test_s_rep_4_what_the_controller_told_otherwise_is_not_sent_again() -> None:
    kept = Kept()
    kept.answers = [lambda request: answered(request, error_code=ErrorCode.INVALID_UPDATE_VERSION)]
    kept.loop.run(LAG_S * 1.5 + 1)
    assert len(kept.requests) == 1
    assert kept.keeper.statistics.failed_updates == 3
    assert all(partition.state.pending is not None for partition in kept.partitions)
    for partition in kept.partitions:
        image = PartitionImage(
            leader=1, leader_epoch=5, replicas=(1, 2), isr=(1, 2), partition_epoch=9
        )
        partition.lead(image)
        assert partition.state.pending is None
    kept.loop.run(LAG_S * 2)
    assert len(kept.requests) == 2
    assert kept.isrs() == [(1,)] * 3


def test_s_rep_4_what_failed_is_not_sent_in_a_later_epoch() -> None:
    """It would name the epochs of another leadership, for which nobody proposed it."""
    kept = Kept()

    def fail(_: Any) -> Any:
        for partition in kept.partitions:
            partition.lead(
                PartitionImage(
                    leader=1, leader_epoch=9, replicas=(1, 2), isr=(1, 2), partition_epoch=9
                )
            )
        raise PeerError("no answer")

    kept.answers = [fail]
    kept.loop.run(LAG_S * 1.5 + 0.3)
    assert len(kept.requests) == 1
    assert kept.isrs() == [(1, 2)] * 3
