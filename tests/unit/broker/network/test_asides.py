"""Work aside: ends with its client, or is finished; attributed, after other long work, ended."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from broker.network.asides import Asides
from broker.network.work import Work
from broker.request import Aside, Pending
from broker.world.loop_watch import LoopWatch
from tests.support.manual_clock import ManualClock


def what() -> str:
    return "a test"


def in_loop(scenario: Callable[[Asides], Awaitable[None]]) -> None:
    async def run() -> None:
        clock = ManualClock()
        asides = Asides(clock, LoopWatch(clock))
        async with trio.open_nursery() as nursery:
            await nursery.start(asides.run)
            await scenario(asides)
            await asides.close()
            assert asides.working == 0

    trio.run(run)


async def for_ever() -> None:
    await trio.sleep_forever()


def test_the_reply_comes_when_the_work_is_done() -> None:
    async def scenario(asides: Asides) -> None:
        go = trio.Event()

        async def work() -> str:
            await go.wait()
            return "reply"

        begun = asides.begin(Aside(work), what)
        await trio.testing.wait_all_tasks_blocked()
        assert (begun.done, asides.working) == (False, 1)
        go.set()
        assert await begun.wait_reply() == "reply"
        await trio.testing.wait_all_tasks_blocked()
        assert asides.working == 0

    in_loop(scenario)


@pytest.mark.parametrize("begun", [False, True])
def test_an_aside_ends_with_its_client(begun: bool) -> None:
    async def scenario(asides: Asides) -> None:
        work = asides.begin(Aside(for_ever), what)
        if begun:
            await trio.testing.wait_all_tasks_blocked()
        work.abandon()
        await trio.testing.wait_all_tasks_blocked()
        assert (work.done, asides.working) == (False, 0)

    in_loop(scenario)


def test_a_coroutine_is_finished_without_its_client() -> None:
    async def scenario(asides: Asides) -> None:
        go = trio.Event()
        parked = Pending()
        done: list[str] = []

        async def work() -> Pending:
            await go.wait()
            done.append("done")
            return parked

        async with trio.open_nursery() as client:
            client.start_soon(asides.finish, work(), what)
            await trio.testing.wait_all_tasks_blocked()
            client.cancel_scope.cancel()
        assert asides.working == 1
        go.set()
        await trio.testing.wait_all_tasks_blocked()
        assert done == ["done"]
        assert parked.abandoned  # nobody would take its reply

    in_loop(scenario)


def test_what_it_raises_is_for_the_connection_to_answer() -> None:
    async def scenario(asides: Asides) -> None:
        async def work() -> None:
            raise ValueError("a bug")

        begun = asides.begin(Aside(work), what)
        await begun.wait_reply()
        assert isinstance(begun.error, ValueError)
        assert isinstance((await asides.finish(work(), what)).error, ValueError)

    in_loop(scenario)


def test_many_begin_one_in_a_pass_of_the_loop() -> None:
    passes: list[int] = []

    async def scenario(asides: Asides) -> None:
        async def work() -> None:
            passes.append(len(passes))

        for _ in range(10):
            asides.begin(Aside(work), what)
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert len(passes) < 5
        await trio.testing.wait_all_tasks_blocked()
        assert len(passes) == 10

    in_loop(scenario)


def test_work_that_holds_the_loop_is_named() -> None:
    async def run() -> None:
        clock = ManualClock()
        watch = LoopWatch(clock)
        asides = Asides(clock, watch)
        noted: list[str] = []
        watch.note = lambda began, ended, named: noted.append(named())  # type: ignore[method-assign]

        async def work() -> None:
            clock.advance(1)

        async with trio.open_nursery() as nursery:
            await nursery.start(asides.run)
            await asides.begin(Aside(work), what).wait_reply()
            await asides.close()
        assert noted == ["a test"]

    trio.run(run)


def test_a_stop_waits_for_what_is_shielded_and_ends_the_rest() -> None:
    ends: list[str] = []

    async def scenario(asides: Asides) -> None:
        go = trio.Event()

        async def append() -> str:
            with trio.CancelScope(shield=True):
                await go.wait()
                ends.append("appended")
            return "reply"

        begun: list[Work] = [asides.begin(Aside(append), what), asides.begin(Aside(for_ever), what)]
        await trio.testing.wait_all_tasks_blocked()

        async def close() -> None:
            await asides.close()
            ends.append("closed")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(close)
            await trio.testing.wait_all_tasks_blocked()
            assert (ends, asides.working) == ([], 1)
            go.set()
        assert ends == ["appended", "closed"]
        assert [work.reply for work in begun] == ["reply", None]

    in_loop(scenario)


def test_nothing_is_begun_before_the_start_or_after_the_stop() -> None:
    async def refused(asides: Asides) -> None:
        with pytest.raises(trio.ClosedResourceError):
            asides.begin(Aside(for_ever), what)
        coroutine: Any = for_ever()
        with pytest.raises(trio.ClosedResourceError):
            await asides.finish(coroutine, what)
        assert coroutine.cr_frame is None  # closed: it would be told of as never awaited

    async def run() -> None:
        clock = ManualClock()
        asides = Asides(clock, LoopWatch(clock))
        await refused(asides)
        async with trio.open_nursery() as nursery:
            await nursery.start(asides.run)
            await asides.close()
        await refused(asides)

    trio.run(run)
