"""How soon a marker that could not be written is written again."""

import pytest

from broker.coordinator.marker_writer import Marker
from broker.coordinator.transaction.markers import MarkerDispatcher, WorkKey
from broker.deadlines import Deadlines
from broker.world.in_turn import begin
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from tests.support.manual_clock import ManualClock

MARKER = Marker(producer_id=1, producer_epoch=0, coordinator_epoch=0, commit=True)
MOVES = (0.1, 0.2, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4)
STAYS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 6.4)


class Refusing:
    """Refuses with one code, and notes when it was asked."""

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
    tp = TopicPartition("t", 0)
    written = begin(dispatcher.write(WorkKey(0, "id"), MARKER, [tp]))
    while len(writer.asked) <= len(pauses):
        clock.advance(ms=10)
        deadlines.run_due()
    found = [after - before for before, after in zip(writer.asked, writer.asked[1:], strict=False)]
    assert found == pytest.approx(pauses, abs=0.02)
    writer.code = ErrorCode.NONE
    clock.advance(10)
    deadlines.run_due()
    assert written.value is True
