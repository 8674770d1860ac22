"""Nobody waits for more than one turn that takes long."""

from contextlib import suppress

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.network.connection_loop import LONG_S, ClientGone
from broker.world.readiness import BROKEN, IN, ONCE, READABLE
from broker.world.turns import TURN_OVER
from storage.waits import PAUSE, Signal
from tests.support.loop_scene import TURN, Scene, answering


async def test_nobody_waits_for_one_whose_last_step_took_long(scene: Scene) -> None:
    took = {0: 0.0, 1: LONG_S * 1.01, 2: 0.0}
    for number, seconds in took.items():
        scene.serve(number, answering(scene, number, seconds))
    await wait_all_tasks_blocked()
    for _ in range(2):
        scene.happened.clear()
        await scene.told_all(took)
    assert scene.happened == [
        *[("handled", 0), ("sent", 0), ("handled", 2), ("sent", 2)],
        *[("handled", 1), ("sent", 1)],
    ]


@pytest.mark.parametrize("seconds", [LONG_S * 0.99, LONG_S * 1.01])
async def test_a_newcomer_continues_before_the_next_long_turn(scene: Scene, seconds: float) -> None:
    async def big(number: int) -> None:
        for _ in range(2):
            await READABLE
            scene.readiness.events[number] = 0
            scene.happened.append(number)
            scene.clock.advance(seconds)
            scene.readiness.events[3] = IN
        await Signal[None]()

    for number in range(3):
        scene.serve(number, big(number))
    await scene.served(3, scene.receiving(3))
    for _ in range(2):
        scene.happened.clear()
        await scene.told_all(range(3))
    long = seconds > LONG_S
    assert scene.happened == ([0, 3, 1, 3, 2, 3] if long else [0, 1, 2, 3])


@pytest.mark.parametrize(("seconds", "passing"), [(LONG_S * 0.4, 3), (LONG_S * 0.5, 2)])
async def test_a_crowd_goes_on_before_a_long_turn_for_a_moment_only(
    scene: Scene, seconds: float, passing: int
) -> None:
    crowd = range(10, 15)

    async def big(number: int) -> None:
        for _ in range(2):
            await READABLE
            scene.readiness.events[number] = 0
            scene.happened.append(number)
            scene.clock.advance(LONG_S * 1.01)
        await Signal[None]()

    async def small(number: int) -> None:
        while True:
            await READABLE
            scene.readiness.events[number] = 0
            scene.happened.append(number)
            scene.clock.advance(seconds)

    scene.serve(1, big(1))
    for number in crowd:
        scene.serve(number, small(number))
    await wait_all_tasks_blocked()
    await scene.told_all([1])
    scene.happened.clear()
    await scene.told_all([1, *crowd])
    assert scene.happened == [*crowd[:passing], 1, *crowd[passing:]]


async def test_a_newcomer_continues_before_one_whose_turn_was_interrupted(scene: Scene) -> None:
    async def saturating() -> None:
        for item in range(3):
            scene.happened.append(("cut", item))
            scene.clock.advance(TURN)
            scene.readiness.events[2] = IN
            await PAUSE

    await scene.served(2, scene.receiving(2))
    await scene.served(1, saturating())
    assert scene.happened == [("cut", 0), 2, ("cut", 1), 2, ("cut", 2), 2, ("ended", 1)]


async def test_a_reset_that_is_told_of_before_a_long_turn_ends_what_is_parked(scene: Scene) -> None:
    async def big(number: int) -> None:
        for events in (IN, BROKEN):
            await READABLE
            scene.readiness.events[number] = 0
            scene.clock.advance(LONG_S * 1.01)
            if number == 1:
                scene.readiness.events[3] = events
        await Signal[None]()

    async def parked() -> None:
        await READABLE
        with suppress(ClientGone):
            await Signal[None]().parked()

    for number in (1, 2):
        scene.serve(number, big(number))
    await scene.served(3, parked())
    await scene.told_all([1, 2])
    assert scene.readiness.masks[3] & ONCE
    scene.readiness.tell(1, IN)  # 1 comes first, and 2 before the next look
    scene.readiness.events[2] = IN
    await wait_all_tasks_blocked()
    assert ("ended", 3) in scene.happened


async def test_a_turn_that_is_over_lets_other_tasks_run_while_time_stands_still(
    scene: Scene,
) -> None:
    async def long() -> None:
        for number in range(6):
            scene.happened.append(number)
            await TURN_OVER

    scene.serve(1, long())
    while 5 not in scene.happened:
        await trio.lowlevel.checkpoint()
        scene.happened.append("another")
    at = scene.happened.index
    # Trio runs the two in any order each time, so one may have two turns between the other's.
    for number in (1, 2, 3):
        assert "another" in scene.happened[at(number) : at(number + 2)]
