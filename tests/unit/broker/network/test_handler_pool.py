"""The handler workers: who is called when, and what a stop leaves."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.fairness import CLIENT, Client
from broker.network.endings import ConnectionEnded
from broker.network.handler_pool import HandlerPool
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from storage.waits import call
from tests.support.callers import FakeCaller, add
from tests.support.gated_workers import GatedWorkers
from tests.support.manual_clock import ManualClock


class Gates(GatedWorkers):
    """Lets calls go on one by one."""

    def open_next(self) -> None:
        self.gates.pop(0).set()

    async def open_all(self) -> None:
        """Also those of calls that come meanwhile."""
        await wait_all_tasks_blocked()
        while self.gates:
            self.open_next()
            await wait_all_tasks_blocked()


def play(
    scenario: Callable[[HandlerPool, Gates, ManualClock], Awaitable[None]],
    workers: int = 2,
    queued_max: int = 100,
) -> None:
    async def main() -> None:
        clock, gates = ManualClock(), Gates()
        driver = Driver(gates, clock)
        pool = HandlerPool(driver, workers=workers, queued_max=queued_max, clock=clock)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.run)
            try:
                await scenario(pool, gates, clock)
            finally:
                pool.close()
                await gates.open_all()

    trio.run(main)


def test_it_grows_at_once_and_shrinks_when_workers_are_free() -> None:
    async def scenario(pool: HandlerPool, gates: Gates, clock: ManualClock) -> None:
        for _ in range(6):
            add(pool, int)
        await wait_all_tasks_blocked()
        assert pool.statistics().busy == 2
        pool.resize(4)
        await wait_all_tasks_blocked()
        assert pool.statistics().busy == 4
        pool.resize(1)
        while pool.statistics().busy:
            gates.open()
            await wait_all_tasks_blocked()
        for _ in range(3):
            add(pool, int)
        await wait_all_tasks_blocked()
        statistics = pool.statistics()
        assert (statistics.workers, statistics.busy, statistics.queued) == (1, 1, 2)
        pool.resize(3)
        await wait_all_tasks_blocked()
        assert pool.statistics().busy == 3

    play(scenario)


def test_a_worker_in_the_middle_of_a_call_is_busy() -> None:
    async def scenario(pool: HandlerPool, gates: Gates, clock: ManualClock) -> None:
        clock.advance(3)
        caller = add(pool, int)
        await wait_all_tasks_blocked()
        clock.advance(5)
        found = pool.statistics()
        assert (found.busy, found.busy_s) == (1, pytest.approx(5))
        clock.advance(1)
        gates.open()
        await wait_all_tasks_blocked()
        clock.advance(9)
        found = pool.statistics()
        assert (found.busy, found.busy_s) == (0, pytest.approx(6))
        assert caller.started == clock.monotonic() - 15

    play(scenario)


@pytest.mark.parametrize("queued_max", [1, 2, 9])
def test_calls_are_made_in_the_order_in_which_they_came(queued_max: int) -> None:
    """Also those in front of a full queue, with others that come later."""
    made: list[int] = []

    async def scenario(pool: HandlerPool, gates: Gates, clock: ManualClock) -> None:
        for number in range(6):
            add(pool, made.append, number)
        await wait_all_tasks_blocked()
        assert pool.statistics().queued == min(queued_max, 5)
        for number in range(6, 12):
            gates.open_next()
            add(pool, made.append, number)
            await wait_all_tasks_blocked()
            add(pool, made.append, number + 6)
        await gates.open_all()
        later = [number for first in range(6, 12) for number in (first, first + 6)]
        assert made == [*range(6), *later]

    play(scenario, workers=1, queued_max=queued_max)


@pytest.mark.parametrize("queued_max", [1, 2, 9])
def test_idle_workers_take_calls_from_in_front_of_a_full_queue(queued_max: int) -> None:
    async def scenario(pool: HandlerPool, gates: Gates, clock: ManualClock) -> None:
        await wait_all_tasks_blocked()
        for _ in range(4):
            add(pool, int)
        await wait_all_tasks_blocked()
        assert pool.statistics().busy == 3

    play(scenario, workers=3, queued_max=queued_max)


@pytest.mark.parametrize("workers", [1, 2])
def test_calls_that_come_while_workers_are_idle_or_take_others_keep_their_order(
    workers: int,
) -> None:
    made: list[int] = []

    async def scenario(pool: HandlerPool, gates: Gates, clock: ManualClock) -> None:
        await wait_all_tasks_blocked()
        for number in range(5):
            add(pool, made.append, number)
        for number in range(5, 15):
            await trio.lowlevel.checkpoint()
            if gates.gates:
                gates.open_next()
            add(pool, made.append, number)
        await gates.open_all()
        assert made == [*range(15)]

    play(scenario, workers=workers, queued_max=1)


def test_a_caller_gets_the_answer_or_the_error_of_its_call() -> None:
    async def scenario(pool: HandlerPool, gates: Gates, clock: ManualClock) -> None:
        good, bad = add(pool, int, "7"), add(pool, int, "x")
        await wait_all_tasks_blocked()
        gates.open()
        await wait_all_tasks_blocked()
        assert (good.answers, good.errors, bad.answers) == ([7], [], [])
        assert isinstance(bad.errors[0], ValueError)

    play(scenario)


def test_a_worker_works_for_the_client_of_its_caller() -> None:
    async def main() -> None:
        clock = ManualClock()
        pool = HandlerPool(Driver(InlineWorkers(), clock), workers=1, queued_max=1, clock=clock)
        callers = [FakeCaller(Client("host", number)) for number in range(2)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.run)
            for caller in callers:
                pool.add(call(CLIENT.get), caller)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert [caller.answers for caller in callers] == [[caller.client] for caller in callers]

    trio.run(main)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_close_has_all_calls_made_that_came_before(workers: int) -> None:
    async def main() -> None:
        clock, gates = ManualClock(), Gates()
        driver = Driver(gates, clock)
        pool = HandlerPool(driver, workers=workers, queued_max=2, clock=clock)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.run)
            callers = [add(pool, int, number) for number in range(9)]
            await wait_all_tasks_blocked()
            pool.close()
            late = add(pool, int)
            assert isinstance(late.errors[0], ConnectionEnded)
            await gates.open_all()
        assert [caller.answers for caller in callers] == [[number] for number in range(9)]

    trio.run(main)


def test_a_cancelled_pool_finishes_calls_that_have_begun_and_ends_the_other_callers() -> None:
    async def main() -> None:
        clock, gates = ManualClock(), Gates()
        pool = HandlerPool(Driver(gates, clock), workers=1, queued_max=1, clock=clock)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.run)
            callers = [add(pool, int, number) for number in range(4)]
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await wait_all_tasks_blocked()
                assert not callers[0].answers
                await gates.open_all()
        callers.append(add(pool, int))
        assert [caller.answers for caller in callers] == [[0], [], [], [], []]
        assert not callers[0].errors
        assert all(isinstance(caller.errors[0], ConnectionEnded) for caller in callers[1:])

    trio.run(main)
