"""Measures how long one turn occupies the event loop, and names the work that did.

In a turn of the loop, between two polls of the sockets, every task that is ready runs one step. A
request that arrives meanwhile waits for the turn's end, so no turn should be long. A turn longer
than `LONG_TURN_S` means a fault in the broker, or a machine that is short of processors, and is
logged.

The watch is a trio instrument with the two hooks around the wait for the sockets. They cost a
microsecond per turn, however many requests it served; hooks around each step of a task would cost
that per request. So these hooks cannot say which work was slow: code that may be slow times itself,
or is run by `broker.world.driver`, and calls `note` for what took more than `NOTED_S`.

`broker.__main__` installs the watch in trio. In tests and simulations, which do not, it takes notes
and measures no turn. Event loop only.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from trio.abc import Instrument

from storage.clock import Clock

logger = logging.getLogger(__name__)

LONG_TURN_S: Final = 0.05
NOTED_S: Final = 0.005
"""Work that takes at least this long is noted with a name."""
LINE_EVERY_S: Final = 10.0
"""At most one warning per this time: on an overloaded machine, long turns come all the time."""
_WINDOW_S: Final = 60.0
"""The longest turn is reported over the last one to two windows."""
_SURPASSES: Final = 1.2
"""A later note replaces an earlier one of the same turn only if it took this many times as long.
Work that contains other work is noted after the inner work; if the inner work took most of the
time, its name says more."""
_MEASURED_S: Final = 0.001
"""Shorter turns are not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStatistics:
    """Numbers for metrics and tests; times are seconds."""

    longest_turn_s: float
    """The longest turn of the last one to two minutes."""
    long_turns: int
    """Turns of `LONG_TURN_S` or more since the start."""
    long_turns_s: float
    """The sum of their durations."""
    idle_s: float | None
    """How long the loop has waited for work since the start; None if it is not measured."""


class LoopWatch(Instrument):
    """Measures the turns of trio's loop, and logs the long ones with the name of their work."""

    def __init__(self, clock: Clock) -> None:
        self.monotonic = clock.monotonic
        self._began = clock.monotonic()
        self._noted_s = 0.0
        self._noted = ""
        self._collection_began = 0.0
        self._window_began = clock.monotonic()
        self._longest_s = 0.0
        self._longest_before_s = 0.0
        self._long_turns = 0
        self._long_turns_s = 0.0
        self._next_line = 0.0
        self._untold = 0
        self._ended: float | None = None
        self._idle_s = 0.0

    # ---- trio's hooks

    def after_io_wait(self, timeout: float) -> None:
        """Called by trio when a turn begins."""
        self._began = now = self.monotonic()
        if self._ended is not None:
            self._idle_s += now - self._ended

    def begin_turn(self) -> None:
        """Restart the measurement of this turn: its time so far does not count."""
        self._began = self.monotonic()
        self._noted_s = 0.0

    def before_io_wait(self, timeout: float) -> None:
        """Called by trio when a turn ends."""
        self._ended = now = self.monotonic()
        if now - self._began >= _MEASURED_S:
            self._measure(now - self._began, now)

    # ---- what ran

    def note(self, began: float, ended: float, what: Callable[[], str]) -> None:
        """Note that `what()` held the loop from `began` to `ended`, monotonic seconds.

        Work that began in an earlier turn was suspended in between, so its duration says nothing
        about this turn and is ignored.
        """
        took = ended - began
        if took > self._noted_s * _SURPASSES and began >= self._began:
            self._noted_s = took
            self._noted = what()

    def note_collection(self, phase: str, info: dict[str, int]) -> None:
        """Note a garbage collection that held the loop; a callback for `gc.callbacks`."""
        if phase == "start":
            self._collection_began = self.monotonic()
            return
        now = self.monotonic()
        if now - self._collection_began >= NOTED_S:
            generation = info["generation"]
            self.note(
                self._collection_began, now, lambda: f"collecting garbage, generation {generation}"
            )

    # ---- results

    def statistics(self) -> LoopStatistics:
        """A snapshot."""
        self._turn_window(self.monotonic())
        return LoopStatistics(
            longest_turn_s=max(self._longest_s, self._longest_before_s),
            long_turns=self._long_turns,
            long_turns_s=self._long_turns_s,
            idle_s=None if self._ended is None else self._idle_s,
        )

    def _measure(self, took: float, now: float) -> None:
        self._turn_window(now)
        self._longest_s = max(self._longest_s, took)
        if took >= LONG_TURN_S:
            self._long_turns += 1
            self._long_turns_s += took
            self._tell(took, now)
        self._noted_s = 0.0

    def _turn_window(self, now: float) -> None:
        windows = int((now - self._window_began) / _WINDOW_S)
        if windows:
            self._longest_before_s = self._longest_s if windows == 1 else 0.0
            self._longest_s = 0.0
            self._window_began += windows * _WINDOW_S

    def _tell(self, took: float, now: float) -> None:
        if now < self._next_line:
            self._untold += 1
            return
        what = "by nothing that is measured"
        if self._noted_s:
            what = f"{self._noted_s * 1000:.0f} ms of it by {self._noted}"
        others = f" ({self._untold} such turns were not told before)" if self._untold else ""
        logger.warning("The event loop was held for %.0f ms, %s%s", took * 1000, what, others)
        self._next_line = now + LINE_EVERY_S
        self._untold = 0


def name_of(function: Callable[..., object]) -> str:
    """The name of a callback, for the log."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__qualname__", repr(function))
