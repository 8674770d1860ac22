"""How long a handler worked."""

from broker.quotas.stopwatch import Stopwatch
from tests.support.manual_clock import ManualClock


def test_the_times_of_waiting_are_left_out() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)
    clock.advance(1)
    watch.stop()
    clock.advance(100)
    watch.go_on()
    clock.advance(2)
    assert watch.worked_s == 3
    watch.stop()
    clock.advance(100)
    watch.go_on()
    clock.advance(4)
    assert watch.worked_s == 7
