"""The rules of the loop over all connections, one by one."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.fairness import CLIENT
from broker.network.connection_loop import (
    CUTS_PER_TURN,
    DUE_PER_ROUND,
    LOOKS,
    LOOKS_PAY_S,
    LOOKS_S,
    ClientGone,
    ConnectionEnded,
)
from broker.network.connection_state import CONNECTION_TURN_S
from broker.world.readiness import BROKEN, IN, READABLE, WRITABLE
from storage.waits import PAUSE, Signal, call
from tests.support.loop_scene import RDHUP, TURN, Scene, play


def test_whoever_can_be_received_from_goes_on_once_per_round() -> None:
    async def scenario(scene: Scene) -> None:
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
        scene.readiness.tell(1, IN)
        await wait_all_tasks_blocked()
        assert scene.happened == [1, 2, 1, 1]

    play(scenario)


@pytest.mark.parametrize(
    ("asleep_s", "looks"), [(LOOKS_PAY_S * 0.9, LOOKS), (LOOKS_PAY_S * 1.1, 0), (0.0, 0)]
)
def test_the_loop_looks_again_by_itself_if_it_was_woken_soon_the_last_time(
    asleep_s: float, looks: int
) -> None:
    async def scenario(scene: Scene) -> None:
        scene.serve(1, scene.receiving(1))
        await wait_all_tasks_blocked()
        scene.readiness.looks = 0
        scene.clock.advance(asleep_s)
        scene.readiness.tell(1, IN)
        await wait_all_tasks_blocked()
        assert scene.readiness.looks == 2 + looks  # one finds it, and one nobody

    play(scenario)


def test_the_loop_looks_again_by_itself_for_a_bounded_time() -> None:
    look_s = LOOKS_S / 10

    async def scenario(scene: Scene) -> None:
        scene.serve(1, scene.receiving(1))
        await wait_all_tasks_blocked()
        scene.readiness.looks = 0
        scene.readiness.look = lambda: scene.clock.advance(look_s)
        scene.clock.advance(LOOKS_PAY_S * 0.9)
        scene.readiness.tell(1, IN)
        await wait_all_tasks_blocked()
        assert 2 + 9 <= scene.readiness.looks <= 2 + 11

    play(scenario)


def test_what_is_found_by_looking_again_goes_on_at_once() -> None:
    async def scenario(scene: Scene) -> None:
        def tell_later() -> None:
            scene.readiness.later = 5 if len(scene.happened) < 3 else 0

        scene.serve(1, scene.receiving(1, tell_later))
        await wait_all_tasks_blocked()
        scene.clock.advance(LOOKS_PAY_S * 0.9)
        scene.readiness.tell(1, IN)
        await wait_all_tasks_blocked()
        assert scene.happened == [1, 1, 1]

    play(scenario)


def test_a_signal_lets_a_parked_one_go_on_in_a_turn_of_its_own_and_in_order() -> None:
    async def scenario(scene: Scene) -> None:
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

    play(scenario)


def test_those_who_are_due_do_not_keep_others_from_being_received_from() -> None:
    async def scenario(scene: Scene) -> None:
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
        scene.serve(1000, scene.receiving(1000))
        await wait_all_tasks_blocked()
        for signal in go:
            signal.fire()
        await wait_all_tasks_blocked()
        order = [entry for entry in scene.happened if isinstance(entry, (int, str))]
        assert order == ["due"] * DUE_PER_ROUND + [1000] + ["due"] * 3

    play(scenario)


def test_of_those_whose_turn_was_cut_one_goes_on_between_two_looks_at_the_others() -> None:
    async def scenario(scene: Scene) -> None:
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
        scene.serve(3, scene.receiving(3))
        await wait_all_tasks_blocked()
        scene.readiness.events[2] = IN
        scene.readiness.tell(1, IN)
        await wait_all_tasks_blocked()
        order = [entry for entry in scene.happened if entry == 3 or entry[0] != "ended"]
        assert order == [(1, 0), (2, 0), (1, 1), 3, (2, 1)]

    play(scenario)


def test_at_a_pause_work_goes_on_at_once_while_its_turn_is_not_over() -> None:
    async def scenario(scene: Scene) -> None:
        async def long(number: int, seconds: float) -> None:
            for item in range(2):
                scene.happened.append((number, item))
                scene.clock.advance(seconds)
                await PAUSE

        scene.serve(1, long(1, CONNECTION_TURN_S * 0.4))
        scene.serve(2, long(2, TURN))
        scene.serve(3, long(3, 0.0))
        await wait_all_tasks_blocked()
        order = [entry for entry in scene.happened if entry[0] != "ended"]
        assert order == [(1, 0), (1, 1), (2, 0), (3, 0), (3, 1), (2, 1)]

    play(scenario)


def test_other_tasks_have_their_turn_after_that_of_the_loop() -> None:
    async def scenario(scene: Scene) -> None:
        async def busy() -> None:
            for _ in range(3 * CUTS_PER_TURN):
                scene.happened.append("connection")
                scene.clock.advance(TURN)
                await PAUSE

        scene.serve(1, busy())
        while ("ended", 1) not in scene.happened:
            await trio.lowlevel.checkpoint()
            scene.happened.append("task")
        rows = "".join("c" if entry == "connection" else "t" for entry in scene.happened)
        longest = max(len(row) for row in rows.split("t"))
        assert longest <= 2 * CUTS_PER_TURN  # tasks of one pass run in any order

    play(scenario)


@pytest.mark.parametrize("wait", ["readable", "writable", "signal", "parked", "pause", "call"])
def test_work_that_is_ended_sees_it_at_its_wait(wait: str) -> None:
    async def scenario(scene: Scene) -> None:
        signal = Signal[None]()
        started = trio.Event()

        async def work() -> None:
            started.set()
            try:
                if wait == "readable":
                    await READABLE
                elif wait == "writable":
                    await WRITABLE
                elif wait == "signal":
                    await signal
                elif wait == "parked":
                    await signal.parked()
                elif wait == "call":
                    await signal.within(1000)
                else:
                    while True:
                        scene.clock.advance(TURN)
                        await PAUSE
            except BaseException as error:
                scene.happened.append(type(error))
                raise

        served = scene.serve(1, work())
        await started.wait()
        if wait != "pause":
            await wait_all_tasks_blocked()
        served.end()
        served.end()
        await wait_all_tasks_blocked()
        assert scene.happened == [ConnectionEnded, ("ended", 1)]
        assert scene.readiness.forgotten == [1]
        signal.fire()  # nobody is there any more
        await wait_all_tasks_blocked()
        assert scene.happened[2:] == []

    play(scenario)


def test_work_that_is_ended_while_it_takes_a_step_sees_it_at_its_next_wait() -> None:
    async def scenario(scene: Scene) -> None:
        async def work() -> None:
            try:
                await READABLE
                served.end()
                scene.happened.append("went on")
                await READABLE
            finally:
                scene.happened.append("last")

        served = scene.serve(1, work())
        await wait_all_tasks_blocked()
        scene.readiness.tell(1, IN)
        await wait_all_tasks_blocked()
        assert scene.happened == ["went on", "last", ("ended", 1)]

    play(scenario)


@pytest.mark.parametrize("ahead", [0, IN])
def test_a_reset_ends_what_is_parked_also_behind_unread_bytes(ahead: int) -> None:
    async def scenario(scene: Scene) -> None:
        async def work() -> None:
            try:
                await Signal[None]().parked()
            except ClientGone:
                scene.happened.append("gone")

        scene.serve(1, work())
        await wait_all_tasks_blocked()
        if ahead:
            scene.readiness.tell(1, ahead)
            await wait_all_tasks_blocked()
            assert scene.happened == []
            assert not scene.readiness.found(), "bytes that nobody takes are not told of for ever"
        scene.readiness.tell(1, ahead | RDHUP | BROKEN)
        await wait_all_tasks_blocked()
        assert scene.happened == ["gone", ("ended", 1)]

    play(scenario)


def test_the_end_of_the_stream_ends_a_handshake_that_is_parked() -> None:
    async def scenario(scene: Scene) -> None:
        async def work() -> None:
            try:
                await Signal[None]().parked()
            except ClientGone:
                scene.happened.append("gone")

        scene.serve(1, work()).is_opening = True
        await wait_all_tasks_blocked()
        scene.readiness.tell(1, IN)
        await wait_all_tasks_blocked()
        assert scene.happened == []
        scene.readiness.tell(1, IN | RDHUP)
        await wait_all_tasks_blocked()
        assert scene.happened == ["gone", ("ended", 1)]

    play(scenario)


@pytest.mark.parametrize("ahead", [0, IN])
def test_the_end_of_the_stream_ends_nothing_that_is_parked(ahead: int) -> None:
    async def scenario(scene: Scene) -> None:
        answer = Signal[None]()

        async def work() -> None:
            await answer.parked()
            scene.happened.append("answered")
            await READABLE
            scene.happened.append("read on")

        served = scene.serve(1, work())
        await wait_all_tasks_blocked()
        assert not served.has_sent_all
        scene.readiness.tell(1, ahead | RDHUP)
        await wait_all_tasks_blocked()
        assert served.has_sent_all
        assert scene.happened == []
        assert not scene.readiness.found(), "an end that nobody reads is not told of for ever"
        answer.fire()
        await wait_all_tasks_blocked()
        assert scene.happened == ["answered"]
        scene.readiness.tell(1, ahead | RDHUP)
        await wait_all_tasks_blocked()
        assert scene.happened == ["answered", "read on", ("ended", 1)]

    play(scenario)


def test_a_reset_before_the_work_is_parked_ends_it_then() -> None:
    async def scenario(scene: Scene) -> None:
        change = Signal[None]()

        async def work() -> None:
            await change  # finished whatever becomes of the client
            scene.happened.append("changed")
            try:
                await Signal[None]().parked()
            except ClientGone:
                scene.happened.append("gone")

        scene.serve(1, work())
        await wait_all_tasks_blocked()
        scene.readiness.tell(1, RDHUP | BROKEN)
        await wait_all_tasks_blocked()
        assert scene.happened == []
        change.fire()
        await wait_all_tasks_blocked()
        assert scene.happened == ["changed", "gone", ("ended", 1)]

    play(scenario)


def test_who_waits_for_its_stream_again_is_told_of_its_bytes_again() -> None:
    async def scenario(scene: Scene) -> None:
        go = Signal[None]()

        async def work() -> None:
            await go
            await scene.receiving(1)

        scene.serve(1, work())
        await wait_all_tasks_blocked()
        scene.readiness.tell(1, IN)
        await wait_all_tasks_blocked()
        go.fire()
        scene.readiness.tell(1, IN)
        await wait_all_tasks_blocked()
        assert scene.happened == [1]

    play(scenario)


def test_a_call_is_served_in_a_task_and_its_answer_or_error_comes_back() -> None:
    def fail() -> None:
        raise ValueError("no")

    async def scenario(scene: Scene) -> None:
        async def work() -> None:
            scene.happened.append(await call(int, "7"))
            with pytest.raises(ValueError, match="no"):
                await call(fail)
            scene.happened.append("went on")

        scene.serve(1, work())
        await wait_all_tasks_blocked()
        assert scene.happened == [7, "went on", ("ended", 1)]

    play(scenario)


def test_a_stream_that_takes_the_number_of_another_does_not_hear_of_its_events() -> None:
    async def scenario(scene: Scene) -> None:
        async def first() -> None:
            await READABLE
            second.end()

        async def other() -> None:
            await READABLE

        async def late() -> None:
            await Signal[None]().parked()

        scene.serve(1, first())
        second = scene.serve(2, other())
        await wait_all_tasks_blocked()
        scene.readiness.events[2] = IN | RDHUP
        scene.readiness.tell(1, IN)
        await wait_all_tasks_blocked()
        scene.serve(2, late())
        await wait_all_tasks_blocked()
        assert ("ended", 2) in scene.happened
        assert scene.happened.count(("ended", 2)) == 1

    play(scenario)


def test_when_the_loop_is_cancelled_everybody_is_ended() -> None:
    async def scenario(scene: Scene) -> None:
        async def stubborn() -> None:
            try:
                await READABLE
            finally:
                scene.happened.append("cleaned up")

        async def elsewhere() -> None:
            await Signal[None]().within(1000)

        scene.serve(1, stubborn())
        scene.serve(2, elsewhere())
        await wait_all_tasks_blocked()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            scene = Scene()
            nursery.start_soon(scene.loop.run)
            await wait_all_tasks_blocked()
            await scenario(scene)
            nursery.cancel_scope.cancel()
        assert scene.happened == ["cleaned up", ("ended", 1), ("ended", 2)]
        scene.serve(3, scene.receiving(3))  # accepted in the same moment
        assert scene.happened[-1] == ("ended", 3)
        assert not any(stream.is_open for stream in scene.streams)

    trio.run(main)


def test_a_long_step_is_noted_by_the_name_of_its_connection() -> None:
    async def scenario(scene: Scene) -> None:
        async def work() -> None:
            await READABLE
            scene.clock.advance(0.2)
            await Signal[None]()

        scene.serve(1, work())
        await wait_all_tasks_blocked()
        scene.readiness.tell(1, IN)
        await wait_all_tasks_blocked()
        assert scene.watch._noted == "connection 1"

    play(scenario)
