"""Markers over the real log: stable offsets, woken readers, turns (S-TXN-1, S-TXN-2, S-TXN-3)."""

from typing import Any

import pytest
import trio
import trio.testing

from broker.coordinator.marker_writer import Marker, ReplicaMarkerWriter
from broker.world.in_turn import begin
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from storage.log.results import AppendInfo
from storage.waits import Call
from tests.support.broker_bench import batch
from tests.support.driving import driver
from tests.support.real_bench import RealBench, fetched
from tests.support.transaction_harness import T0

READ_COMMITTED = 1


class Listener:
    """A coordinator whose topic is "t"."""

    def __init__(self) -> None:
        self.refusal = ErrorCode.NONE
        self.told: list[tuple[int, int, bool]] = []

    def marker_refusal(self, partition: int) -> ErrorCode:
        return self.refusal

    def on_marker(self, partition: int, producer_id: int, *, commit: bool) -> None:
        self.told.append((partition, producer_id, commit))


class Lab:
    def __init__(self, **topic: Any) -> None:
        self.bench = RealBench()
        [self.partition] = self.bench.topic(**topic)
        self.listener = Listener()
        self.writer = ReplicaMarkerWriter(
            self.bench.replicas, self.bench.clock, timeout_ms=1000, listeners={"t": self.listener}
        )
        self.codes: list[ErrorCode] = []

    def data(self, producer_id: int = 5, epoch: int = 0, size: int = 1) -> None:
        """A batch of an open transaction."""
        info = self.partition.append_as_leader_nowait(
            batch(
                [b"x" * size],
                transactional=True,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=0,
            )
        )
        assert isinstance(info, AppendInfo)

    def mark(self, *, producer_id: int = 5, commit: bool = True, **fields: int) -> None:
        marker = Marker(
            producer_id=producer_id,
            commit=commit,
            **{"producer_epoch": 0, "coordinator_epoch": 0, **fields},
        )
        self.write(T0, marker)

    def write(self, tp: TopicPartition, marker: Marker) -> None:
        async def write() -> None:
            self.codes += [await self.writer.write(tp, marker)]

        begin(write())


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.mark.parametrize("commit", [True, False])
def test_s_txn_1_a_marker_moves_the_stable_offset_and_wakes_a_reader(
    lab: Lab, commit: bool
) -> None:
    lab.data()
    assert lab.partition.log.last_stable_offset == 0
    parked: Any = lab.bench.fetch(0, max_wait_ms=500, isolation_level=READ_COMMITTED)
    assert not parked.done
    lab.mark(commit=commit)
    assert lab.codes == [ErrorCode.NONE]
    assert lab.partition.log.last_stable_offset == lab.partition.log.log_end_offset == 2
    assert parked.done
    response = fetched(parked.reply)
    aborted = [(one.producer_id, one.first_offset) for one in response.aborted_transactions or ()]
    assert aborted == ([] if commit else [(5, 0)])
    assert lab.listener.told == [(0, 5, commit)]


def test_s_txn_2_an_older_epoch_or_coordinator_is_refused(lab: Lab) -> None:
    lab.data(epoch=3)
    lab.mark(producer_epoch=2)
    lab.mark(producer_epoch=4, coordinator_epoch=7)
    lab.mark(producer_epoch=4, coordinator_epoch=6)
    lab.mark(producer_epoch=4, coordinator_epoch=7)  # Again: harmless.
    assert lab.codes == [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.NONE,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.NONE,
    ]
    assert len(lab.listener.told) == 2


