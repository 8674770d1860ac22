"""Waiting for another process: asked again until it is so."""

import time
from collections.abc import Callable

PAUSE_S = 0.2


def wait_until(condition: Callable[[], bool], patience_s: float) -> None:
    """Returns when it holds. Raises AssertionError when that takes longer than `patience_s`."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"not so after {patience_s} s"
        time.sleep(PAUSE_S)
