"""Waits until the image shows something.

Topics that were created or deleted are answered when the controller has told of them; after a start
all clients that ask for topics wait for the first news. Waits end soon, so each change wakes all,
and each looks for itself.
"""

from collections.abc import Callable

from storage.clock import Clock
from storage.waits import Signal


class ImageChanges:
    """Waits for the image."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[Signal[None], None] = {}
        self.listeners: list[Callable[[], object]] = []
        """Called after each change, before those who wait."""

    def changed(self) -> None:
        """The image has changed: let all who wait look."""
        for listener in self.listeners:
            listener()
        waiting, self._waiting = self._waiting, {}
        for signal in waiting:
            signal.fire()

    async def wait_until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until `holds`, but no longer than `seconds`; return whether it does."""
        deadline = self._clock.monotonic() + seconds
        while not holds():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            signal: Signal[None] = Signal()
            self._waiting[signal] = None
            try:
                await signal.within(left)
            finally:
                if not signal.fired:
                    del self._waiting[signal]
        return True
