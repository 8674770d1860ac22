"""The driver: what is called is completed, and what cancellation ends."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from broker.world.clock import SystemClock
from broker.world.driver import Driver, rest, take_turn
from broker.world.machine import MachineWorkers
from broker.world.turns import PAUSES, TURN_OVER, TURN_S
from broker.world.workers import InlineWorkers, Workers
from storage.errors import StorageError
from storage.waits import PAUSE, Signal, Until, Wait, call, together
from tests.support.driving import close


@pytest.fixture(params=[InlineWorkers, MachineWorkers])
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    workers: Workers = request.param()
    yield Driver(workers, SystemClock())
    trio.run(close, workers)


def fail(error: Exception) -> None:
    raise error


async def noting(notes: list[str], name: str, error: Exception | None = None) -> int:
    """Two calls without a pause in between."""
    await call(notes.append, f"begun {name}")
    if error is not None:
        await call(fail, error)
    await call(notes.append, f"ended {name}")
    notes.append(f"after {name}")
    return threading.get_ident()


def test_calls_run_in_a_thread_and_the_rest_on_the_loop(driver: Driver) -> None:
    async def work() -> tuple[int, int]:
        return await call(threading.get_ident), threading.get_ident()

    called, after = trio.run(driver.run, work())
    assert after == threading.get_ident()
    assert (called == after) is isinstance(driver._workers, InlineWorkers)


def test_work_returns_on_the_loop(driver: Driver) -> None:
    notes: list[str] = []
    assert trio.run(driver.run, noting(notes, "a")) == threading.get_ident()
    assert notes == ["begun a", "ended a", "after a"]


@pytest.mark.usefixtures("loop")
async def test_calls_are_completed_though_the_task_is_cancelled(driver: Driver) -> None:
    notes: list[str] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        await driver.run(noting(notes, "a"))
    assert notes == ["begun a", "ended a", "after a"]


@pytest.mark.usefixtures("loop")
async def test_cancelled_at_a_call_nothing_follows_the_next_pause(driver: Driver) -> None:
    notes: list[str] = []
    scope = trio.CancelScope()

    async def work() -> None:
        try:
            await noting(notes, "a")
            await PAUSE
            scope.cancel()
            await noting(notes, "b")
            await PAUSE
            await noting(notes, "c")
        finally:
            notes.append("cleaned up")

    with scope:
        await driver.run(work())
    assert notes[-2:] == ["after b", "cleaned up"]
    assert scope.cancelled_caught


def test_works_together_run_to_their_ends_though_one_fails(driver: Driver) -> None:
    notes: list[str] = []

    async def work() -> None:
        await together(
            noting(notes, "a"), noting(notes, "b", StorageError("/d", "gone")), noting(notes, "c")
        )
        notes.append("never")

    with pytest.raises(StorageError):
        trio.run(driver.run, work())
    assert {"after a", "begun b", "after c"} < set(notes)
    assert not {"after b", "never"} & set(notes)


# ---- work whose waits another piece of work waits for


class Noting:
    """A `WaitObserver`."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def waits(self, wait: Wait) -> None:
        self.seen.append(wait)

    def goes_on(self) -> float:
        self.seen.append("goes on")
        return 0.0


def standing() -> float:
    return 0.0


def awaited(wait: Wait) -> Signal[Any]:
    assert isinstance(wait, Until)
    return wait.signal


@pytest.mark.parametrize("begun", [False, True])
def test_the_rest_of_work_waits_for_what_the_work_waits_for(begun: bool) -> None:
    noting = Noting()
    first, second = Signal[int](), Signal[int]()

    async def work() -> int:
        return await first + await second

    rest_of = work()
    wait = take_turn(rest_of, None, 0.0, standing) if begun else None
    whole = rest(rest_of, wait, noting, standing)
    assert awaited(whole.send(None)) is first
    first.fire(3)
    assert awaited(whole.send(None)) is second
    second.fire(4)
    with pytest.raises(StopIteration) as end:
        whole.send(None)
    assert end.value.value == 7
    waits = [seen.signal if isinstance(seen, Until) else seen for seen in noting.seen]
    assert waits == [first, "goes on", second, "goes on"]


def test_an_answer_and_an_error_reach_the_work() -> None:
    seen: list[Any] = []

    async def work() -> None:
        seen.append(await call(int, "7"))
        try:
            await call(int, "x")
        except ValueError as error:
            seen.append(error)
        raise KeyError

    whole = rest(work(), None, Noting(), standing)
    whole.send(None)
    whole.send(7)
    error = ValueError()
    with pytest.raises(KeyError):
        whole.throw(error)
    assert seen == [7, error]


@pytest.mark.parametrize("pauses", [0, 1, PAUSES, PAUSES + 1, 2 * PAUSES + 3])
def test_a_turn_is_over_after_some_pauses_where_time_stands_still(pauses: int) -> None:
    async def work() -> None:
        for _ in range(pauses):
            await PAUSE

    noting = Noting()
    whole = rest(work(), None, noting, standing)
    for _ in range(pauses // (PAUSES + 1)):
        assert whole.send(None) is TURN_OVER
    with pytest.raises(StopIteration):
        whole.send(None)
    assert noting.seen == [TURN_OVER, "goes on"] * (pauses // (PAUSES + 1))


@pytest.mark.parametrize(
    ("took_s", "is_over"), [(0.0, False), (TURN_S * 0.99, False), (TURN_S, True)]
)
def test_a_turn_is_over_when_it_has_taken_long(took_s: float, is_over: bool) -> None:
    signal: Signal[None] = Signal()

    async def work() -> None:
        await PAUSE
        await signal

    wait = take_turn(work(), None, 0.0, lambda: took_s)
    assert (wait is TURN_OVER) is is_over
    assert isinstance(wait, Until) is not is_over


def test_a_pause_after_a_call_is_left_to_the_caller() -> None:
    """So work that is made of calls can be ended between them."""

    async def work() -> None:
        for _ in range(3):
            await call(int)
            await PAUSE

    whole = rest(work(), None, Noting(), standing)
    waits = [whole.send(None) for _ in range(6)]
    assert [wait is PAUSE for wait in waits] == [False, True] * 3


@pytest.mark.parametrize("begun", [False, True])
def test_the_first_turn_begins_when_the_work_goes_on(begun: bool) -> None:
    first, second = Signal[None](), Signal[None]()

    async def work() -> None:
        await first
        await PAUSE
        await second

    class Late(Noting):
        def goes_on(self) -> float:
            return 100.0

    rest_of = work()
    if begun:
        wait = take_turn(rest_of, None, 100.0, lambda: 100.0)
    else:
        first.fire()
        wait = None
    whole = rest(rest_of, wait, Late(), lambda: 100.0)
    if begun:
        whole.send(None)
        first.fire()
    assert awaited(whole.send(None)) is second
    whole.close()
