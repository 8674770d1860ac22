"""A clock of trio's time, which is virtual in a test with `trio.testing.MockClock`."""

from contextlib import AbstractContextManager

import trio


class TrioClock:
    """See `broker.world.clock.TaskClock`."""

    def wall_ms(self) -> int:
        return int(trio.current_time() * 1000)

    def monotonic(self) -> float:
        return trio.current_time()

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(max(seconds, 0))

    async def sleep_until(self, deadline: float) -> None:
        await trio.sleep_until(deadline)

    def timeout(self, seconds: float) -> AbstractContextManager[trio.CancelScope]:
        return trio.move_on_after(max(seconds, 0))
