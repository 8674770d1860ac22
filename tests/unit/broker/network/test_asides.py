"""Work aside: ends with its client, or is finished; attributed, after other long work, ended."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from broker.network.asides import Asides
from broker.world.driver import Driver
from broker.world.loop_watch import LoopWatch
from broker.world.workers import InlineWorkers
from protocol.errors import ErrorCode, KafkaError
from storage.waits import PAUSE, Signal, Until, call
from tests.support.gated_workers import GatedWorkers
from tests.support.manual_clock import ManualClock
from tests.support.unanswered import begun


def asides_on(clock: ManualClock, watch: LoopWatch | None = None) -> Asides:
    return Asides(Driver(InlineWorkers(), clock, watch), clock)


def in_loop(scenario: Callable[[Asides], Awaitable[None]]) -> None:
    async def run() -> None:
        asides = asides_on(ManualClock())
        async with trio.open_nursery() as nursery:
            await nursery.start(asides.run)
            await scenario(asides)
            await asides.close()
            assert asides.working == 0

    trio.run(run)


async def for_ever() -> None:
    await Signal()


def test_the_reply_is_there_when_the_work_is_done() -> None:
    async def scenario(asides: Asides) -> None:
        go: Signal[str] = Signal()

        async def work() -> str:
            return await go

        rest = begun(work())
        gone_on = asides.begin(rest)
        await trio.testing.wait_all_tasks_blocked()
        assert (gone_on.fired, asides.working) == (False, 1)
        go.fire("reply")
        await trio.testing.wait_all_tasks_blocked()
        assert (gone_on.fired, rest.wait, rest.reply, asides.working) == (True, None, "reply", 0)

    in_loop(scenario)


@pytest.mark.parametrize("gone_on_with", [False, True])
def test_work_whose_client_leaves_ends(gone_on_with: bool) -> None:
    async def scenario(asides: Asides) -> None:
        rest = begun(for_ever())
        asides.begin(rest)
        if gone_on_with:
            await trio.testing.wait_all_tasks_blocked()
        rest.leave(ends=True)
        await trio.testing.wait_all_tasks_blocked()
        assert (rest.reply, asides.working) == (None, 0)

    in_loop(scenario)


def test_work_that_is_parked_is_given_back() -> None:
    async def scenario(asides: Asides) -> None:
        parked: Signal[str] = Signal()

        async def work() -> str:
            await call(int)
            return await parked.parked()

        rest = begun(work())
        gone_on = asides.begin(rest)
        await trio.testing.wait_all_tasks_blocked()
        assert (gone_on.fired, asides.working) == (True, 0)
        assert isinstance(rest.wait, Until)
        assert rest.wait.signal is parked
        parked.fire("reply")
        rest.step()
        assert (rest.wait, rest.reply) == (None, "reply")

    in_loop(scenario)


@pytest.mark.parametrize("error", [ValueError("a bug"), KafkaError(ErrorCode.NOT_COORDINATOR)])
def test_a_bug_in_work_that_nobody_waits_for_is_logged(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """A refusal is not: it was for the client."""

    async def scenario(asides: Asides) -> None:
        go: Signal[None] = Signal()

        async def work() -> None:
            await go
            raise error

        rest = begun(work())
        asides.begin(rest)
        await trio.testing.wait_all_tasks_blocked()
        rest.leave(ends=False)
        go.fire()
        await trio.testing.wait_all_tasks_blocked()
        assert asides.working == 0

    in_loop(scenario)
    told = "A request whose client had gone failed" in caplog.text
    assert told is isinstance(error, ValueError)


def test_work_that_is_parked_when_its_client_has_gone_ends() -> None:
    ended: list[bool] = []

    async def scenario(asides: Asides) -> None:
        go: Signal[None] = Signal()
        parked: Signal[None] = Signal()

        async def work() -> None:
            try:
                await go
                await parked.parked()
            finally:
                ended.append(parked.fired)

        rest = begun(work())
        asides.begin(rest)
        await trio.testing.wait_all_tasks_blocked()
        rest.leave(ends=False)
        assert not ended
        go.fire()
        await trio.testing.wait_all_tasks_blocked()
        assert (ended, rest.wait) == ([False], None)

    in_loop(scenario)


@pytest.mark.parametrize("in_a_task", [False, True])
def test_what_it_raises_is_for_the_connection_to_answer(in_a_task: bool) -> None:
    async def scenario(asides: Asides) -> None:
        async def work() -> None:
            await PAUSE
            raise ValueError("a bug")

        rest = begun(work())
        if in_a_task:
            asides.begin(rest)
            await trio.testing.wait_all_tasks_blocked()
        else:
            rest.step()
        assert rest.wait is None
        assert isinstance(rest.error, ValueError)

    in_loop(scenario)


def test_many_begin_one_in_a_pass_of_the_loop() -> None:
    passes: list[int] = []

    async def scenario(asides: Asides) -> None:
        async def work() -> None:
            await PAUSE
            passes.append(len(passes))

        for _ in range(10):
            asides.begin(begun(work()))
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
        asides = asides_on(clock, watch)
        noted: list[str] = []
        watch.note = lambda began, ended, named: noted.append(named())  # type: ignore[method-assign]

        async def work() -> None:
            await PAUSE
            clock.advance(1)

        async with trio.open_nursery() as nursery:
            await nursery.start(asides.run)
            rest = begun(work())
            asides.begin(rest)
            await trio.testing.wait_all_tasks_blocked()
            await asides.close()
        assert noted == [rest.name()]
        assert rest.name().startswith("Heartbeat version 4 from 127.0.0.1:")

    trio.run(run)


def test_a_stop_waits_for_threads_and_ends_the_rest() -> None:
    ends: list[str] = []
    threads = GatedWorkers()

    async def append() -> str:
        await call(int)
        ends.append("appended")
        return "reply"

    async def main() -> None:
        clock = ManualClock()
        asides = Asides(Driver(threads, clock), clock)
        works = [begun(append()), begun(for_ever())]

        async def close() -> None:
            await asides.close()
            ends.append("closed")

        async with trio.open_nursery() as nursery:
            await nursery.start(asides.run)
            for work in works:
                asides.begin(work)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(close)
            await trio.testing.wait_all_tasks_blocked()
            assert (ends, asides.working) == ([], 1)
            threads.open()
        assert ends == ["appended", "closed"]
        assert [work.reply for work in works] == ["reply", None]

    trio.run(main)


def test_nothing_is_begun_before_the_start_or_after_the_stop() -> None:
    def refused(asides: Asides) -> None:
        work: Any = for_ever()
        with pytest.raises(trio.ClosedResourceError):
            asides.begin(begun(work))
        assert work.cr_frame is None  # closed

    async def run() -> None:
        asides = asides_on(ManualClock())
        refused(asides)
        async with trio.open_nursery() as nursery:
            await nursery.start(asides.run)
            await asides.close()
        refused(asides)

    trio.run(run)
