"""Runs work that may wait (`storage.waits`) on trio's loop.

The driver has these rules, so that no caller of `Driver.run` repeats them:

* The length of a turn (`broker.world.turns`). Work whose turn is over queues behind other long
  work, so one piece of long work runs per pass of the loop, however many there are.
* The place of a call: a thread or a child process of `Workers`.
* The points of cancellation: a `PAUSE` that ends a turn or is the first after a call, a `Signal`,
  and a call in a child process. A call in a thread is always completed.
* The watch on long turns: the driver notes each step that holds the loop for long, by name.

A trio function calls such work by `Driver.run`, which runs it to its end in the caller's task.

A connection, which is work itself, runs the work of its request without a `Driver`: it takes the
first turn at once (`take_turn`), and awaits the `rest`. So the connection waits for whatever the
request's work waits for.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import trio

from broker.world.clock import TaskClock
from broker.world.loop_watch import NOTED_S, LoopWatch
from broker.world.turns import PAUSES, TURN_OVER, TURN_S, wait_for_turn
from broker.world.workers import Workers
from storage.waits import PAUSE, Call, Pause, Place, Together, Until, Wait, Work

T = TypeVar("T")


def take_turn(work: Work[Any], answer: Any, began: float, monotonic: Callable[[], float]) -> Wait:
    """Resume `work` with the `answer` to its wait; return its next wait.

    Returns TURN_OVER if the work pauses after its turn, which began at `began`, is over. Raises
    StopIteration, with the result, when the work is done, or the error of the work.
    """
    wait = work.send(answer)
    pauses = 0
    while wait is PAUSE:
        if pauses == PAUSES or monotonic() - began >= TURN_S:
            return TURN_OVER
        pauses += 1
        wait = work.send(None)
    return wait


class WaitObserver(Protocol):
    """Notices when work begins to wait and when it resumes."""

    def waits(self, wait: Wait) -> None:
        """The work begins to wait for `wait`."""
        ...

    def goes_on(self) -> float:
        """The wait is over, or the work is ended. Returns the time, in monotonic seconds."""
        ...


async def rest(
    work: Work[T], wait: Wait | None, observer: WaitObserver, monotonic: Callable[[], float]
) -> T:
    """Run `work`, which waits for `wait`, to its end; return its result, or raise its error.

    `wait` is None if the work has not begun. The loop that runs the caller serves each wait.
    """
    answer: Any = None
    error: BaseException | None = None
    began = 0.0 if wait is not None else monotonic()
    while True:
        if wait is not None:
            observer.waits(wait)
            try:
                answer = await wait
            except BaseException as failure:  # noqa: BLE001 - whatever it is, it is for `work`
                error = failure
            began = observer.goes_on()
        try:
            if error is not None:
                wait = work.throw(error)
            elif isinstance(wait, Call):  # a PAUSE after a call is awaited, and can end the work
                wait = work.send(answer)
            else:
                wait = take_turn(work, answer, began, monotonic)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            answer = error = None  # the error refers to this frame


class Driver:
    """Runs the work of one broker. Event loop only."""

    __slots__ = ("_clock", "_workers", "watch")

    def __init__(self, workers: Workers, clock: TaskClock, watch: LoopWatch | None = None) -> None:
        """`watch` is notified of steps that hold the loop for long."""
        self._workers = workers
        self._clock = clock
        self.watch = watch or LoopWatch(clock)

    async def run(
        self,
        work: Work[T],
        what: Callable[[], str] | None = None,
        limiter: trio.CapacityLimiter | None = None,
    ) -> T:
        """Run `work` to its end; return its result or raise its error.

        `what` names it for the log, by default its function. `limiter` bounds its calls in threads.
        """
        what = what or partial(_name, work)
        monotonic = self._clock.monotonic
        answer: Any = None
        error: BaseException | None = None
        wait: Wait | None = None
        pauses = 0
        began = monotonic()
        called = False
        while True:
            if wait.__class__ is Pause and pauses < PAUSES and monotonic() - began < TURN_S:
                pauses += 1
                if called:  # each call begins a turn, so a PAUSE between calls might never end one
                    called = False
                    try:
                        await trio.lowlevel.checkpoint_if_cancelled()
                    except trio.Cancelled as cancelled:
                        error = cancelled
            elif wait is not None:
                self._note(began, what)
                try:
                    answer = await self.serve(wait, limiter)
                except BaseException as failure:  # noqa: BLE001 - whatever it is, it is for `work`
                    error = failure
                began = monotonic()
                pauses = 0
                called = isinstance(wait, Call)
            try:
                wait = work.send(answer) if error is None else work.throw(error)
            except StopIteration as end:
                self._note(began, what)
                result: T = end.value
                return result
            finally:
                answer = error = None  # the error refers to this frame

    def _note(self, began: float, what: Callable[[], str]) -> None:
        ended = self._clock.monotonic()
        if ended - began >= NOTED_S:
            self.watch.note(began, ended, what)

    async def serve(self, wait: Wait, limiter: trio.CapacityLimiter | None = None) -> Any:
        """Serve a wait of work; return the answer for the work, or raise the error."""
        if isinstance(wait, Pause):
            await wait_for_turn()
        elif isinstance(wait, Call):
            return await self._call(wait, limiter)
        elif isinstance(wait, Until):
            await self._until(wait)
        elif isinstance(wait, Together):
            await self._together(wait.works, limiter)
        else:
            raise TypeError(f"work awaits something else than storage.waits: {wait!r}")
        return None

    async def _call(self, wait: "Call[Any]", limiter: trio.CapacityLimiter | None) -> Any:
        if wait.place is Place.THREAD:
            with trio.CancelScope(shield=True):
                return await self._workers.in_thread(wait.work, *wait.values, limiter=limiter)
        if wait.place is Place.CHILD:
            return await self._workers.in_process(wait.work, *wait.values)
        assert not isinstance(wait.place, Place)
        return await wait.place.call(wait.work, *wait.values)

    async def _until(self, wait: Until[Any]) -> None:
        signal = wait.signal
        if signal.fired:
            return
        event = trio.Event()
        signal.wake = event.set
        try:
            if wait.seconds is None:
                await event.wait()
            else:
                with self._clock.timeout(wait.seconds):
                    await event.wait()
        finally:
            signal.wake = None

    async def _together(
        self, works: tuple[Work[Any], ...], limiter: trio.CapacityLimiter | None
    ) -> None:
        failures: list[Exception] = []

        async def one(work: Work[Any]) -> None:
            try:
                await self.run(work, limiter=limiter)
            except Exception as failure:  # noqa: BLE001 - raised below, when the others are done
                failures.append(failure)

        async with trio.open_nursery() as nursery:
            for work in works:
                nursery.start_soon(one, work)
        if failures:
            raise failures[0]


def _name(work: Work[Any]) -> str:
    name: str = getattr(work, "__qualname__", "work")
    return name
