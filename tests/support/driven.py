"""Work that may wait (`storage.waits`), run to its end in a test that runs trio."""

from typing import TypeVar

from broker.world.clock import SystemClock
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from storage.waits import Work

T = TypeVar("T")


def driver() -> Driver:
    """A driver that makes calls at once."""
    return Driver(InlineWorkers(), SystemClock())


async def driven(work: Work[T]) -> T:
    """Run `work` to its end; return its result or raise what it raises."""
    return await driver().run(work)
