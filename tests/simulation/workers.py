"""Workers that take their time: work begins late, and its result comes later still. So the loop may
do anything meanwhile (a roll, a truncation, a deletion)."""

from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeVar

import trio

from broker.world.workers import InlineWorkers
from tests.support.virtual_time import VirtualClock

Result = TypeVar("Result")

SLOW_SHARE: Final = 0.03
SLOWEST_S: Final = 1.5
"""The longest delay, as of a busy disk."""


class SlowWorkers(InlineWorkers):
    """`broker.world.workers.Workers` in virtual time."""

    def __init__(self, clock: VirtualClock, random: Random) -> None:
        self._clock = clock
        self._random = random

    async def in_thread(
        self,
        work: Callable[..., Result],
        *values: Any,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Result:
        """See `Workers`."""
        if limiter is not None:
            async with limiter:
                return await self.in_process(work, *values)
        return await self.in_process(work, *values)

    async def in_process(self, work: Callable[..., Result], *values: Any) -> Result:
        """See `Workers`."""
        await trio.lowlevel.checkpoint()
        with trio.CancelScope(shield=True):
            await self._take_time()
            try:
                return work(*values)
            finally:
                await self._take_time()

    async def _take_time(self) -> None:
        random = self._random
        if random.random() < SLOW_SHARE:
            await self._clock.sleep(random.uniform(0, SLOWEST_S))
        elif random.random() < 0.5:
            await self._clock.sleep(random.expovariate(2000))
