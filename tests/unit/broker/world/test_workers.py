"""Workers return results, raise the errors of the work, and report a dead child."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing

from broker.world.machine import LOWEST, NICE, MachineWorkers
from broker.world.workers import InlineWorkers, WorkerDied, Workers
from tests.support.driving import close


@pytest.fixture(params=[InlineWorkers, MachineWorkers])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    made: Workers = request.param()
    yield made
    trio.run(close, made)


def thread_and(value: object) -> tuple[int, object]:
    return threading.get_ident(), value


def process_and(value: object) -> tuple[int, int, object]:
    return os.getpid(), os.nice(0), value


def fail(*values: Any) -> None:
    """Raise an error of the last type that is given; a hand gives its state before it."""
    raise values[-1]("as asked")


def test_a_thread_is_another_one_and_inline_is_here(machine: MachineWorkers) -> None:
    thread, value = trio.run(machine.in_thread, thread_and, 7)
    assert (thread == threading.get_ident(), value) == (False, 7)
    thread, value = trio.run(InlineWorkers().in_thread, thread_and, 7)
    assert (thread == threading.get_ident(), value) == (True, 7)


def test_a_process_is_a_child_of_low_priority_that_stays(machine: MachineWorkers) -> None:
    first, nice, value = trio.run(machine.in_process, process_and, "x")
    assert (first == os.getpid(), value) == (False, "x")
    assert nice == min(os.nice(0) + NICE, 19)
    assert trio.run(machine.in_process, process_and, "y")[0] == first


@pytest.mark.parametrize("where", ["in_thread", "in_process"])
def test_what_the_work_raises_is_raised_here(workers: Any, where: str) -> None:
    with pytest.raises(LookupError, match="as asked"):
        trio.run(getattr(workers, where), fail, LookupError)


@pytest.mark.usefixtures("loop")
async def test_a_waiter_for_the_process_can_be_cancelled(machine: MachineWorkers) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(machine.in_process, time.sleep, 0.3)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.01) as waiting:
            await machine.in_process(time.sleep, 0)
        assert waiting.cancelled_caught


def remember(state: dict[str, Any], value: int) -> tuple[int, list[int]]:
    state.setdefault("seen", []).append(value)
    return os.getpid(), state["seen"]


def die_with(state: dict[str, Any]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_hand_keeps_between_two_calls_lives_until_it_is_closed(workers: Workers) -> None:
    worker = workers.dedicated_worker()
    first, seen = trio.run(worker.call, remember, 1)
    assert seen == [1]
    assert trio.run(worker.call, remember, 2) == (first, [1, 2])
    with pytest.raises(LookupError):
        trio.run(worker.call, fail, LookupError)
    assert trio.run(worker.call, remember, 4) == (first, [1, 2, 4])
    trio.run(close, worker)
    trio.run(close, worker)


def test_each_hand_has_a_state_of_its_own() -> None:
    one, other = InlineWorkers().dedicated_worker(), InlineWorkers().dedicated_worker()
    assert trio.run(one.call, remember, 1)[1] == [1]
    assert trio.run(other.call, remember, 2)[1] == [2]
    one.close()
    assert trio.run(one.call, remember, 3)[1] == [3]


def test_a_hand_is_a_child_of_low_priority_and_another_one_after_it_has_died() -> None:
    worker = MachineWorkers().dedicated_worker()
    try:
        first = trio.run(worker.call, process_of)
        assert first[0] != os.getpid()
        assert first[1] == LOWEST
        trio.run(worker.call, remember, 1)
        with pytest.raises(WorkerDied):
            trio.run(worker.call, die_with)
        second, seen = trio.run(worker.call, remember, 2)
        assert (second == first[0], seen) == (False, [2])
    finally:
        trio.run(close, worker)


def process_of(state: dict[str, Any]) -> tuple[int, int]:
    return os.getpid(), os.nice(0)
