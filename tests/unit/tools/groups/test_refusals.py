"""A refusal of single partitions is an error, and a change that would be refused is not tried."""

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from tools.errors import CommandError
from tools.groups.reset import _commit
from tools.groups.survey import GroupView, Member, refuse_members


class FakeAdmin:
    """Answers for each partition, as AlterConsumerGroupOffsets does: with or without an error."""

    def __init__(self, *errors: int | None) -> None:
        self.errors = errors

    def alter_consumer_group_offsets(self, request: Any) -> dict[str, Future[Any]]:
        answer: Future[Any] = Future()
        partitions = [
            TopicPartitionWithError(p, None if code is None else KafkaError(code))
            for p, code in zip(request[0].topic_partitions, self.errors, strict=True)
        ]
        answer.set_result(type("Answer", (), {"topic_partitions": partitions}))
        return {request[0].group_id: answer}


class TopicPartitionWithError:
    def __init__(self, partition: TopicPartition, error: KafkaError | None) -> None:
        self.topic, self.partition, self.error = partition.topic, partition.partition, error


def test_an_error_of_one_partition_is_no_success() -> None:
    plan = {("orders", 0): 1, ("orders", 1): 2}
    _commit(FakeAdmin(None, None), "billing", plan)
    with pytest.raises(CommandError) as caught:
        _commit(FakeAdmin(None, KafkaError.UNKNOWN_MEMBER_ID), "billing", plan)
    assert str(caught.value).startswith("1 of 2 partitions were not reset; orders:1: ")


def test_members_are_named_up_to_a_handful() -> None:
    def group(count: int) -> GroupView:
        return GroupView(
            name="billing",
            state="stable",
            kind="classic",
            assignor="range",
            coordinator=None,
            members=tuple(
                Member(member_id=f"m{i}", client_id=f"c{i}", host="/h", instance_id=None, places=())
                for i in range(count)
            ),
            positions=(),
        )

    refuse_members(group(0), "it can only be deleted")
    with pytest.raises(CommandError, match=r"billing has 1 member \(c0 at h\): it can only be"):
        refuse_members(group(1), "it can only be deleted")
    with pytest.raises(CommandError, match=r"7 members \(c0 at h, .*, c4 at h, 2 more\)"):
        refuse_members(group(7), "it can only be deleted")
