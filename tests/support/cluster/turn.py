"""One machine has no more clusters at a time than processors, whichever processes they are of.

A cluster is several brokers, often JVMs, and a crowd of clients. With more of them than processors
nobody hears of a session, an election or a request in time, and tests wait in vain.
"""

import fcntl
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

_PLACES: Final = max(2, os.cpu_count() or 1)
"""At least two: a module that has a cluster for all its tests may make one for a test."""
_LOOK_S: Final = 0.2


def wait_for_turn(stack: ExitStack) -> None:
    """Wait for a place; the stack gives it back, and so does the end of the process."""
    names = [f"pykafkalog-cluster-{os.getuid()}-{number}.lock" for number in range(_PLACES)]
    # Not TMPDIR, which each run of the tests has for itself.
    while True:
        for name in names:
            file = (Path("/tmp") / name).open("wb")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
            else:
                stack.enter_context(file)
                return
        time.sleep(_LOOK_S)
