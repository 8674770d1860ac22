"""The one form of work that may wait, and who is alone with it.

A function that may wait is `async def`, awaits one of the objects below, and returns its result. A
function that cannot wait is plain.

    async def flush(self):
        step = self._begin()                # on the loop: takes values (paths, bytes, numbers)
        await call(step.sync)               # in a thread, on those values only
        self._settle(step)                  # on the loop again: the log may have changed meanwhile

    async def delete(names):
        for name in names:
            ...                             # between two awaits nothing else runs: critical section
            await PAUSE                     # others may run here

The set is closed, and none of it knows an event loop:

* `PAUSE`: others may run here. Whether they do, the driver decides by the clock, so loops carry no
  counts. It costs a third of a microsecond: await it once per item that takes a microsecond.
* `call(work, *values)`: a function in a thread, for what waits for the kernel or computes in C.
  It is never cancelled once asked for: what stands after it always runs.
* `compute(work, *values)`: a function of a module in a child process, for loops in Python. Values
  and result must pickle. May end in `WorkerDied`.
* `Signal`: something that happens once, in another part of the process.
* `together(*works)`: several pieces of work side by side.

What runs the work is called a driver. The broker's (`broker.world.driver`) runs many side by side
on its loop; `at_once` runs one to its end, for tools, tests, and a start that serves nobody yet.
Work that is ended early (its client has gone, the broker stops) sees an exception at a wait that is
no `call`, so cleaning up is a `finally`, which must not wait.
"""

from collections import OrderedDict
from collections.abc import Callable, Coroutine, Generator
from enum import Enum
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, final

T = TypeVar("T")


class Wait:
    """What work may await; drivers know every kind."""

    __slots__ = ()

    def __await__(self) -> Generator["Wait", Any, Any]:
        """Yield this to the driver, and return what the driver answers."""
        return (yield self)


Work: TypeAlias = Coroutine[Wait, Any, T]
"""Work that may wait: what calling an `async def` function gives."""


@final
class Pause(Wait):
    """Others may run here. There is one, `PAUSE`."""

    __slots__ = ()


PAUSE: Final = Pause()


class Place(Enum):
    """Where a call runs."""

    THREAD = "a thread"
    CHILD = "a child process that all share"


class OwnChild(Protocol):
    """A child process for one user alone; `broker.world.workers.Hand`."""

    async def call(self, work: Callable[..., Any], *values: Any) -> Any:
        """Run `work(state, *values)` there."""
        ...


@final
class Call(Wait, Generic[T]):
    """A function on values of its own, off the loop; its result, or its error, comes back."""

    __slots__ = ("place", "values", "work")

    def __init__(
        self, place: Place | OwnChild, work: Callable[..., T], values: tuple[Any, ...]
    ) -> None:
        self.place = place
        self.work = work
        self.values = values

    def __await__(self) -> Generator[Wait, Any, T]:
        """Return the result of `work`, or raise its exception."""
        result: T = yield self
        return result


def call(work: Callable[..., T], *values: Any) -> Call[T]:
    """Run `work(*values)` in a thread: `result = await call(work, *values)`."""
    return Call(Place.THREAD, work, values)


def compute(work: Callable[..., T], *values: Any) -> Call[T]:
    """Run `work(*values)` in a child process; the work changes nothing, so it may be done twice."""
    return Call(Place.CHILD, work, values)


class Signal(Generic[T]):
    """Something that happens once. One piece of work may wait for it.

    `await signal` returns the value that it was fired with, at once if that was before.
    """

    __slots__ = ("_value", "fired", "wake")

    def __init__(self) -> None:
        self.fired = False
        self._value: Any = None
        self.wake: Callable[[], object] | None = None
        """Set by the driver while work waits; called on the loop when the signal fires."""

    def fire(self, value: Any = None) -> bool:
        """Let the work that waits go on, with `value`; only the first call counts.

        Returns whether this was the first. The work does not run within this call.
        """
        if self.fired:
            return False
        self.fired = True
        self._value = value
        if self.wake is not None:
            self.wake()
        return True

    @property
    def value(self) -> T:
        """What it was fired with; None before."""
        value: T = self._value
        return value

    def __await__(self) -> Generator[Wait, Any, T]:
        """Wait until it is fired."""
        return Until(self).__await__()

    def parked(self) -> "Until[T]":
        """Wait for it on behalf of a client, and no longer than the client does.

        A request that waits so holds no worker, and no memory that its handler has released. If
        the client goes away, the work ends here.
        """
        return Until(self, parked=True)

    async def within(self, seconds: float) -> bool:
        """Wait for it, but no longer than `seconds`; return whether it was fired."""
        await Until(self, seconds)
        return self.fired


