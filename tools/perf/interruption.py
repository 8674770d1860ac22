"""Ctrl-C during a measurement: the run ends, and its results so far are printed.

A flag ends the run, not an exception: that would often be raised within a delivery callback, where
the client library loses it. A second Ctrl-C raises KeyboardInterrupt as usual.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def handled(ask_to_end: Callable[[], bool]) -> Iterator[None]:
    """Call `ask_to_end` at the first Ctrl-C within the block.

    If it returns False, no run has begun, and KeyboardInterrupt is raised.
    """
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
