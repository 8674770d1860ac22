"""Shows a cluster again and again, also while its brokers come and go."""

import sys
import time
from collections.abc import Callable

from tools.errors import CommandError

_HOME_AND_CLEAR = "\x1b[H\x1b[J"


def watch(
    show: Callable[[], object],
    interval_s: float,
    count: int | None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Call `show` once in each interval, `count` times or without end.

    If no broker answers, it prints the error and looks again: people watch a cluster because its
    brokers may fail.
    """
    due = time.monotonic()
    taken = 0
    while True:
        if sys.stdout.isatty():
            sys.stdout.write(_HOME_AND_CLEAR)
        try:
            show()
        except CommandError as error:
            print(error, file=sys.stderr)
        sys.stdout.flush()
        taken += 1
        if taken == count:
            return
        due += interval_s
        sleep(max(due - time.monotonic(), 0))