@final
class Until(Wait, Generic[T]):
    """Waits for a signal, and returns its value."""

    __slots__ = ("parked", "seconds", "signal")

    def __init__(
        self, signal: Signal[T], seconds: float | None = None, *, parked: bool = False
    ) -> None:
        self.signal = signal
        self.seconds = seconds
        """The longest wait; None: for ever."""
        self.parked = parked
        """Whether it waits on behalf of a client (`Signal.parked`)."""

    def __await__(self) -> Generator[Wait, Any, T]:
        """Return the signal's value, at once if it was fired before."""
        if not self.signal.fired:
            yield self
        return self.signal.value


async def sleep(seconds: float) -> None:
    """Wait for `seconds`."""
    await Until(Signal[None](), seconds)


@final
class Together(Wait):
    """Several pieces of work, run side by side to their ends."""

    __slots__ = ("works",)

    def __init__(self, works: tuple[Work[Any], ...]) -> None:
        self.works = works


async def together(*works: Work[Any]) -> None:
    """Run all works side by side, to their ends even if one fails; then raise the first failure."""
    await Together(works)


class Waiters:
    """Work that waits to be called, one after the other in the order in which it came."""

    __slots__ = ("_signals",)

    def __init__(self) -> None:
        self._signals: OrderedDict[Signal[None], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._signals)

    async def wait(self, missed: Callable[[], object], *, parked: bool = False) -> None:
        """Wait to be called; `missed` is called if the work ends although it was.

        `parked`: on behalf of a client (`Signal.parked`).
        """
        called: Signal[None] = Signal()
        self._signals[called] = None
        try:
            await Until(called, parked=parked)
        except BaseException:  # ended while it waited
            if called.fired:
                missed()
            else:
                del self._signals[called]
            raise

    def call_next(self) -> bool:
        """Let who has waited longest go on; return whether somebody waited."""
        if not self._signals:
            return False
        self._signals.popitem(last=False)[0].fire()
        return True


class Lock:
    """Held by at most `places` pieces of work at once; the others wait in the order they came.

    async with lock:
        ...
    """

    __slots__ = ("_free", "_waiting")

    def __init__(self, places: int = 1) -> None:
        self._free = places
        self._waiting = Waiters()

    async def __aenter__(self) -> None:
        """Wait for a place."""
        await self.acquire()

    async def __aexit__(self, *_: object) -> None:
        """Give the place back. Does not wait."""
        self.release()

    async def acquire(self) -> None:
        """Wait for a place, which is kept until `release`."""
        if self._free > 0:
            self._free -= 1
        else:
            await self._waiting.wait(self.release)  # who releases hands the place over

    def release(self) -> None:
        """Give a place back."""
        if not self._waiting.call_next():
            self._free += 1


def at_once(work: Work[T]) -> T:
    """Run `work` to its end here and now, with all that it asks for. Raises what it raises.

    Raises RuntimeError if it waits for somebody else, as there is nobody.
    """
    answer: Any = None
    error: Exception | None = None
    while True:
        try:
            wait = work.send(answer) if error is None else work.throw(error)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = error = None
        if wait is PAUSE:
            continue
        try:
            answer = _serve(wait)
        except Exception as failure:  # noqa: BLE001 - whatever it is, it is for `work`
            error = failure


def _serve(wait: Wait) -> Any:
    if isinstance(wait, Call):
        if isinstance(wait.place, Place):
            return wait.work(*wait.values)
        raise RuntimeError("a child process of one's own needs the broker's driver")
    if isinstance(wait, Together):
        failures = []
        for work in wait.works:
            try:
                at_once(work)
            except Exception as failure:  # noqa: BLE001 - raised below, when the others are done
                failures.append(failure)
        if failures:
            raise failures[0]
        return None
    if isinstance(wait, Until) and (wait.signal.fired or wait.seconds is not None):
        return None
    raise RuntimeError(f"waits for somebody else, and there is nobody: {type(wait).__name__}")
