"""The replies of those who are ready together leave together."""

import pytest
from trio.testing import wait_all_tasks_blocked

from broker.network.connection_loop import GROUP, GROUP_S, WITH_OTHERS
from broker.world.readiness import READABLE
from storage.waits import Signal
from tests.support.loop_scene import Scene, answering


async def test_replies_of_those_who_are_ready_together_leave_together(scene: Scene) -> None:
    for number in range(3):
        scene.serve(number, answering(scene, number))
    await wait_all_tasks_blocked()
    await scene.told_all(range(3))
    steps = [
        *[("handled", 0), ("handled", 1), ("handled", 2), ("sent", 2)],  # nobody is behind 2
        *[("sent", 0), ("sent", 1)],
    ]
    assert scene.happened == steps
    await scene.told_all([1])
    assert scene.happened[6:] == [("handled", 1), ("sent", 1)]


@pytest.mark.parametrize(("seconds", "together"), [(GROUP_S * 0.4, 3), (GROUP_S * 1.01, 1)])
async def test_replies_of_those_who_are_due_leave_together(
    scene: Scene, seconds: float, together: int
) -> None:
    async def parked(number: int) -> None:
        await signals[number].parked()
        scene.happened.append("handled")
        scene.clock.advance(seconds)
        if scene.loop.gathers:
            await WITH_OTHERS
        scene.happened.append("sent")
        await Signal[None]()

    signals = [Signal[None]() for _ in range(6)]
    for number in range(6):
        scene.serve(number, parked(number))
    await wait_all_tasks_blocked()
    for signal in signals:
        signal.fire()
    await wait_all_tasks_blocked()
    assert scene.happened == (["handled"] * together + ["sent"] * together) * (6 // together)


async def test_no_more_than_a_group_leaves_together(scene: Scene) -> None:
    for number in range(GROUP + 2):
        scene.serve(number, answering(scene, number))
    await wait_all_tasks_blocked()
    await scene.told_all(range(GROUP + 2))
    assert [step for step, _ in scene.happened] == [
        *["handled"] * GROUP,
        *["sent"] * GROUP,
        *["handled", "handled", "sent", "sent"],
    ]


@pytest.mark.parametrize(("seconds", "together"), [(GROUP_S * 0.4, 3), (GROUP_S * 1.01, 1)])
async def test_a_reply_waits_for_others_for_a_moment_only(
    scene: Scene, seconds: float, together: int
) -> None:
    for number in range(6):
        scene.serve(number, answering(scene, number, seconds))
    await wait_all_tasks_blocked()
    await scene.told_all(range(6))
    steps = [step for step, _ in scene.happened]
    assert steps == (["handled"] * together + ["sent"] * together) * (6 // together)


async def test_work_whose_reply_is_to_leave_with_others_can_be_ended(scene: Scene) -> None:
    async def ending() -> None:
        await READABLE
        scene.readiness.events[1] = 0
        first.end()

    first = scene.serve(0, answering(scene, 0))
    await scene.served(1, ending())
    await scene.told_all(range(2))
    assert scene.happened == [("handled", 0), ("ended", 1), ("ended", 0)]
