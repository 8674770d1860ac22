"""How long work may hold the event loop, and the queue of all that holds it longer.

A *step* of work lasts from a resume to its next wait. A *turn* is the time for which work may hold
the loop: at a PAUSE it continues at once until its turn is over. In virtual time, which stands
still during a turn, a turn ends after `PAUSES` steps. These count turns:

* `Driver.run`: `TURN_S`; then the work queues here (`wait_for_turn`).
* `take_turn` in `broker.world.driver`, for the handler's work of a request: `TURN_S`; then the work
  of its connection awaits TURN_OVER.
* `ConnectionLoop._resume`, for a connection's own work: `CONNECTION_TURN_S`; then, as after
  TURN_OVER, the loop resumes it when other connections have had their turns.
* `ConnectionState`, for the requests that a connection handles in a row: `CONNECTION_TURN_S`; then
  its replies are sent, and the connection awaits PAUSE.
* `ConnectionLoop._rounds`, for all connections together: `TURN_S`; then trio's other tasks run.
"""

from typing import Final, final

import trio

from storage.waits import Wait

_QUEUE: Final[trio.lowlevel.RunVar[trio.Lock]] = trio.lowlevel.RunVar("queue of long work")

TURN_S: Final = 0.002
"""Seconds of work between two checkpoints. A tenth of it would cost ten times as many task
switches, and no client would notice the shorter wait."""

PAUSES: Final = 256
"""A turn ends after this many pauses at the latest, because in virtual time work takes no time."""


@final
class TurnOver(Wait):
    """The turn of the work is over: others run before it goes on."""

    __slots__ = ()


TURN_OVER: Final = TurnOver()


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
