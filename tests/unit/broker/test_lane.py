import pytest

from broker.fairness import CLIENT, Client, Lane
from storage.waits import Call, Until, Wait, Work


class Attempt:
    """Work in a lane, which stands still at its call until `finish`."""

    def __init__(self, lane: Lane, address: str, name: str, began: list[str]) -> None:
        self.name = name
        self.began = began
        self.work: Work[str] = lane.call(lambda: name)
        self.result: str | None = None
        self.wait: Wait | None = None
        before = CLIENT.set(Client(address, 1))
        self.step(None)
        CLIENT.reset(before)

    def step(self, answer: object) -> None:
        try:
            self.wait = self.work.send(answer)
        except StopIteration as end:
            self.wait, self.result = None, end.value
            return
        if isinstance(self.wait, Call):
            self.began.append(self.name)

    def finish(self) -> None:
        assert isinstance(self.wait, Call)
        self.step(self.wait.work(*self.wait.values))

    def wake(self) -> None:
        self.step(None)


def test_no_more_than_its_places_are_in_threads() -> None:
    lane, began = Lane(2), []
    attempts = [Attempt(lane, "a", str(n), began) for n in range(3)]
    assert began == ["0", "1"]
    assert lane.waiting == 1
    assert isinstance(attempts[2].wait, Until)
    assert attempts[2].wait.parked, "a client that leaves the line ends its wait"
    attempts[1].finish()
    assert attempts[1].result == "1"
    attempts[2].wake()
    assert began == ["0", "1", "2"]


def test_addresses_take_turns_however_many_each_has() -> None:
    lane, began = Lane(1), []
    attempts = [Attempt(lane, "crowd", f"crowd {n}", began) for n in range(50)]
    attempts += [Attempt(lane, "good", f"good {n}", began) for n in range(2)]
    by_name = {attempt.name: attempt for attempt in attempts}
    for _ in range(6):
        by_name[began[-1]].finish()
        for attempt in attempts:
            if attempt.wait is not None and not isinstance(attempt.wait, Call):
                signal = attempt.wait.signal  # type: ignore[attr-defined]
                if signal.fired:
                    attempt.wake()
    assert began == ["crowd 0", "crowd 1", "good 0", "crowd 2", "good 1", "crowd 3", "crowd 4"]


def test_a_waiter_that_leaves_the_line_or_its_head_keeps_nobody_waiting() -> None:
    lane, began = Lane(1), []
    first, second, third, fourth = (Attempt(lane, "a", str(n), began) for n in range(4))
    second.work.close()
    assert lane.waiting == 2
    first.finish()
    third.work.close()  # whose turn it would have been
    fourth.wake()
    assert began == ["0", "3"]
    fourth.finish()
    assert lane.waiting == 0
    assert Attempt(lane, "b", "4", began).wait is not None
    assert began[-1] == "4"


def test_a_call_that_fails_passes_the_turn_on() -> None:
    lane = Lane(1)

    def fail() -> None:
        raise OSError("broken")

    work = lane.call(fail)
    assert isinstance(work.send(None), Call)
    with pytest.raises(OSError, match="broken"):
        work.throw(OSError("broken"))
    again = lane.call(fail)
    assert isinstance(again.send(None), Call)
    again.close()
