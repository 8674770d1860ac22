"""Markers of one transaction: in turns, again until they are written, or given up."""

import pytest

from broker.coordinator.marker_writer import Marker
from broker.coordinator.transaction.markers import (
    MARKERS_PER_TURN,
    MarkerDispatcher,
    WorkKey,
)
from broker.deadlines import Deadlines
from broker.world.in_turn import begin
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from storage.waits import Signal
from tests.support.manual_clock import ManualClock
from tests.support.transaction_harness import T0, T1, MemoryMarkers

MARKER = Marker(producer_id=1, producer_epoch=0, coordinator_epoch=0, commit=True)
KEY = WorkKey(0, "id")
MOVES = (0.1, 0.2, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4)
STAYS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 6.4)


class Refusing:
    """Refuses each marker with one code, and notes the time."""

    def __init__(self, code: ErrorCode, clock: ManualClock) -> None:
        self.code = code
        self.clock = clock
        self.asked: list[float] = []

    async def write(self, tp: TopicPartition, marker: Marker) -> ErrorCode:
        self.asked.append(self.clock.monotonic())
        return self.code


@pytest.mark.parametrize(
    ("code", "pauses"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, MOVES),
        (ErrorCode.NETWORK_EXCEPTION, MOVES),
        (ErrorCode.NOT_ENOUGH_REPLICAS, STAYS),
        (ErrorCode.KAFKA_STORAGE_ERROR, STAYS),
    ],
)
def test_a_partition_that_moves_is_tried_more_often_than_a_disk_that_has_failed(
    code: ErrorCode, pauses: tuple[float, ...]
) -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock)  # type: ignore[arg-type]
    writer = Refusing(code, clock)
    dispatcher = MarkerDispatcher(writer, deadlines)
    written = begin(dispatcher.write(KEY, MARKER, [T0]))
    while len(writer.asked) <= len(pauses):
        clock.advance(ms=10)
        deadlines.run_due()
    found = [after - before for before, after in zip(writer.asked, writer.asked[1:], strict=False)]
    assert found == pytest.approx(pauses, abs=0.02)
    writer.code = ErrorCode.NONE
    clock.advance(10)
    deadlines.run_due()
    assert written.value is True


class Lab:
    """A dispatcher over markers in memory."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.deadlines = Deadlines(self.clock)  # type: ignore[arg-type]
        self.markers = MemoryMarkers()
        self.dispatcher = MarkerDispatcher(self.markers, self.deadlines)

    def write(self, *partitions: TopicPartition) -> Signal[bool]:
        return begin(self.dispatcher.write(KEY, MARKER, partitions))

    def written(self) -> list[TopicPartition]:
        return [tp for tp, _ in self.markers.written]

    def later(self, seconds: float = 1) -> None:
        self.clock.advance(seconds)
        self.deadlines.run_due()


@pytest.fixture
def lab() -> Lab:
    return Lab()


def test_a_transaction_without_partitions_needs_no_marker(lab: Lab) -> None:
    assert lab.write().value is True
    assert lab.dispatcher.statistics().transactions == 0


def test_very_many_markers_are_written_in_turns(lab: Lab) -> None:
    many = [TopicPartition("t", index) for index in range(2 * MARKERS_PER_TURN + 1)]
    written = lab.write(*many)
    for turns in (1, 2):
        assert lab.written() == many[: turns * MARKERS_PER_TURN]
        assert not written.fired
        lab.later(0)
    assert lab.written() == many
    assert written.value is True


def test_a_newer_coordinator_ends_the_work_for_all_partitions(lab: Lab) -> None:
    lab.markers.refusals[T0] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert lab.write(T0, T1).value is False
    assert lab.written() == []
    assert lab.dispatcher.statistics().transactions == 0


@pytest.mark.parametrize("again", [False, True])
def test_work_that_is_given_up_is_over_at_once_and_tries_nothing_again(
    lab: Lab, again: bool
) -> None:
    lab.markers.refusals[T0] = ErrorCode.NOT_ENOUGH_REPLICAS
    first = lab.write(T0)
    lab.markers.refusals.clear()
    if again:
        assert lab.write(T1).value is True
    else:
        lab.dispatcher.cancel_all(1)
        assert not first.fired, "of another partition of the coordinator"
        lab.dispatcher.cancel_all(0)
    assert first.value is False
    lab.later(10)
    assert lab.written() == [T1] * again


def test_a_marker_that_is_written_after_all_ends_no_work_that_was_given_up(lab: Lab) -> None:
    lab.markers.hold = True
    first = lab.write(T0)
    lab.dispatcher.cancel(KEY)
    second = lab.write(T0, T1)
    lab.markers.refusals[T1] = ErrorCode.NOT_ENOUGH_REPLICAS
    lab.markers.release()
    assert (first.value, second.fired) == (False, False)
    assert lab.dispatcher.statistics().written == 1
    lab.markers.refusals.clear()
    lab.later()
    assert second.value is True


def test_a_marker_whose_write_begins_the_next_work_does_not_end_that() -> None:
    clock = ManualClock()

    class BeginsTheNext:
        following: Signal[bool] | None = None

        async def write(self, tp: TopicPartition, marker: Marker) -> ErrorCode:
            if self.following is not None:
                return ErrorCode.NOT_ENOUGH_REPLICAS
            self.following = Signal()
            self.following = begin(dispatcher.write(KEY, MARKER, [T0]))
            return ErrorCode.NONE

    writer = BeginsTheNext()
    dispatcher = MarkerDispatcher(writer, Deadlines(clock))  # type: ignore[arg-type]
    assert begin(dispatcher.write(KEY, MARKER, [T0])).value is False
    assert writer.following is not None
    assert not writer.following.fired
    assert dispatcher.statistics().written == 0
