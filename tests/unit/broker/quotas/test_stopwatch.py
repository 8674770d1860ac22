"""How long a handler worked."""

from broker.quotas.stopwatch import Stopwatch
from tests.support.manual_clock import ManualClock


async def test_the_times_of_waiting_are_left_out() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)

    async def parked() -> None:
        clock.advance(100)

    clock.advance(1)
    await watch.leave_out(parked())
    clock.advance(2)
    assert watch.worked_s == 3
    await watch.leave_out(parked())
    clock.advance(4)
    assert watch.worked_s == 7
