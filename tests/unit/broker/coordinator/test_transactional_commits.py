"""S-TXN-5, KIP-890: the offsets' partition belongs to the transaction before the offsets do."""

import pytest

from broker.coordinator.group.data.values import (
    CommitRequest,
    PartitionCommit,
    TransactionalCommit,
)
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.state import VERSION_2
from broker.coordinator.transactional_commits import TransactionalCommits, TransactionRefused
from broker.world.in_turn import begin
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from tests.support.group_harness import GroupHarness, Parked
from tests.support.transaction_harness import TransactionHarness


class Both:
    """The two coordinators, each over a log of its own."""

    def __init__(self, *, verify: bool = True) -> None:
        self.groups = GroupHarness()
        self.transactions = TransactionHarness(verify_partitions=verify)
        self.owner = self.transactions.owner()
        self.commits = TransactionalCommits(self.groups.coordinator, self.transactions.coordinator)
        self.offsets = TopicPartition(
            "__consumer_offsets", self.groups.coordinator.partition_for("g")
        )

    def commit(
        self, version: int, *, producer: Producer | None = None, generation: int = -1
    ) -> Parked:
        """Commit offset 7; a refusal is the reply."""
        owner = producer or self.owner
        commit = CommitRequest(
            group_id="g",
            generation=generation,
            partitions=(PartitionCommit(topic="t", partition=0, offset=7),),
        )

        async def committed() -> ErrorCode | TransactionRefused:
            try:
                return await self.commits.commit(
                    "id",
                    TransactionalCommit(
                        commit=commit,
                        producer_id=owner.producer_id,
                        producer_epoch=owner.producer_epoch,
                    ),
                    version=version,
                )
            except TransactionRefused as error:
                return error

        return Parked(lambda: begin(committed()))

    @property
    def written(self) -> int:
        """How many offsets."""
        return len(self.groups.log.all_records())


@pytest.fixture
def both() -> Both:
    return Both()


def test_version_2_adds_the_partition_first(both: Both) -> None:
    both.transactions.log.hold = True
    done = both.commit(VERSION_2)
    assert (done.done, both.written) == (False, 0)
    both.transactions.log.release()
    assert (done.reply, both.written) == (ErrorCode.NONE, 1)
    assert both.transactions.value().partitions == {both.offsets}
    assert both.commit(VERSION_2).reply is ErrorCode.NONE, "it is there already"


def test_version_2_writes_no_offset_when_the_partition_could_not_be_added(both: Both) -> None:
    both.transactions.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert both.commit(VERSION_2).reply is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert both.written == 0


def test_version_2_is_told_what_the_group_refuses_after_it(both: Both) -> None:
    both.transactions.log.hold = True
    done = both.commit(VERSION_2, generation=5)
    both.transactions.log.release()
    assert done.reply is ErrorCode.ILLEGAL_GENERATION
    assert both.written == 0


def test_before_version_2_the_partition_must_have_been_added(both: Both) -> None:
    refused = both.commit(0).reply
    assert isinstance(refused, TransactionRefused)
    assert refused.code is ErrorCode.TRANSACTION_ABORTABLE
    both.transactions.add(both.owner, both.offsets)
    assert both.commit(0).reply is ErrorCode.NONE
    assert both.written == 1


def test_before_version_2_nothing_is_verified_if_that_is_turned_off() -> None:
    both = Both(verify=False)
    assert both.commit(0).reply is ErrorCode.NONE
    assert both.commit(VERSION_2, producer=Producer(5, 0)).reply.code is (
        ErrorCode.INVALID_PRODUCER_ID_MAPPING
    )


@pytest.mark.parametrize("version", [0, VERSION_2])
def test_a_refusal_shows_which_coordinator_refused(both: Both, version: int) -> None:
    zombie = Producer(both.owner.producer_id, both.owner.producer_epoch + 1)
    refused = both.commit(version, producer=zombie).reply
    assert isinstance(refused, TransactionRefused)
    assert refused.code is ErrorCode.PRODUCER_FENCED
    both.transactions.add(both.owner, both.offsets)
    by_group = both.commit(version, generation=5).reply
    assert by_group is ErrorCode.ILLEGAL_GENERATION
    assert both.written == 0
