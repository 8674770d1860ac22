"""Runs modules of `broker.offline` as programs: the command line never reads the daemon's metadata.

Such a program prints its result as one JSON value on standard output, and a failure's reason as the
last line on standard error. It ends with its parent, however that ends: a program left alone would
hold the lock of the log directories.
"""

import ctypes
import json
import signal
import subprocess
import sys
from typing import Any

from tools.errors import CommandError

_PR_SET_PDEATHSIG = 1  # of linux/prctl.h
# `broker` lies beside `tools`: at the top of a checkout, within `pykafkalog` in an installation.
_BROKER = [*__package__.split(".")[:-1], "broker"]


def answer_of(module: str, *arguments: str, told: str = "") -> Any:
    """Run `broker.offline.<module>` and return its JSON value. Raises CommandError.

    `told` is its standard input. Its warnings are copied to standard error.
    """
    # Without -P, modules of the current folder would go before those meant (a stranger's numpy.py).
    words = [sys.executable, "-P", "-m", ".".join([*_BROKER, "offline", module]), *arguments]
    prctl = ctypes.CDLL(None).prctl  # looked up before the fork

    def end_with_parent() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    result = subprocess.run(
        words,
        input=told,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=end_with_parent,
    )
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or [f"ended with {result.returncode}"]
        raise CommandError(lines[-1])
    if result.stderr:
        print(result.stderr, end="", file=sys.stderr)
    return json.loads(result.stdout)
