"""A program of the ecosystem as a process that can be killed and started again."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

STOP_TIMEOUT_S: Final = 60
PAUSE_S: Final = 0.1


class ProgramProcess:
    """One program; a restart keeps its arguments and its directory, where its output is too."""

    def __init__(
        self,
        directory: Path,
        words: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        name: str = "program",
    ) -> None:
        self.directory = directory
        self.words = list(words)
        self.environment = dict(environment or {})
        self.output_file = directory / f"{name}.out"
        self.process: subprocess.Popen[bytes] | None = None
        self._began = 0

    def start(self) -> "ProgramProcess":
        """Start it, without waiting until it works."""
        assert not self.running, "it runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        with self.output_file.open("ab") as out:
            self._began = out.tell()
            self.process = subprocess.Popen(
                self.words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env={**inherited, "PYTHONUNBUFFERED": "1", **self.environment},
                start_new_session=True,
            )
        return self

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    def check(self) -> None:
        """Raise AssertionError with its output if it ended by itself."""
        assert self.process is not None, "it was never started"
        assert self.running, f"it ended with {self.process.returncode}:\n{self.output()}"

    def wait_until(self, condition: Callable[[], bool], patience_s: float, what: str) -> None:
        """Wait for a condition while the program runs. Raises AssertionError with its output."""
        deadline = time.monotonic() + patience_s
        while not condition():
            self.check()
            assert time.monotonic() < deadline, f"not in {patience_s} s: {what}\n{self.output()}"
            time.sleep(PAUSE_S)

    def printed(self) -> str:
        """Return its output since the last start."""
        if not self.output_file.exists():
            return ""
        return self.output_file.read_bytes()[self._began :].decode(errors="replace")

    def output(self) -> str:
        """Return the end of its output over all starts."""
        return self.output_file.read_text(errors="replace")[-6000:]

    def kill(self) -> None:
        """Kill it and the processes that it started with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it with SIGTERM. Raises AssertionError if it does not end."""
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self.process is None or not self.running:
            return
        if number == signal.SIGKILL:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(STOP_TIMEOUT_S)
            raise AssertionError(f"it does not end:\n{self.output()}") from None

    def __enter__(self) -> "ProgramProcess":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