@pytest.mark.parametrize("queued", [False, True])
def test_s_txn_7_a_marker_of_version_2_needs_a_raised_epoch(lab: Lab, queued: bool) -> None:
    """A delayed marker of the last transaction would end the next one (KIP-890)."""
    lab.data(epoch=3)
    lab.partition.threaded_append_bytes = 1 if queued else 2**20

    def mark(**fields: int) -> None:
        async def main() -> None:
            async with trio.open_nursery() as nursery:
                await nursery.start(lab.writer.run, driver())
                told = len(lab.codes)
                lab.mark(**fields)
                with trio.fail_after(60):
                    while len(lab.codes) == told:
                        await trio.sleep(0)
                nursery.cancel_scope.cancel()

        trio.run(main)

    mark(producer_epoch=3, transaction_version=2)
    assert lab.partition.log.last_stable_offset == 0
    mark(producer_epoch=4, transaction_version=2)
    mark(producer_epoch=4, transaction_version=2)  # Again: harmless.
    assert lab.codes == [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.NONE, ErrorCode.NONE]
    assert lab.partition.log.last_stable_offset == lab.partition.log.log_end_offset


def test_s_txn_2_a_marker_without_a_transaction_is_written(lab: Lab) -> None:
    lab.mark(producer_id=77)
    assert lab.codes == [ErrorCode.NONE]
    assert lab.partition.log.last_stable_offset == 1


def test_a_partition_that_is_not_here(lab: Lab) -> None:
    marker = Marker(producer_id=5, producer_epoch=0, coordinator_epoch=0, commit=True)
    lab.write(TopicPartition("gone", 0), marker)
    lab.bench.replicas.delete_partition(T0)  # It is about to go, or to come back.
    lab.mark()
    assert lab.codes == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]


def test_s_txn_5_a_listener_that_loads_makes_the_marker_wait(lab: Lab) -> None:
    lab.data()
    lab.listener.refusal = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    lab.mark()
    assert lab.codes == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert lab.partition.log.log_end_offset == 1


def test_s_txn_5_a_listener_hears_of_a_marker_in_the_turn_in_which_it_is_durable() -> None:
    lab = Lab(replicas=(1, 2), isr=(1, 2))
    for _ in range(2):
        lab.mark()
    lab.bench.fetch(1, replica_id=2)
    assert (lab.codes, lab.listener.told) == ([ErrorCode.NONE], [(0, 5, True)])
    lab.bench.advance(2)
    assert lab.codes == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]
    assert len(lab.listener.told) == 1, "what is not durable may yet be truncated"


@pytest.mark.usefixtures("loop")
async def test_a_marker_waits_for_its_turn_behind_an_append_in_a_thread(lab: Lab) -> None:
    lab.partition.threaded_append_bytes = 400_000
    append = lab.partition.append_as_leader(batch([b"x" * 400_000]))
    lab.data()
    async with trio.open_nursery() as nursery:
        await nursery.start(lab.writer.run, driver())
        in_thread = append.send(None)
        assert isinstance(in_thread, Call)
        lab.mark()
        await trio.testing.wait_all_tasks_blocked()
        assert lab.codes == []
        with pytest.raises(StopIteration):
            append.send(in_thread.work(*in_thread.values))
        parked: Any = lab.bench.fetch(2, max_wait_ms=500)
        with trio.fail_after(60):
            while not lab.codes:
                await trio.sleep(0)
        assert parked.done, "the marker wakes a reader"
        nursery.cancel_scope.cancel()
    assert lab.codes == [ErrorCode.NONE]
    assert lab.partition.log.last_stable_offset == 3
    # Without the task that waits (the broker is stopping) it is to be tried again.
    lab.partition.appending = 1
    lab.mark()
    assert lab.codes[-1] is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_whoever_verifies_transactions_is_told_at_once(lab: Lab) -> None:
    told: list[tuple[TopicPartition, int]] = []
    lab.writer = ReplicaMarkerWriter(
        lab.bench.replicas,
        lab.bench.clock,
        timeout_ms=1000,
        listeners={},
        appended=lambda tp, producer_id: told.append((tp, producer_id)),
    )
    lab.data(epoch=3)
    lab.mark(producer_epoch=2)
    assert told == []
    lab.mark(producer_epoch=3)
    assert lab.codes == [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.NONE]
    assert told == [(T0, 5)]
