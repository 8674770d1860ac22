"""A module of the daemon run as a program: the command line never touches the daemon's metadata.

What it finds is one JSON value on its standard output, what went wrong is the last line of its
standard error.
"""

import json
import subprocess
import sys
from typing import Any

from tools.errors import CommandError

# `broker` lies beside `tools`: at the top of a checkout, within `pykafkalog` in an installation.
_BROKER = [*__package__.split(".")[:-1], "broker"]


def answer_of(module: str, *arguments: str) -> Any:
    """What `broker.offline.<module>` says to the arguments. Raises CommandError.

    What it has to say beside its answer goes to standard error.
    """
    words = [sys.executable, "-m", ".".join([*_BROKER, "offline", module]), *arguments]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or [f"ended with {result.returncode}"]
        raise CommandError(lines[-1])
    if result.stderr:
        print(result.stderr, end="", file=sys.stderr)
    return json.loads(result.stdout)
