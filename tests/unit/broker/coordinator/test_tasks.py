"""Work of coordinators that no request waits for."""

import pytest
import trio
import trio.testing

from broker.world.tasks import Tasks
from storage.waits import Signal
from tests.support.driving import driver


@pytest.mark.usefixtures("loop")
async def test_what_is_begun_before_the_run_waits_for_it_and_works_go_on_side_by_side() -> None:
    done: list[str] = []
    goes_on: Signal[None] = Signal()

    async def waits() -> None:
        await goes_on
        done.append("waits")

    async def at_once() -> None:
        done.append("at once")

    tasks = Tasks()
    tasks.begin(waits)
    assert not tasks.running
    async with trio.open_nursery() as nursery:
        await nursery.start(tasks.run, driver())
        assert tasks.running
        tasks.begin(at_once)
        assert done == []
        await trio.testing.wait_all_tasks_blocked()
        assert done == ["at once"]
        goes_on.fire()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert done == ["at once", "waits"]
    assert not tasks.running


@pytest.mark.usefixtures("loop")
async def test_the_stop_ends_what_waits() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await Signal()
        finally:
            ended.append("waits")

    tasks = Tasks()
    async with trio.open_nursery() as nursery:
        await nursery.start(tasks.run, driver())
        tasks.begin(waits)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert ended == ["waits"]
