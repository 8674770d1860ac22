"""The driver: what is called is completed, and what cancellation ends."""

import threading
from collections.abc import Iterator

import pytest
import trio

from broker.world.clock import SystemClock
from broker.world.driver import Driver
from broker.world.machine import MachineWorkers
from broker.world.workers import InlineWorkers, Workers
from storage.errors import StorageError
from storage.waits import PAUSE, call, together


@pytest.fixture(params=[InlineWorkers, MachineWorkers])
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    workers: Workers = request.param()
    yield Driver(workers, SystemClock())

    async def close() -> None:
        workers.close()

    trio.run(close)


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


def test_work_returns_on_the_loop(driver: Driver) -> None:
    notes: list[str] = []
    assert trio.run(driver.run, noting(notes, "a")) == threading.get_ident()
    assert notes == ["begun a", "ended a", "after a"]


def test_calls_are_completed_though_the_task_is_cancelled(driver: Driver) -> None:
    notes: list[str] = []

    async def cancelled() -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await driver.run(noting(notes, "a"))

    trio.run(cancelled)
    assert notes == ["begun a", "ended a", "after a"]


def test_cancelled_at_a_call_nothing_follows_the_next_pause(driver: Driver) -> None:
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

    async def main() -> None:
        with scope:
            await driver.run(work())

    trio.run(main)
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
