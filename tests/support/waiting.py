"""Waits for another process by polling."""

import time
from collections.abc import Callable

PAUSE_S = 0.2


def wait_until(condition: Callable[[], bool], patience_s: float = 60.0) -> None:
    """Return when the condition holds. Raises AssertionError after `patience_s` seconds."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"not so after {patience_s} s"
        time.sleep(PAUSE_S)
