"""Work that no request waits for, side by side: loads, walks, late markers, fetchers."""

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import trio

from broker.world.driver import Driver
from storage.waits import Work

Make: TypeAlias = Callable[[], Work[None]]
"""Returns the work; called when it begins."""


class Tasks:
    """Runs pieces of work side by side. Event loop only."""

    def __init__(self) -> None:
        self.waiting: deque[Make] = deque()
        """The work that was begun before `run`."""
        self._start: Callable[[Make], None] | None = None

    @property
    def running(self) -> bool:
        """Whether `run` is running, so that work that is begun now starts at once."""
        return self._start is not None

    def begin(self, make: Make) -> None:
        """Do the work, in a later turn of the loop and not before `run`."""
        if self._start is None:
            self.waiting.append(make)
        else:
            self._start(make)

    async def run(
        self, driver: Driver, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Do the work until cancelled. Started once, by the server."""
        async with trio.open_nursery() as nursery:
            self._start = lambda make: nursery.start_soon(driver.run, make())
            while self.waiting:
                self._start(self.waiting.popleft())
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._start = None
