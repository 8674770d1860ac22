"""Readers of the tail of a partition share one read, until the partition changes."""

import errno

import pytest

from broker.replication.read_plan import FetchParams, FetchRead, FetchTarget
from broker.replication.shared_reads import LARGEST, MOST
from config.topic_config import TopicConfig
from protocol.records.control import ControlType, build_end_transaction_marker
from storage.append_origin import AppendOrigin
from storage.log.results import FetchIsolation, FileSlice, StartOffsetReason
from tests.support.broker_bench import batch
from tests.support.real_bench import RealBench

LOG_END, COMMITTED = FetchIsolation.LOG_END, FetchIsolation.TXN_COMMITTED


class Tail:
    """A partition with a follower, and who reads it."""

    def __init__(self, partitions=1):
        self.bench = RealBench()
        self.partitions = self.bench.topic("t", partitions, TopicConfig(), replicas=(1, 2))
        self.partition = self.partitions[0]
        self.append()

    def append(self, *values, index=0, **how):
        self.partitions[index].append_as_leader_nowait(batch(values or [b"v"], **how))

    def read(self, offset=0, *, isolation=LOG_END, limit=1 << 20, partition=None):
        """The partition's `PartitionData`, as a client that shares gets it."""
        target = FetchTarget()
        target.partition = partition or self.partition
        target.fetch_offset, target.max_bytes = offset, limit
        params = FetchParams(
            replica_id=-1, isolation=isolation, min_bytes=1, max_bytes=1 << 20, hard_limit=False
        )
        read = FetchRead(params, self.bench.replicas.shared_reads)
        read.run([target], None, None)
        ((_, data, size),) = read.entries
        assert size == len(data.records) == read.size
        return data


@pytest.fixture
def tail():
    return Tail()


def test_the_second_reader_gets_the_bytes_and_the_third_the_same_object(tail):
    first, second, third = (tail.read() for _ in range(3))
    assert isinstance(first.records, FileSlice)
    assert second.records == first.records.read()
    assert third is second


def one_more(tail):
    tail.append()


def replicated(tail):
    tail.partition.record_follower_fetch(2, 1, knows_epoch=True)


def deleted(tail):
    tail.partition.log.maybe_increment_log_start_offset(1, StartOffsetReason.CLIENT_RECORD_DELETION)


def rolled(tail):
    tail.partition.log.roll()


def written_anew(tail):
    tail.partition.log.truncate_to(1)
    tail.append(b"w")
    tail.append(b"w")


@pytest.mark.parametrize("change", [one_more, replicated, deleted, rolled, written_anew])
def test_nothing_is_shared_across_a_change(tail, change):
    tail.append()
    replicated(tail)
    tail.append()
    before = [tail.read(1) for _ in range(3)][-1]
    if change is replicated:
        tail.partition.record_follower_fetch(2, 2, knows_epoch=True)
    else:
        change(tail)
    after = tail.read(1)
    assert after is not before
    log = tail.partition.log
    assert after.high_watermark == log.high_watermark
    assert after.log_start_offset == log.log_start_offset
    if change is written_anew:
        assert b"w" in bytes(after.records)


def test_what_is_asked_in_another_way_is_not_shared(tail):
    tail.append()
    whole = [tail.read() for _ in range(3)][-1]
    assert len(tail.read(limit=1).records) < len(whole.records)
    tail.partition.record_follower_fetch(2, 2, knows_epoch=True)
    end, committed = (
        [tail.read(isolation=isolation) for _ in range(3)][-1] for isolation in (LOG_END, COMMITTED)
    )
    assert (end.last_stable_offset, end.aborted_transactions) == (-1, None)
    assert (committed.last_stable_offset, committed.aborted_transactions) == (2, [])


def test_aborted_transactions_are_counted_for_each_reader(tail):
    tail.append(producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    marker = build_end_transaction_marker(
        ControlType.ABORT,
        producer_id=9,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=1_700_000_000_000,
    )
    tail.partition.append_as_leader_nowait(
        memoryview(bytearray(marker)), origin=AppendOrigin.COORDINATOR
    )
    tail.partition.record_follower_fetch(2, 3, knows_epoch=True)
    one, two = (tail.read(isolation=COMMITTED) for _ in range(2))
    assert one.aborted_transactions
    assert tail.read(isolation=COMMITTED) is not two


def test_large_reads_stay_slices_of_files(tail):
    tail.append(b"x" * LARGEST)
    assert all(isinstance(tail.read().records, FileSlice) for _ in range(3))


@pytest.mark.parametrize("cached", [True, False])
def test_what_cannot_be_read_at_once_stays_a_slice(tail, cached, monkeypatch):
    def fail(self):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(FileSlice, "is_cached", lambda self: cached)
    monkeypatch.setattr(FileSlice, "read", fail)
    assert all(isinstance(tail.read().records, FileSlice) for _ in range(3))


def test_only_so_many_reads_are_kept():
    tail = Tail(MOST + 1)
    for index, partition in enumerate(tail.partitions):
        if index:
            tail.append(index=index)
        tail.read(partition=partition)
        tail.read(partition=partition)
    kept = [partition.last_read.data is not None for partition in tail.partitions]
    assert kept == [False] + [True] * MOST
