"""Starts, follows, kills and restarts the process that joins (`stream.py`)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tests.support.installation import ROOT
from tests.support.spark_files import spark_environment

STREAM = f"{__package__}.stream"


@dataclass(frozen=True)
class Batch:
    """A batch of the join, as the driver reports it."""

    batch: int
    watermark: str
    flights_read: int
    weather_read: int
    rows: int
    waiting: int
    dropped: int
    ms: int

    @property
    def time(self) -> datetime:
        """The watermark."""
        return datetime.fromisoformat(self.watermark)


class DriverEnded(Exception):
    """The process ended or made no progress; the text has the end of its log."""


class JoinDriver:
    """One driver; its checkpoint, progress and log stay in `directory` over restarts."""

    def __init__(self, directory: Path, bootstrap: str, flights: str, weather: str, result: str):
        self._directory = directory
        self._words = [
            *("--bootstrap", bootstrap, "--flights", flights),
            *("--weather", weather, "--result", result),
            *("--checkpoint", str(directory / "checkpoint")),
            *("--progress", str(directory / "progress")),
            *("--log", str(directory / "log")),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, or start it again from its checkpoint."""
        self._directory.mkdir(parents=True, exist_ok=True)
        (self._directory / "progress").touch()
        with (self._directory / "log").open("ab") as log:
            # In a new session, so that one signal kills Python and its Java process.
            self._process = subprocess.Popen(
                [sys.executable, "-m", STREAM, *self._words],
                cwd=ROOT,  # where it finds this package, which is not installed
                env=spark_environment(self._directory),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill Python and Java with SIGKILL."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """Have it end after its batch. Raises DriverEnded if it does not, or if it fails."""
        assert self._process is not None
        self._process.terminate()
        try:
            code = self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            code = -signal.SIGKILL
        if code != 0:
            raise DriverEnded(f"it ended with {code}: {self.log()}")

    def batches(self) -> list[Batch]:
        """Return all batches reported over all restarts; a repeated batch comes twice."""
        lines = (self._directory / "progress").read_text().splitlines(keepends=True)
        return [Batch(**json.loads(line)) for line in lines if line.endswith("\n")]

    def wait_until(
        self,
        condition: Callable[[Batch], bool],
        on_batch: Callable[[Batch], None] = lambda _batch: None,
        timeout_s: float = 180,
    ) -> Batch:
        """Wait for a batch that meets the condition and return it. Raises DriverEnded."""
        deadline = time.monotonic() + timeout_s
        told = 0
        while True:
            found = self.batches()
            for batch in found[told:]:
                on_batch(batch)
                if condition(batch):
                    return batch
            told = len(found)
            self.check()
            if time.monotonic() > deadline:
                raise DriverEnded(f"it came no further in {timeout_s} s: {self.log()}")
            time.sleep(0.05)

    def check(self) -> None:
        """Raise DriverEnded if it does not run."""
        assert self._process is not None
        code = self._process.poll()
        if code is not None:
            raise DriverEnded(f"it ended with {code}: {self.log()}")

    def log(self) -> str:
        """Return the end of its log."""
        return (self._directory / "log").read_text(errors="replace")[-4000:]
