"""Named timers that are renewed more often than they fire."""

import pytest

from broker.coordinator.runtime.timers import Timers
from broker.deadlines import Deadlines
from tests.support.manual_clock import ManualClock


class Timed:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.deadlines = Deadlines(self.clock)
        self.timers = Timers(self.deadlines, self.clock)
        self.fired: list[str] = []

    def schedule(self, key: str, delay_s: float, name: str = "") -> None:
        self.timers.schedule(key, delay_s, lambda: self.fired.append(name or key))

    def pass_s(self, seconds: float) -> list[str]:
        self.clock.advance(seconds)
        self.deadlines.run_due()
        fired, self.fired = self.fired, []
        return fired


@pytest.fixture
def timed() -> Timed:
    return Timed()


def test_a_timer_fires_once(timed: Timed) -> None:
    timed.schedule("a", 10)
    assert timed.pass_s(9.9) == []
    assert timed.pass_s(0.1) == ["a"]
    assert "a" not in timed.timers
    assert timed.pass_s(100) == []


def test_a_renewed_timer_fires_at_its_last_time_with_its_last_callback(timed: Timed) -> None:
    timed.schedule("a", 10, "first")
    for _ in range(100):
        timed.pass_s(1)
        timed.schedule("a", 10, "last")
    assert timed.pass_s(9.9) == []
    assert timed.pass_s(0.1) == ["last"]


def test_renewing_adds_nothing_to_the_heap(timed: Timed) -> None:
    for _ in range(1_000):
        timed.schedule("a", 10)
    assert timed.deadlines.statistics().active == 1
    assert len(timed.timers) == 1


def test_a_timer_may_be_set_to_an_earlier_time(timed: Timed) -> None:
    timed.schedule("a", 100, "late")
    timed.schedule("a", 1, "early")
    assert timed.pass_s(1) == ["early"]
    assert timed.pass_s(200) == []


def test_a_cancelled_timer_never_fires(timed: Timed) -> None:
    timed.schedule("a", 1)
    timed.schedule("b", 1)
    timed.timers.cancel("a")
    timed.timers.cancel("unknown")
    assert timed.pass_s(1) == ["b"]


def test_clear_cancels_all(timed: Timed) -> None:
    timed.schedule("a", 1)
    timed.schedule("b", 2)
    timed.timers.clear()
    assert timed.pass_s(10) == []
    assert timed.deadlines.next_deadline() is None


def test_a_callback_may_set_its_own_timer_again(timed: Timed) -> None:
    def again() -> None:
        timed.fired.append("tick")
        timed.timers.schedule("a", 1, again)

    timed.timers.schedule("a", 1, again)
    assert [timed.pass_s(1) for _ in range(3)] == [["tick"]] * 3
