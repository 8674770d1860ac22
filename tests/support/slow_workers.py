"""Workers whose calls take some passes of the loop."""

from collections.abc import Callable
from random import Random
from typing import Any

import trio

from broker.world.workers import InlineWorkers


class SlowWorkers(InlineWorkers):
    """Each call ends up to `most` passes of the loop after it was made; the seed says which."""

    def __init__(self, seed: int, most: int = 12) -> None:
        self._random = Random(seed)
        self._most = most

    async def in_thread(
        self,
        work: Callable[..., Any],
        *values: Any,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Any:
        """See `Workers`."""
        for _ in range(self._random.randrange(self._most)):
            await trio.lowlevel.checkpoint()
        return work(*values)

    async def in_process(self, work: Callable[..., Any], *values: Any) -> Any:
        """See `Workers`."""
        return await self.in_thread(work, *values)
