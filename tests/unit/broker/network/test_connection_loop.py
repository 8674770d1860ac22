"""The rules of the loop over all connections, one by one."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.fairness import CLIENT
from broker.network.connection_loop import (
    DUE_PER_ROUND,
    INTERRUPTED_PER_TURN,
    LOOKS,
    LOOKS_PAY_S,
    LOOKS_S,
    ClientGone,
    ConnectionEnded,
)
from broker.network.connection_state import CONNECTION_TURN_S
from broker.world.readiness import BROKEN, IN, READABLE, WRITABLE
from storage.waits import PAUSE, Signal, call
from tests.support.loop_scene import RDHUP, TURN, Scene


async def test_whoever_can_be_received_from_goes_on_once_per_round(scene: Scene) -> None:
    left = {1: 3, 2: 1}

    async def receive(number: int) -> None:
        while True:
            await READABLE
            scene.happened.append(number)
            left[number] -= 1
            if not left[number]:
                scene.readiness.events[number] = 0

    for number in (1, 2):
        scene.serve(number, receive(number))
    await wait_all_tasks_blocked()
    scene.readiness.events[2] = IN
    await scene.told(1, IN)
    assert scene.happened == [1, 2, 1, 1]


@pytest.mark.parametrize(
    ("asleep_s", "looks"), [(LOOKS_PAY_S * 0.9, LOOKS), (LOOKS_PAY_S * 1.1, 0), (0.0, 0)]
)
async def test_the_loop_looks_again_by_itself_if_it_was_woken_soon_the_last_time(
    scene: Scene, asleep_s: float, looks: int
) -> None:
    await scene.served(1, scene.receiving(1))
    scene.readiness.looks = 0
    scene.clock.advance(asleep_s)
    await scene.told(1, IN)
    assert scene.readiness.looks == 2 + looks  # one finds it, and one nobody


async def test_the_loop_looks_again_by_itself_for_a_bounded_time(scene: Scene) -> None:
    look_s = LOOKS_S / 10
    await scene.served(1, scene.receiving(1))
    scene.readiness.looks = 0
    scene.readiness.look = lambda: scene.clock.advance(look_s)
    scene.clock.advance(LOOKS_PAY_S * 0.9)
    await scene.told(1, IN)
    assert 2 + 9 <= scene.readiness.looks <= 2 + 11


async def test_what_is_found_by_looking_again_goes_on_at_once(scene: Scene) -> None:
    def tell_later() -> None:
        scene.readiness.later = 5 if len(scene.happened) < 3 else 0

    await scene.served(1, scene.receiving(1, tell_later))
    scene.clock.advance(LOOKS_PAY_S * 0.9)
    await scene.told(1, IN)
    assert scene.happened == [1, 1, 1]


async def test_a_signal_lets_a_parked_one_go_on_in_a_turn_of_its_own_and_in_order(
    scene: Scene,
) -> None:
    signals = [Signal[int]() for _ in range(3)]

    async def parked(number: int) -> None:
        scene.happened.append((number, await signals[number].parked(), CLIENT.get().number))

    for number in range(3):
        scene.serve(number, parked(number))
    await wait_all_tasks_blocked()
    for number in (2, 0, 1):
        signals[number].fire(number * 10)
    assert scene.happened == []
    await wait_all_tasks_blocked()
    assert [entry for entry in scene.happened if entry[0] != "ended"] == [
        (2, 20, 2),
        (0, 0, 0),
        (1, 10, 1),
    ]


async def test_those_who_are_due_do_not_keep_others_from_being_received_from(scene: Scene) -> None:
    go: list[Signal[None]] = []

    async def parked(number: int) -> None:
        signal = Signal[None]()
        go.append(signal)
        await signal
        scene.happened.append("due")
        if len(scene.happened) == 1:
            scene.readiness.events[1000] = IN

    for number in range(DUE_PER_ROUND + 3):
        scene.serve(number, parked(number))
    await scene.served(1000, scene.receiving(1000))
    for signal in go:
        signal.fire()
    await wait_all_tasks_blocked()
    order = [entry for entry in scene.happened if isinstance(entry, (int, str))]
    assert order == ["due"] * DUE_PER_ROUND + [1000] + ["due"] * 3


async def test_one_work_with_a_cut_turn_continues_between_two_looks_at_the_others(
    scene: Scene,
) -> None:
    async def saturating(number: int) -> None:
        await READABLE
        scene.readiness.events[number] = 0
        for turn in range(2):
            scene.happened.append((number, turn))
            scene.clock.advance(TURN)
            if (number, turn) == (1, 1):
                scene.readiness.events[3] = IN
            await PAUSE

    for number in (1, 2):
        scene.serve(number, saturating(number))
    await scene.served(3, scene.receiving(3))
    scene.readiness.events[2] = IN
    await scene.told(1, IN)
    order = [entry for entry in scene.happened if entry == 3 or entry[0] != "ended"]
    assert order == [(1, 0), (2, 0), (1, 1), 3, (2, 1)]


async def test_at_a_pause_work_goes_on_at_once_while_its_turn_is_not_over(scene: Scene) -> None:
    async def long(number: int, seconds: float) -> None:
        for item in range(2):
            scene.happened.append((number, item))
            scene.clock.advance(seconds)
            await PAUSE

    scene.serve(1, long(1, CONNECTION_TURN_S * 0.4))
    scene.serve(2, long(2, TURN))
    await scene.served(3, long(3, 0.0))
    order = [entry for entry in scene.happened if entry[0] != "ended"]
    assert order == [(1, 0), (1, 1), (2, 0), (3, 0), (3, 1), (2, 1)]


async def test_other_tasks_have_their_turn_after_that_of_the_loop(scene: Scene) -> None:
    async def busy() -> None:
        for _ in range(3 * INTERRUPTED_PER_TURN):
            scene.happened.append("connection")
            scene.clock.advance(TURN)
            await PAUSE

    scene.serve(1, busy())
    while ("ended", 1) not in scene.happened:
        await trio.lowlevel.checkpoint()
        scene.happened.append("task")
    rows = "".join("c" if entry == "connection" else "t" for entry in scene.happened)
    longest = max(len(row) for row in rows.split("t"))
    assert longest <= 2 * INTERRUPTED_PER_TURN  # tasks of one pass run in any order


@pytest.mark.parametrize(
    "wait",
    [lambda _: READABLE, lambda _: WRITABLE, Signal.parked, lambda signal: signal.within(1000)],
    ids=["readable", "writable", "parked", "within a time"],
)
async def test_work_that_is_ended_sees_it_at_its_wait(
    scene: Scene, wait: Callable[[Signal[None]], Any]
) -> None:
    """Other waits: `test_connection_work`."""
    signal = Signal[None]()

    async def work() -> None:
        try:
            await wait(signal)
        except BaseException as error:
            scene.happened.append(type(error))
            raise

    served = await scene.served(1, work())
    served.end()
    served.end()
    await wait_all_tasks_blocked()
    assert scene.happened == [ConnectionEnded, ("ended", 1)]
    assert scene.readiness.forgotten == [1]
    signal.fire()  # nobody is there any more
    await wait_all_tasks_blocked()
    assert scene.happened[2:] == []


async def test_work_that_is_ended_while_it_takes_a_step_sees_it_at_its_next_wait(
    scene: Scene,
) -> None:
    async def work() -> None:
        try:
            await READABLE
            served.end()
            scene.happened.append("went on")
            await READABLE
        finally:
            scene.happened.append("last")

    served = await scene.served(1, work())
    await scene.told(1, IN)
    assert scene.happened == ["went on", "last", ("ended", 1)]


@pytest.mark.parametrize("ahead", [0, IN])
async def test_a_reset_ends_what_is_parked_also_behind_unread_bytes(
    scene: Scene, ahead: int
) -> None:
    async def work() -> None:
        try:
            await Signal[None]().parked()
        except ClientGone:
            scene.happened.append("gone")

    await scene.served(1, work())
    if ahead:
        await scene.told(1, ahead)
        assert scene.happened == []
        assert not scene.readiness.found(), "bytes that nobody takes are not told of for ever"
    await scene.told(1, ahead | RDHUP | BROKEN)
    assert scene.happened == ["gone", ("ended", 1)]


async def test_the_end_of_the_stream_ends_a_handshake_that_is_parked(scene: Scene) -> None:
    async def work() -> None:
        try:
            await Signal[None]().parked()
        except ClientGone:
            scene.happened.append("gone")

    (await scene.served(1, work())).is_opening = True
    await scene.told(1, IN)
    assert scene.happened == []
    await scene.told(1, IN | RDHUP)
    assert scene.happened == ["gone", ("ended", 1)]


@pytest.mark.parametrize("ahead", [0, IN])
async def test_the_end_of_the_stream_ends_nothing_that_is_parked(scene: Scene, ahead: int) -> None:
    answer = Signal[None]()

    async def work() -> None:
        await answer.parked()
        scene.happened.append("answered")
        await READABLE
        scene.happened.append("read on")

    served = await scene.served(1, work())
    assert not served.has_sent_all
    await scene.told(1, ahead | RDHUP)
    assert served.has_sent_all
    assert scene.happened == []
    assert not scene.readiness.found(), "an end that nobody reads is not told of for ever"
    answer.fire()
    await wait_all_tasks_blocked()
    assert scene.happened == ["answered"]
    await scene.told(1, ahead | RDHUP)
    assert scene.happened == ["answered", "read on", ("ended", 1)]


async def test_a_reset_before_the_work_is_parked_ends_it_then(scene: Scene) -> None:
    change = Signal[None]()

    async def work() -> None:
        await change  # finished whatever becomes of the client
        scene.happened.append("changed")
        try:
            await Signal[None]().parked()
        except ClientGone:
            scene.happened.append("gone")

    await scene.served(1, work())
    await scene.told(1, RDHUP | BROKEN)
    assert scene.happened == []
    change.fire()
    await wait_all_tasks_blocked()
    assert scene.happened == ["changed", "gone", ("ended", 1)]


async def test_a_connection_that_waits_for_its_stream_again_hears_of_its_bytes_again(
    scene: Scene,
) -> None:
    go = Signal[None]()

    async def work() -> None:
        await go
        await scene.receiving(1)

    await scene.served(1, work())
    await scene.told(1, IN)
    go.fire()
    await scene.told(1, IN)
    assert scene.happened == [1]


async def test_a_call_is_served_in_a_task_and_its_answer_or_error_comes_back(scene: Scene) -> None:
    def fail() -> None:
        raise ValueError("no")

    async def work() -> None:
        scene.happened.append(await call(int, "7"))
        with pytest.raises(ValueError, match="no"):
            await call(fail)
        scene.happened.append("went on")

    await scene.served(1, work())
    assert scene.happened == [7, "went on", ("ended", 1)]


async def test_a_stream_that_takes_the_number_of_another_does_not_hear_of_its_events(
    scene: Scene,
) -> None:
    async def first() -> None:
        await READABLE
        second.end()

    async def other() -> None:
        await READABLE

    async def late() -> None:
        await Signal[None]().parked()

    scene.serve(1, first())
    second = await scene.served(2, other())
    scene.readiness.events[2] = IN | RDHUP
    await scene.told(1, IN)
    await scene.served(2, late())
    assert ("ended", 2) in scene.happened
    assert scene.happened.count(("ended", 2)) == 1


@pytest.mark.usefixtures("loop")
async def test_when_the_loop_is_cancelled_everybody_is_ended() -> None:
    scene = Scene()

    async def stubborn() -> None:
        try:
            await READABLE
        finally:
            scene.happened.append("cleaned up")

    async def elsewhere() -> None:
        await Signal[None]().within(1000)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.loop.run)
        await wait_all_tasks_blocked()
        scene.serve(1, stubborn())
        await scene.served(2, elsewhere())
        nursery.cancel_scope.cancel()
    assert scene.happened == ["cleaned up", ("ended", 1), ("ended", 2)]
    scene.serve(3, scene.receiving(3))  # accepted in the same moment
    assert scene.happened[-1] == ("ended", 3)
    assert not any(stream.is_open for stream in scene.streams)


async def test_a_long_step_is_noted_by_the_name_of_its_connection(scene: Scene) -> None:
    async def work() -> None:
        await READABLE
        scene.clock.advance(0.2)
        await Signal[None]()

    await scene.served(1, work())
    await scene.told(1, IN)
    assert scene.watch._noted == "connection 1"
