"""A program as a process of a test's own: begun, paused, stopped, killed; its output in a file."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

STOP_TIMEOUT_S: Final = 60


class ForWith:
    """A thing that a `with` block starts and closes; it is closed as well if its start fails."""

    def start(self) -> Self:
        """Start it; return when it serves."""
        raise NotImplementedError

    def close(self) -> None:
        """End it and give back everything."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()


class ServerProcess(ForWith):
    """One process after the other; `output_file` has what all of them printed."""

    def __init__(self, output_file: Path) -> None:
        self.output_file = output_file
        self.process: subprocess.Popen[bytes] | None = None
        self._began = 0

    def __str__(self) -> str:
        return type(self).__name__

    @property
    def pid(self) -> int:
        """The id of the process, which must have been started."""
        assert self.process is not None, f"{self} was never started"
        return self.process.pid

    @property
    def running(self) -> bool:
        """Whether a process was started and has not ended; a paused one runs."""
        return self.process is not None and self.process.poll() is None

    def launch(
        self,
        words: Sequence[str],
        *,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start a process, without waiting for anything."""
        assert not self.running, f"{self} runs already"
        self.output_file.parent.mkdir(parents=True, exist_ok=True)
        with self.output_file.open("ab") as out:
            self._began = out.tell()
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )

    def check(self) -> None:
        """Raise AssertionError with its output if it ended by itself."""
        assert self.process is not None, f"{self} was never started"
        assert self.running, f"{self} ended with {self.process.returncode}:\n{self.output()}"

    def pause(self) -> None:
        """SIGSTOP: it stands still and keeps its connections."""
        os.kill(self.pid, signal.SIGSTOP)
        # Threads stop one by one, and until the last has, one could answer.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """SIGTERM. Raises AssertionError if it does not end in time."""
        if self.process is None or not self.running:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self}: no end in {timeout_s} s:\n{self.output()}") from None

    def kill(self) -> None:
        """SIGKILL; unsynced writes stay in the page cache."""
        if self.process is not None and self.running:
            self.process.kill()
            self.process.wait(STOP_TIMEOUT_S)

    def kill_group(self) -> None:
        """SIGKILL, also to what it has started."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(STOP_TIMEOUT_S)

    def printed(self) -> str:
        """Return its output since the last start."""
        if not self.output_file.exists():
            return ""
        with self.output_file.open("rb") as file:
            file.seek(self._began)
            return file.read().decode(errors="replace")

    def output(self, limit: int = 8000) -> str:
        """Return the end of its output, over all starts."""
        if not self.output_file.exists():
            return ""
        return self.output_file.read_bytes()[-limit:].decode(errors="replace")

    def resident_bytes(self) -> int:
        """Return its resident memory (RSS)."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """Return the processor time that it has used, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End it for good."""
        self.kill()
