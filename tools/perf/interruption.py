"""Ctrl-C while something is measured: the run ends, and what was measured is told.

Not by an exception: it would be raised within a delivery callback as often as not, and the client
library loses it there. A second Ctrl-C is the usual one.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def handled(ask_to_end: Callable[[], bool]) -> Iterator[None]:
    """Calls `ask_to_end` at the first Ctrl-C; when it returns False, there is nothing to end yet,
    and KeyboardInterrupt is raised."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        if not ask_to_end():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
