"""Long work on the event loop, cut into turns, so that other tasks wait for milliseconds only.

A loop over things of which a request, a file or a timer may name thousands goes in turns: after
`TURN_S` seconds of work it lets the other tasks that are ready run first.

    turns = Turns(clock)
    for name in request.names:
        ...                   # never suspended in here: a critical section
        await turns.next()    # suspended here, if the turn is over: the world may have changed

A plain function asks `is_over` instead, and schedules what is left for a later turn.

What was read before a `next` may have changed after it: look it up again, and never keep an
iterator over a table that other tasks change.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Final, TypeVar

import trio

from storage.clock import Clock

_QUEUE: Final[trio.lowlevel.RunVar[trio.Lock]] = trio.lowlevel.RunVar("queue of long work")

Result = TypeVar("Result")
Item = TypeVar("Item")

TURN_S: Final = 0.002
"""Seconds of work between two checkpoints. A tenth of it would cost ten times as many task
switches, and no client would notice the shorter wait."""

ITEMS: Final = 256
"""A turn ends after this many items at the latest, because in virtual time work takes no time."""


async def wait_for_turn() -> None:
    """A checkpoint that queues behind other long work: one piece of it runs per pass of the loop.

    If a hundred pieces ran side by side, each would take a turn in the same pass, and every other
    task would wait for a hundred turns.
    """
    try:
        queue = _QUEUE.get()
    except LookupError:
        queue = trio.Lock()
        _QUEUE.set(queue)
    async with queue:
        pass  # leaving wakes the next in the queue, which runs in the next pass


def at_once(steps: Generator[None, None, Result]) -> Result:
    """Run a generator that yields between turns to its end at once; return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


def in_slices(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield the items in slices of `size`; the last may be shorter."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _no_time() -> float:
    return 0.0


class Turns:
    """The turns of one piece of long work. Event loop only."""

    __slots__ = ("_began", "_items", "_monotonic", "_most")

    def __init__(self, clock: Clock | None = None, *, items: int = ITEMS) -> None:
        """A turn has at most `items` items; without a clock only their number ends it."""
        self._monotonic = _no_time if clock is None else clock.monotonic
        self._most = items
        self._began = self._monotonic()
        self._items = 0

    async def next(self) -> None:
        """Call it after each item: a checkpoint if the turn is over, else it does nothing.

        Raises trio.Cancelled at that checkpoint: shield what must be finished.
        """
        if self.is_over():
            await wait_for_turn()
            self.begin()

    def is_over(self) -> bool:
        """Count one item; return whether the turn is over. Call it after each item."""
        self._items += 1
        return self._items >= self._most or self._monotonic() - self._began >= TURN_S

    def begin(self) -> None:
        """Begin a turn now."""
        self._items = 0
        self._began = self._monotonic()
