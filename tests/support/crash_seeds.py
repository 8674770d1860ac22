"""Draws crash states by the thousand: chooses seeds and numbers, and reports them.

CRASH_SEED=<seed> runs that one workload alone, CRASH_STATES sets how many states are drawn in all,
CRASH_HUNT=1 draws seeds other than CI's.
"""

import os
import time
from collections.abc import Callable
from random import Random
from typing import Any


def wanted_states(default: int) -> int:
    """Return the number of states to draw in all."""
    return int(os.environ.get("CRASH_STATES", default))


def draw_states(
    name: str, run: Callable[[int], int], wanted: int, first_seed: int, record_property: Any
) -> str:
    """Call `run` with seeds until the states that it returns are enough; return a line to print.

    A failure of `run` names its seed itself.
    """
    only = os.environ.get("CRASH_SEED")
    first = int(only) if only else first_seed
    if os.environ.get("CRASH_HUNT"):
        first = Random().randrange(1_000_000)
    tried, seed, begin = 0, first, time.monotonic()
    while tried < wanted:
        tried += run(seed)
        seed += 1
        if only:
            break
    per_minute = tried / (time.monotonic() - begin) * 60
    record_property("states_per_minute", round(per_minute))
    return f"{name}: {tried} states, {per_minute:.0f} a minute, seeds {first}-{seed - 1}"
