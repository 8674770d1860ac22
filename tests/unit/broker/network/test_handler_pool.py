"""The handler workers: who is called when, and what a stop leaves."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.fairness import CLIENT, Client
from broker.network.endings import ConnectionEnded
from broker.network.handler_pool import HandlerPool
from broker.network.request_channel import RequestChannel
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from storage.waits import call
from tests.support.callers import FakeCaller, add
from tests.support.gated_workers import GatedWorkers
from tests.support.manual_clock import ManualClock
from tests.support.virtual_time import VirtualClock


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


class Bench:
    """A pool whose calls wait at gates."""

    def __init__(self, workers: int) -> None:
        self.clock, self.gates = ManualClock(), Gates()
        driver = Driver(self.gates, self.clock)
        self.channel = RequestChannel()
        self.pool = HandlerPool(self.channel, driver, workers=workers, clock=self.clock)

    def run(self, test: Callable[[], Awaitable[None]]) -> None:
        """Run a test beside the pool."""

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.pool.run)
                try:
                    await test()
                finally:
                    self.channel.close()
                    await self.gates.open_all()

        trio.run(main)


@pytest.fixture
def workers() -> int:
    return 2


@pytest.fixture
def bench(workers: int) -> Bench:
    return Bench(workers)


async def test_it_grows_at_once_and_shrinks_when_workers_are_free(bench: Bench) -> None:
    channel, pool, gates = bench.channel, bench.pool, bench.gates
    for _ in range(6):
        add(channel, int)
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
        add(channel, int)
    await wait_all_tasks_blocked()
    statistics = pool.statistics()
    assert (statistics.workers, statistics.busy, statistics.queued) == (1, 1, 2)
    pool.resize(3)
    await wait_all_tasks_blocked()
    assert pool.statistics().busy == 3


async def test_a_worker_in_the_middle_of_a_call_is_busy(bench: Bench) -> None:
    channel, pool, gates, clock = bench.channel, bench.pool, bench.gates, bench.clock
    clock.advance(3)
    caller = add(channel, int)
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


@pytest.mark.parametrize("workers", [1])
async def test_calls_are_made_in_the_order_in_which_they_came(bench: Bench) -> None:
    channel, pool, gates = bench.channel, bench.pool, bench.gates
    made: list[int] = []
    for number in range(6):
        add(channel, made.append, number)
    await wait_all_tasks_blocked()
    assert pool.statistics().queued == 5
    for number in range(6, 12):
        gates.open_next()
        add(channel, made.append, number)
        await wait_all_tasks_blocked()
        add(channel, made.append, number + 6)
    await gates.open_all()
    later = [number for first in range(6, 12) for number in (first, first + 6)]
    assert made == [*range(6), *later]


@pytest.mark.parametrize("workers", [3])
async def test_all_idle_workers_take_calls_that_come_together(bench: Bench) -> None:
    await wait_all_tasks_blocked()
    for _ in range(4):
        add(bench.channel, int)
    await wait_all_tasks_blocked()
    assert bench.pool.statistics().busy == 3


@pytest.mark.parametrize("workers", [1, 2])
async def test_calls_that_come_while_workers_are_idle_or_take_others_keep_their_order(
    bench: Bench,
) -> None:
    made: list[int] = []
    await wait_all_tasks_blocked()
    for number in range(5):
        add(bench.channel, made.append, number)
    for number in range(5, 15):
        await trio.lowlevel.checkpoint()
        if bench.gates.gates:
            bench.gates.open_next()
        add(bench.channel, made.append, number)
    await bench.gates.open_all()
    assert made == [*range(15)]


async def test_a_caller_gets_the_answer_or_the_error_of_its_call(bench: Bench) -> None:
    channel, gates = bench.channel, bench.gates
    good, bad = add(channel, int, "7"), add(channel, int, "x")
    await wait_all_tasks_blocked()
    gates.open()
    await wait_all_tasks_blocked()
    assert (good.answers, good.errors, bad.answers) == ([7], [], [])
    assert isinstance(bad.errors[0], ValueError)


async def test_a_worker_works_for_the_client_of_its_caller(clock: VirtualClock) -> None:
    channel = RequestChannel()
    pool = HandlerPool(channel, Driver(InlineWorkers(), clock), workers=1, clock=clock)
    callers = [FakeCaller(Client("host", number)) for number in range(2)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.run)
        for caller in callers:
            channel.add(call(CLIENT.get), caller)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [caller.answers for caller in callers] == [[caller.client] for caller in callers]


@pytest.mark.parametrize("workers", [1, 3])
async def test_a_close_has_all_calls_made_that_came_before(bench: Bench) -> None:
    callers = [add(bench.channel, int, number) for number in range(9)]
    await wait_all_tasks_blocked()
    bench.channel.close()
    late = add(bench.channel, int)
    assert isinstance(late.errors[0], ConnectionEnded)
    await bench.gates.open_all()
    assert [caller.answers for caller in callers] == [[number] for number in range(9)]


async def test_a_cancelled_pool_finishes_calls_that_have_begun_and_ends_the_other_callers(
    clock: VirtualClock,
) -> None:
    gates = Gates()
    channel = RequestChannel()
    pool = HandlerPool(channel, Driver(gates, clock), workers=1, clock=clock)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.run)
        callers = [add(channel, int, number) for number in range(4)]
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await wait_all_tasks_blocked()
            assert not callers[0].answers
            await gates.open_all()
    callers.append(add(channel, int))
    assert [caller.answers for caller in callers] == [[0], [], [], [], []]
    assert not callers[0].errors
    assert all(isinstance(caller.errors[0], ConnectionEnded) for caller in callers[1:])
