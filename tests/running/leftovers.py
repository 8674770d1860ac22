"""Processes, temporary files, shared memory and semaphores that a run leaves behind.

A machine on which tests run for days fills up with them. The run becomes the parent of its orphans,
and its temporary files have a directory of their own, so it finds its own leftovers only, whatever
else the machine does. It reports them, ends the processes and removes the files.
"""

import ctypes
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from tests.running.stage import Failure
from tests.support.spark_files import spark_variables

PR_SET_CHILD_SUBREAPER: Final = 36
ENDING_S: Final = 30.0
"""Seconds that processes have to end by themselves: a JVM takes some."""
_EXPECTED: Final = (
    "pytest-of-",  # what pytest keeps of failed tests, for people
    "liblz4-java-",  # libraries that a JVM unpacks, and removes at its end unless it is killed
    "snappy-",
    "librocksdbjni",
    "libzstd-jni",
)
"""Beginnings of names that are no fault of a test."""


class Leftovers:
    """The things that are there after a run and were not there before."""

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.directory = Path(tempfile.mkdtemp(prefix="pykafkalog-run-"))
        self.directory.chmod(0o755)  # a test starts a broker as another user
        self._shared = set(_shared())

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables by which temporary files come to `directory`."""
        return {"TMPDIR": str(self.directory), **spark_variables(self.directory)}

    def collect(self) -> list[Failure]:
        """Report the leftovers and remove them."""
        found = [*self._processes(), *self._files()]
        found += [
            Failure(f"left behind: {name}", "shared memory or semaphores")
            for name in sorted(set(_shared()) - self._shared)
        ]
        shutil.rmtree(self.directory, ignore_errors=True)
        return found

    def _processes(self) -> Iterator[Failure]:
        ends = time.monotonic() + ENDING_S
        while (left := _children()) and time.monotonic() < ends:
            time.sleep(0.1)
        for process in left:
            yield Failure(f"left behind: process {process}", _command(process))
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)

    def _files(self) -> Iterator[Failure]:
        for file in sorted(self.directory.iterdir()):
            if not file.name.startswith(_EXPECTED):
                at = datetime.fromtimestamp(file.stat().st_mtime).astimezone()
                yield Failure(
                    f"left behind: {file.name}", f"a temporary file of a test, of {at:%H:%M:%S}"
                )


def _children() -> list[int]:
    """Return the children that have not ended; reap those that have."""
    found = []
    for thread in Path("/proc/self/task").iterdir():
        for word in (thread / "children").read_text().split():
            process = int(word)
            if os.waitpid(process, os.WNOHANG) == (0, 0):
                found.append(process)
    return found


def _command(process: int) -> str:
    try:
        line = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return "has ended"
    return line.replace(b"\0", b" ").decode(errors="replace")[:200]


def _shared() -> Iterator[str]:
    """Names of shared memory and semaphores: POSIX's, and the ids of System V's."""
    yield from (f"/dev/shm/{name}" for name in os.listdir("/dev/shm"))
    for kind in ("shm", "sem", "msg"):
        table = Path(f"/proc/sysvipc/{kind}")
        if table.exists():
            for line in table.read_text().splitlines()[1:]:
                yield f"{kind} {line.split()[1]}"
