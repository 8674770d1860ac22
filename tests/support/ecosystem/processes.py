"""A program of the ecosystem as a process that can be killed and started again."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from tests.support.server_process import ServerProcess

PAUSE_S: Final = 0.1


class ProgramProcess(ServerProcess):
    """One program; a restart keeps its arguments and its directory, where its output is too."""

    def __init__(
        self,
        directory: Path,
        words: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        name: str = "program",
    ) -> None:
        super().__init__(directory / f"{name}.out")
        self.directory = directory
        self.words = list(words)
        self.environment = dict(environment or {})

    def start(self) -> Self:
        """Start it, without waiting until it works."""
        inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        self.launch(
            self.words,
            directory=self.directory,
            environment={**inherited, "PYTHONUNBUFFERED": "1", **self.environment},
        )
        return self

    def wait_until(self, condition: Callable[[], bool], patience_s: float, what: str) -> None:
        """Wait for a condition while the program runs. Raises AssertionError with its output."""
        deadline = time.monotonic() + patience_s
        while not condition():
            self.check()
            assert time.monotonic() < deadline, f"not in {patience_s} s: {what}\n{self.output()}"
            time.sleep(PAUSE_S)

    def kill(self) -> None:
        """Kill it and the processes that it started with SIGKILL."""
        self.kill_group()
