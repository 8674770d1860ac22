"""Long work on the event loop, cut into turns, so that others wait for milliseconds only.

Whatever a request, a file or a timer may name by the thousand is gone through in turns: after
`TURN_S` seconds of work, the other tasks that are ready run first.

    turns = Turns(clock)
    for name in request.names:
        ...                   # never suspended in here: a critical section
        await turns.next()    # suspended here, if the turn is over: the world may have changed

A plain function asks `is_over` instead, and schedules what is left for a later turn.

What is read before a `next` may be different after it: look things up again, never keep an iterator
over a table that others change.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Final, TypeVar

import trio

from storage.clock import Clock

_QUEUE: Final[trio.lowlevel.RunVar[trio.Lock]] = trio.lowlevel.RunVar("queue of long work")

Result = TypeVar("Result")
Item = TypeVar("Item")

TURN_S: Final = 0.002
"""Work between two checkpoints. A tenth of it would cost ten times as many switches, and no client
would notice that it waits less."""

ITEMS: Final = 256
"""A turn ends after so many items at the latest, also in virtual time, which work does not move."""


async def wait_for_turn() -> None:
    """A checkpoint behind all other long work: one piece of it goes on in a pass of the loop.

    If a hundred pieces went on side by side, each would take one turn, and every other task would
    wait for a hundred turns.
    """
    try:
        queue = _QUEUE.get()
    except LookupError:
        queue = trio.Lock()
        _QUEUE.set(queue)
    async with queue:
        pass  # the next one is woken, and runs in the next pass


def at_once(steps: Generator[None, None, Result]) -> Result:
    """What a generator returns that would let others have their turns, without that."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


def in_slices(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """`size` items at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _no_time() -> float:
    return 0.0


class Turns:
    """The turns of one piece of long work. Event loop only."""

    __slots__ = ("_began", "_items", "_monotonic", "_most")

    def __init__(self, clock: Clock | None = None, *, items: int = ITEMS) -> None:
        """A turn has at most `items` items; without a clock nothing else ends it."""
        self._monotonic = _no_time if clock is None else clock.monotonic
        self._most = items
        self._began = self._monotonic()
        self._items = 0

    async def next(self) -> None:
        """Call it between two items: a checkpoint if the turn is over, else nothing.

        Raises trio.Cancelled at that checkpoint: shield what must be finished.
        """
        if self.is_over():
            await wait_for_turn()
            self.begin()

    def is_over(self) -> bool:
        """Call it between two items: whether the turn is over."""
        self._items += 1
        return self._items >= self._most or self._monotonic() - self._began >= TURN_S

    def begin(self) -> None:
        """A turn begins now."""
        self._items = 0
        self._began = self._monotonic()
