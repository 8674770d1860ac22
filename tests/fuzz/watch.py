"""Watches turns of the event loop, memory and the log while frames are sent."""

import logging
import resource
import time
from collections.abc import Callable
from typing import Any, TypeVar

import trio

from broker.world.workers import InlineWorkers

Result = TypeVar("Result")
_BYTES_PER_UNIT = 1024
"""Bytes in a unit of `ru_maxrss` on Linux."""


class Hands(InlineWorkers):
    """Work of threads and child processes, done here; it is not the loop's and counts apart."""

    def __init__(self) -> None:
        self.busy_s = 0.0

    async def in_thread(
        self,
        work: Callable[..., Result],
        *values: Any,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Result:
        return await super().in_thread(self._timed(work), *values, limiter=limiter)

    async def in_process(self, work: Callable[..., Result], *values: Any) -> Result:
        return await super().in_process(self._timed(work), *values)

    def _timed(self, work: Callable[..., Result]) -> Callable[..., Result]:
        def run(*values: Any) -> Result:
            began = time.thread_time()
            try:
                return work(*values)
            finally:
                self.busy_s += time.thread_time() - began

        return run


class TurnWatch(trio.abc.Instrument):
    """The longest turn of any task but the client's, in seconds of CPU."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._began = 0.0
        self._busy = 0.0
        self.client: trio.lowlevel.Task | None = None
        self.longest_s = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """See trio."""
        self._busy = self._hands.busy_s
        self._began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """See trio."""
        if task is not self.client:
            turn = time.thread_time() - self._began - (self._hands.busy_s - self._busy)
            self.longest_s = max(self.longest_s, turn)

    def take(self) -> float:
        """Return the longest turn since the last call."""
        longest, self.longest_s = self.longest_s, 0.0
        return longest


class LogWatch(logging.Handler):
    """Whatever is logged at a level or above it, or with a traceback."""

    def __init__(self, least: int = logging.ERROR) -> None:
        super().__init__(logging.INFO)
        self._least = least
        self._seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See logging."""
        if record.exc_info or record.levelno >= self._least:
            self._seen.append(self.format(record))

    def take(self) -> list[str]:
        """Return the lines since the last call."""
        seen, self._seen = self._seen, []
        return seen


def greatest_rss() -> int:
    """The most memory that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_PER_UNIT


def rss() -> int:
    """The memory that this process has now, in bytes."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()
