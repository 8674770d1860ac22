"""Runs other code while a call runs: between any two lines of it, at one place after the other.

    def scenario(moment):
        world = ...                                 a fresh one for each moment
        moment.perform(world.flush(), world.interloper)
        ...                                         look at the result

    at_every_moment(scenario)

The interrupting code runs to its end, as the event loop's code does while a thread is between two
lines of a call; the interrupted code still has the values that it has read before. The time between
the end of a call and the next line is a moment, too. Code between calls is not interrupted, because
it runs on the loop.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from storage.waits import Work
from tests.support.calls import Calls

ROOM = str(Path(__file__).resolve().parents[2] / "storage") + "/"
"""Only lines of this room count."""
DISK = ROOM + "memory_filesystem.py"
"""Lines of this file do not count, because a kernel does their work in one call."""

Result = TypeVar("Result")


class Moment:
    """The moment before line `number`."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._lines = 0
        self.place = "never"
        """The line, for messages."""

    @property
    def came(self) -> bool:
        """Whether the code had that many lines."""
        return self.place != "never"

    def perform(self, work: Work[object], interloper: Callable[[], object]) -> None:
        """Run work to its end; interrupt its calls at this moment."""
        calls = Calls(work)
        while not calls.done:
            self.run(calls.run, interloper)
            calls.complete()

    def run(self, work: Callable[[], Result], interloper: Callable[[], object]) -> Result:
        """Run any code of the room; interrupt it at this moment."""

        def pass_by(place: str) -> None:
            if self._lines == self._number:
                self.place = place
                interloper()
            self._lines += 1

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            code = frame.f_code.co_filename
            if code == DISK or not code.startswith(ROOM):
                return None
            if event == "line":
                pass_by(f"{code.removeprefix(ROOM)}:{frame.f_lineno}")
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            result = work()
        finally:
            sys.settrace(before)
        pass_by("after the last line")
        return result


def at_every_moment(scenario: Callable[[Moment], None], *, step: int = 1, first: int = 0) -> int:
    """Run the scenario at every `step`th moment until the lines end; return their number."""
    number = first
    while True:
        moment = Moment(number)
        try:
            scenario(moment)
        except BaseException as error:
            error.add_note(f"interrupted before line {number}, {moment.place}")
            raise
        if not moment.came:
            return number
        number += step
