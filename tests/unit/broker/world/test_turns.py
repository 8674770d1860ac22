"""`Turns`: who waits beside long work waits for one turn of it, not for all of it."""

import trio

from broker.world.turns import ITEMS, TURN_S, Turns
from tests.support.manual_clock import ManualClock


class _Steps(trio.abc.Instrument):
    """Counts how often the event loop went on with the only task there is."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task.coro.__name__ == _go_through.__name__:
            self.count += 1


async def _go_through(items: int, ms_each: int) -> None:
    clock = ManualClock()
    turns = Turns(clock)
    for _ in range(items):
        clock.advance(ms=ms_each)
        await turns.next()


def _interruptions(*, items: int, ms_each: int) -> int:
    """How often others had their turn while so many items were gone through."""
    steps = _Steps()
    trio.run(_go_through, items, ms_each, instruments=[steps])
    return steps.count - 1


def test_short_work_is_not_interrupted() -> None:
    assert _interruptions(items=ITEMS - 1, ms_each=0) == 0


def test_a_turn_ends_with_its_time() -> None:
    turn_ms = round(TURN_S * 1000)
    assert _interruptions(items=10, ms_each=turn_ms + 1) == 10
    assert _interruptions(items=turn_ms - 1, ms_each=1) == 0


def test_a_turn_ends_with_its_items_where_time_stands_still() -> None:
    assert _interruptions(items=3 * ITEMS, ms_each=0) == 3
