"""The one form of work that may wait, and the locks and lines in which it waits.

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

None of these needs an event loop. `broker` adds kinds that do: `Ready`, `TurnOver`, `WithOthers`.

* `PAUSE`: others may run here. Whether they do, the driver decides by the clock, so most loops
  carry no counts. It costs a third of a microsecond: a loop whose items take less than a
  microsecond awaits it once for several items.
* `call(work, *values)`: a function in a thread, because it waits for the kernel or computes in C.
  Work is never ended while it waits for one: the next line runs, unless the call raises.
* `compute(work, *values)`: a function of a module in a child process, for loops in Python. Values
  and result must pickle. May end in `WorkerDied`.
* `Signal`: an event that happens once, in another part of the process.
* `together(*works)`: several pieces of work side by side.

Four drivers run work. `broker.world.driver.Driver` runs a work in a task of trio's,
`broker.network.connection_loop` those of connections, and `broker.world.in_turn` work that goes on
within `Signal.fire`. `at_once`, here, runs a work to its end; it makes the calls itself, so it is
for tools, tests, a start that serves nobody yet, and work that is known to be short. Work that is
ended early (its client has gone, the broker stops) gets an exception at a wait that is no `call`,
so it cleans up in a `finally`, which must not wait.
"""

from collections import OrderedDict
from collections.abc import Callable, Coroutine, Generator, Iterator
from enum import Enum
from itertools import chain
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, final

T = TypeVar("T")
Who = TypeVar("Who")


class Wait:
    """Anything that work may await. A driver raises TypeError for a kind that it does not serve."""

    __slots__ = ()

    def __await__(self) -> Generator["Wait", Any, Any]:
        """Yield this to the driver, and return what the driver answers."""
        return (yield self)


Work: TypeAlias = Coroutine[Wait, Any, T]
"""Work that may wait: a call of an `async def` function returns it."""


@final
class Pause(Wait):
    """Others may run here. There is one, `PAUSE`."""

    __slots__ = ()


PAUSE: Final = Pause()


class Place(Enum):
    """The place where a call runs."""

    THREAD = "a thread"
    CHILD = "a child process that all share"


class OwnChild(Protocol):
    """A child process for one user alone; `broker.world.workers.DedicatedWorker`."""

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
    """An event that happens once. One piece of work may wait for it.

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

        Returns whether this call was the first. The work runs in a later turn; only work of
        `broker.world.in_turn` runs within this call.
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
        """The value that it was fired with; None before."""
        value: T = self._value
        return value

    def __await__(self) -> Generator[Wait, Any, T]:
        """Wait until it is fired."""
        if not self.fired:
            yield Until(self)
        return self.value

    def parked(self) -> "Until[T]":
        """Wait for it on behalf of a client, and end the work if the client resets its connection.

        The bytes of the request are free meanwhile if its handler has set `ctx.released`.
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


def fired(value: T) -> Signal[T]:
    """Return a signal that was fired with `value`: nobody waits for it."""
    signal: Signal[T] = Signal()
    signal.fire(value)
    return signal


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


@final
class Waiter(Signal[None], Generic[Who]):
    """The signal that admits one work of `Waiters`. Lines that choose know the work by `who`."""

    __slots__ = ("who",)

    def __init__(self, who: Who) -> None:
        super().__init__()
        self.who: Final = who


class Waiters(Generic[Who]):
    """A line of work that waits to be admitted, in the order in which it came.

    A subclass puts the work into groups, and chooses the group that is next (`broker.fairness`).
    Within a group the order is always that of coming. To admit one costs the same however many of
    the group wait.
    """

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: OrderedDict[Any, OrderedDict[Waiter[Who], None]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __iter__(self) -> Iterator[Waiter[Who]]:
        return chain.from_iterable(self._groups.values())

    async def wait(self, who: Who, missed: Callable[[], object], *, parked: bool = False) -> None:
        """Wait to be admitted. If the work is ended between that and its next step, call `missed`.

        `parked`: on behalf of a client (`Signal.parked`).
        """
        waiter = Waiter(who)
        self._groups.setdefault(self._group(who), OrderedDict())[waiter] = None
        try:
            await Until(waiter, parked=parked)
        except BaseException:  # ended while it waited
            if waiter.fired:
                missed()
            else:
                self._remove(waiter)
            raise

    def next(self) -> Waiter[Who] | None:
        """Return the waiter that is to be admitted next, if there is one; it goes on waiting."""
        group = self._next_group()
        return None if group is None else next(iter(self._groups[group]))

    def admit(self, waiter: Waiter[Who]) -> None:
        """Let `waiter`, which waits here, go on."""
        self._remove(waiter)
        waiter.fire()

    def admit_next(self) -> bool:
        """Let the next waiter go on; return whether there was one."""
        following = self.next()
        if following is None:
            return False
        self.admit(following)
        return True

    def _remove(self, waiter: Waiter[Who]) -> None:
        group = self._group(waiter.who)
        line = self._groups[group]
        del line[waiter]
        if not line:
            del self._groups[group]

    def _group(self, who: Who) -> Any:
        """Return the group of `who`: hashable, and the same while it waits."""
        return True

    def _next_group(self) -> Any:
        """Return the group that is next; None if none is."""
        return next(iter(self._groups), None)


class Lock:
    """Held by at most `places` pieces of work at once; the others wait.

    async with lock:
        ...

    They get their places in the order in which they came, or in that of `waiters`.
    """

    __slots__ = ("_free", "_parks", "_places", "_waiters")

    def __init__(
        self, places: int = 1, *, waiters: Waiters[Any] | None = None, parks: bool = False
    ) -> None:
        """`parks`: work that waits is parked (`Signal.parked`), so it ends with its client."""
        self._places: Final = places
        self._free = places
        self._waiters: Final = Waiters[Any]() if waiters is None else waiters
        self._parks: Final = parks

    @property
    def busy(self) -> int:
        """How many hold it."""
        return self._places - self._free

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._waiters)

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
        else:  # the work that gives a place back hands it over
            await self._waiters.wait(self._who(), self._hand_on, parked=self._parks)

    def release(self) -> None:
        """Give a place back."""
        self._hand_on()

    def _who(self) -> object:
        """Return whom `waiters` know this work by."""
        return None

    def _hand_on(self) -> None:
        if not self._waiters.admit_next():
            self._free += 1


def at_once(work: Work[T]) -> T:
    """Run `work` to its end here and now, with all that it asks for. Raises what it raises.

    A wait for some time (`sleep`, `Signal.within`) is over at once.

    Raises RuntimeError if the work waits for other work, because there is none.
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
