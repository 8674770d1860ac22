"""`Turns`: who waits beside long work waits for one turn of it, not for all of it."""

import trio

from broker.world.turns import ITEMS, TURN_S, Turns
from tests.support.manual_clock import ManualClock


def _others_turns(*, items: int, ms_each: int) -> int:
    """How often somebody else ran while so many items were gone through."""
    return trio.run(_go_through, items, ms_each)


async def _go_through(items: int, ms_each: int) -> int:
    clock = ManualClock()
    ran = 0

    async def somebody_else() -> None:
        nonlocal ran
        while True:
            await trio.lowlevel.checkpoint()
            ran += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(somebody_else)
        await trio.lowlevel.checkpoint()
        before = ran
        turns = Turns(clock)
        for _ in range(items):
            clock.advance(ms=ms_each)
            await turns.next()
        nursery.cancel_scope.cancel()
    return ran - before


def test_short_work_is_not_interrupted() -> None:
    assert _others_turns(items=ITEMS - 1, ms_each=0) == 0


def test_a_turn_ends_with_its_time() -> None:
    turn_ms = round(TURN_S * 1000)
    assert _others_turns(items=10, ms_each=turn_ms + 1) == 10
    assert _others_turns(items=turn_ms - 1, ms_each=1) == 0


def test_a_turn_ends_with_its_items_where_time_stands_still() -> None:
    assert _others_turns(items=3 * ITEMS, ms_each=0) == 3
