"""The transaction coordinator over real logs whose disks fail (S-TXN-4, S-TXN-6, S-REC-11)."""

import pytest

from broker.coordinator.marker_writer import ReplicaMarkerWriter
from broker.coordinator.partition_writer import ReplicaPartitionWriter
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.state import TransactionState as S
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from storage.paths import parent_dir
from tests.support.broker_bench import batch
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.real_bench import RealBench
from tests.support.transaction_harness import TransactionHarness

STATE = "__transaction_state"
DIRECTORIES = ("/a", "/b")


class Life:
    """A broker with two log directories; in each of them lie partitions of both topics."""

    def __init__(self, fs: FaultyFileSystem | None = None, leader_epoch: int = 0) -> None:
        self.bench = RealBench(",".join(DIRECTORIES), fs)
        self.fs = self.bench.fs
        for topic in (STATE, "t"):
            self.bench.topic(topic, 2, is_new=fs is None, leader_epoch=leader_epoch)
        replicas = self.bench.replicas
        self.transactions = TransactionHarness(
            ReplicaPartitionWriter(replicas, timeout_ms=1000),  # type: ignore[arg-type]
            self.bench.clock,
            ReplicaMarkerWriter(  # type: ignore[arg-type]
                replicas, self.bench.clock, timeout_ms=1000, listeners={}
            ),
            partition_count=2,
        )

    def id_in(self, directory: str) -> str:
        """A transactional id whose partition lies there."""
        names = (f"id-{number}" for number in range(100))
        index_of = self.transactions.coordinator.partition_for
        return next(n for n in names if self.directory_of(STATE, index_of(n)) == directory)

    def data_in(self, directory: str) -> TopicPartition:
        """A data partition that lies there."""
        return next(
            TopicPartition("t", index)
            for index in range(2)
            if self.directory_of("t", index) == directory
        )

    def directory_of(self, topic: str, index: int) -> str:
        return parent_dir(self.bench.replicas.partition(TopicPartition(topic, index)).log.dir)

    def write(self, tp: TopicPartition, producer: Producer) -> None:
        self.bench.replicas.partition(tp).append_as_leader_nowait(
            batch(
                transactional=True,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=0,
            )
        )

    def stable_offset(self, tp: TopicPartition) -> int:
        return self.bench.replicas.partition(tp).log.last_stable_offset

    def after_a_crash(self) -> "Life":
        """Another life with healthy disks, everything loaded."""
        after = Life(self.fs.crash(keep_unsynced=True), leader_epoch=1)
        for directory in DIRECTORIES:
            after.transactions.load(after.id_in(directory))
        return after


@pytest.fixture
def life() -> Life:
    return Life()


def test_s_rec_11_a_failed_disk_takes_its_transactional_ids_along_and_no_others(
    life: Life,
) -> None:
    sick, well = (life.id_in(directory) for directory in DIRECTORIES)
    broker = life.transactions
    owners = {name: broker.owner(name) for name in (sick, well)}
    there = life.data_in("/b")
    for name, owner in owners.items():
        assert broker.add(owner, there, transactional_id=name) is ErrorCode.NONE
        life.write(there, owner)
    life.fs.fail("pwrite", "/a/*", times=None, partial=10)
    assert broker.end(owners[sick], transactional_id=sick).code is ErrorCode.NOT_COORDINATOR
    assert broker.end(owners[sick], transactional_id=sick).code is ErrorCode.NOT_COORDINATOR
    assert broker.init(sick).code is ErrorCode.NOT_COORDINATOR
    assert broker.end(owners[well], transactional_id=well).code is ErrorCode.NONE
    assert broker.state(well) is S.COMPLETE_COMMIT
    assert life.stable_offset(there) == 0, "the other transaction is open"

    after = life.after_a_crash()
    assert after.transactions.state(well) is S.COMPLETE_COMMIT
    value = after.transactions.value(sick)
    # Whether the decision got to the disk nobody knew; it did not, and the owner may try again.
    assert (value.state, value.partitions) == (S.ONGOING, {there})
    assert after.transactions.end(owners[sick], transactional_id=sick).code is ErrorCode.NONE
    after.bench.replicas.partition(there).log.update_high_watermark(4)
    assert after.stable_offset(there) == 4


def test_s_txn_6_markers_for_a_failed_disk_wait_for_the_next_start(life: Life) -> None:
    well = life.id_in("/b")
    broker = life.transactions
    owner = broker.owner(well)
    sick, there = life.data_in("/a"), life.data_in("/b")
    broker.add(owner, sick, there, transactional_id=well)
    for tp in (sick, there):
        life.write(tp, owner)
    life.fs.fail("pwrite", "/a/*", times=None)
    assert broker.end(owner, transactional_id=well).code is ErrorCode.NONE
    broker.advance_ms(600_000)
    assert broker.state(well) is S.PREPARE_COMMIT
    assert life.stable_offset(there) == 2, "what can be committed is"
    statistics = broker.statistics().markers
    assert (statistics.transactions, statistics.written) == (1, 1)
    assert statistics.retried < 150, "ever more seldom"

    after = life.after_a_crash()
    assert after.transactions.state(well) is S.COMPLETE_COMMIT
    for tp in (sick, there):
        log = after.bench.replicas.partition(tp).log
        log.update_high_watermark(log.log_end_offset)
        assert after.stable_offset(tp) == log.log_end_offset


def test_a_completion_that_a_failed_disk_cannot_take_is_not_tried_all_the_time(life: Life) -> None:
    sick = life.id_in("/a")
    broker = life.transactions
    owner = broker.owner(sick)
    there = life.data_in("/b")
    broker.add(owner, there, transactional_id=sick)
    life.write(there, owner)
    life.fs.fail("pwrite", "/a/*", nth=2, times=None)  # the decision is written, the completion not
    assert broker.end(owner, transactional_id=sick).code is ErrorCode.NONE
    broker.advance_ms(600_000)
    assert life.stable_offset(there) == 2
    assert broker.statistics().counters.failed_changes < 150
    assert life.after_a_crash().transactions.state(sick) is S.COMPLETE_COMMIT
