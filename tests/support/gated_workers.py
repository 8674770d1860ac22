"""Workers whose calls in threads wait until the test lets them go on."""

from collections.abc import Callable
from typing import Any

import trio

from broker.world.workers import InlineWorkers, Result


class GatedWorkers(InlineWorkers):
    """Each call in a thread waits at its gate; `gates` has them in the order of the calls."""

    def __init__(self) -> None:
        self.gates: list[trio.Event] = []

    async def in_thread(
        self,
        work: Callable[..., Result],
        *values: Any,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Result:
        gate = trio.Event()
        self.gates.append(gate)
        await gate.wait()
        return work(*values)

    def open(self) -> None:
        """Let all calls go on that wait now."""
        for gate in self.gates:
            gate.set()
