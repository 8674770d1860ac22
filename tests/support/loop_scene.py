"""A loop over connections that runs in a test's own time, with streams that the test speaks for."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from broker.fairness import Client
from broker.network.connection_loop import WITH_OTHERS, ConnectionLoop
from broker.network.connection_state import CONNECTION_TURN_S
from broker.network.connection_work import ConnectionWork
from broker.network.handler_pool import HandlerPool
from broker.network.request_channel import RequestChannel
from broker.world.driver import Driver
from broker.world.readiness import BROKEN, HANGUP, IN, ONCE, READABLE
from broker.world.workers import InlineWorkers
from tests.support.manual_clock import ManualClock

RDHUP = HANGUP & ~BROKEN
TURN = CONNECTION_TURN_S * 1.01
"""Just over, whatever the clock shows."""


class FakeStream:
    """A stream that is known by a number."""

    def __init__(self, source: int) -> None:
        self.source = source
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


class FakeReadiness:
    """Returns the events that the test has set, in each look."""

    def __init__(self) -> None:
        self.events: dict[int, int] = {}
        self.masks: dict[int, int] = {}
        self.forgotten: list[int] = []
        self.looks = 0
        """The number of looks."""
        self.later = 0
        """The look, counted from now, in which connection 1 can be received from; 0: none."""
        self.look: Callable[[], object] = bool
        """Called in each look."""
        self.changed = trio.lowlevel.ParkingLot()

    def add(self, stream: int, mask: int) -> int:
        self.masks[stream] = mask
        return stream

    def modify(self, key: int, mask: int) -> None:
        self.masks[key] = mask

    def forget(self, key: int) -> None:
        self.forgotten.append(key)
        del self.masks[key]
        self.events.pop(key, None)

    def poll(self, timeout: int, most: int, /) -> list[tuple[int, int]]:
        self.looks += 1
        self.look()
        if self.later:
            self.later -= 1
            self.events[1] = 0 if self.later else IN
        found = self.found()[:most]
        for key, _ in found:
            if self.masks[key] & ONCE:
                self.events[key] = 0
        return found

    def found(self) -> list[tuple[int, int]]:
        every = ((key, self.events.get(key, 0) & mask) for key, mask in self.masks.items())
        return [(key, events) for key, events in every if events]

    async def wait(self) -> None:
        while not self.found():
            await self.changed.park()

    def tell(self, key: int, events: int) -> None:
        self.events[key] = events
        self.changed.unpark_all()


class SceneClock(ManualClock):
    """Goes on by microseconds, too. No timeout is ever over."""

    def __init__(self) -> None:
        super().__init__()
        self.since_start = 0.0

    def monotonic(self) -> float:
        return self.since_start

    def advance(self, seconds: float = 0.0, *, ms: int = 0) -> None:
        self.since_start += seconds + ms / 1000

    def timeout(self, seconds: float) -> trio.CancelScope:
        return trio.CancelScope()


class Scene:
    """A loop that runs, the things that it asks for, and the events in order."""

    def __init__(self) -> None:
        self.clock = SceneClock()
        self.readiness = FakeReadiness()
        driver = Driver(InlineWorkers(), self.clock)
        self.watch = driver.watch
        self.channel = RequestChannel()
        self.pool = HandlerPool(self.channel, driver, workers=1, clock=self.clock)
        self.loop = ConnectionLoop(self.readiness, driver, self.channel, self.clock.monotonic)
        self.happened: list[Any] = []
        self.streams: list[FakeStream] = []
        self.client = Client("host", 0)

    def run(self, test: Callable[[], Awaitable[None]]) -> None:
        """Run a test beside the loop and the pool."""

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.pool.run)
                nursery.start_soon(self.loop.run)
                await wait_all_tasks_blocked()
                await test()
                nursery.cancel_scope.cancel()

        trio.run(main)

    def serve(self, number: int, work: Coroutine[Any, Any, None]) -> ConnectionWork:
        self.streams.append(FakeStream(number))
        return self.loop.serve(
            self.streams[-1],  # type: ignore[arg-type]
            work,
            Client("host", number),
            lambda: f"connection {number}",
            lambda: self.happened.append(("ended", number)),
        )

    async def served(self, number: int, work: Coroutine[Any, Any, None]) -> ConnectionWork:
        """`serve`, and all that follows from it."""
        served = self.serve(number, work)
        await wait_all_tasks_blocked()
        return served

    async def told(self, number: int, events: int) -> None:
        """Tell of a stream's events; return when all has happened that follows."""
        self.readiness.tell(number, events)
        await wait_all_tasks_blocked()

    async def told_all(self, numbers: Iterable[int]) -> None:
        """Tell that these can be received from; return when all has happened that follows."""
        for number in numbers:
            self.readiness.events[number] = IN
        self.readiness.changed.unpark_all()
        await wait_all_tasks_blocked()

    async def receiving(self, number: int, take: Callable[[], object] = lambda: None) -> None:
        """Goes on whenever something can be received."""
        while True:
            await READABLE
            self.happened.append(number)
            self.readiness.events[number] = 0
            take()


async def answering(scene: Scene, number: int, seconds: float = 0.0) -> None:
    """Handles and sends, with the others if that is wanted."""
    while True:
        await READABLE
        scene.readiness.events[number] = 0
        scene.happened.append(("handled", number))
        scene.clock.advance(seconds)
        if scene.loop.gathers:
            await WITH_OTHERS
        scene.happened.append(("sent", number))
