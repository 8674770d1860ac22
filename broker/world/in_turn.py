"""Runs work within the turns in which the signals fire that it waits for, without a task.

A coordinator's state changes in the turn in which a record becomes durable: before any later
request sees the state, in the order of the log, and also if the client has left meanwhile. So the
work that writes the record goes on within the `fire` of the signal that it waits for, while every
other driver lets work go on in a later turn.

Such work awaits signals only. `Deadlines.sleep` is one; a call in a thread needs a task.
"""

from functools import partial
from typing import TypeVar

from storage.waits import Signal, Until, Work

T = TypeVar("T")


def begin(work: Work[T]) -> Signal[T]:
    """Run `work` until it waits, and resume it whenever the signal that it waits for fires.

    Returns the signal of its result. Raises what `work` raises before it waits; an error after that
    is raised to the function that fires.
    """
    ended: Signal[T] = Signal()
    _go_on(work, ended, None)
    return ended


def _go_on(work: Work[T], ended: Signal[T], happened: Signal[None] | None) -> None:
    if happened is not None:
        happened.wake = None  # it refers to the work, whose frame refers to the signal
    try:
        wait = work.send(None)
    except StopIteration as end:
        ended.fire(end.value)
        return
    if not isinstance(wait, Until) or wait.seconds is not None:
        raise TypeError(f"work within a turn awaits something else than a signal: {wait!r}")
    wait.signal.wake = partial(_go_on, work, ended, wait.signal)
