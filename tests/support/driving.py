"""Runs work (`storage.waits`) on trio's loop, for tests in which other tasks run beside it."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from storage.waits import Work
from tests.support.virtual_time import Timeline, VirtualClock

T = TypeVar("T")
RunWork = Callable[[Work[T]], Awaitable[T]]


def driver() -> Driver:
    """Return a driver without threads, whose clock stands still: only pauses end a turn."""
    return Driver(InlineWorkers(), VirtualClock(Timeline()))


class Closable(Protocol):
    """Workers, for example."""

    def close(self) -> None: ...


async def close(what: Closable) -> None:
    """On a loop, as always."""
    what.close()
