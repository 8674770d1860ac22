"""A real broker process of this project on loopback, for tests that talk to it with real clients.

    with BrokerProcess(tmp_path, {"num.partitions": "4"}) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

It listens on port 0, and its start message tells the real port, so that concurrent runs do not
disturb each other. A restart keeps the port and the log directory. The broker's output is in
`directory/broker.out`; assertions that fail here include its end. `tests.support.installation`
says which installation the broker is of.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.support.installation import CHECKOUT, Installation, under_test

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30
_LISTENING = re.compile(rb"^Listening on (\S+)://(\S+):(\d+)\s*$", re.MULTILINE)
_STARTED = b"Kafka Server started"


class BrokerProcess:
    """Starts, stops, kills and restarts one broker; its log directory stays in `directory`."""

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        python_options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
        installation: Installation | None = None,
        wrapper: Sequence[str] = (),
    ) -> None:
        """`command`: another program of the checkout that is a broker, as words for Python.

        `wrapper`: words before it, of a program that becomes the broker (`prlimit`).
        """
        self.directory = directory
        self.log_dir = directory / "kafka-logs"
        self.properties = directory / "server.properties"
        self.output_file = directory / "broker.out"
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.python_options = tuple(python_options)
        self.command = command
        self.wrapper = tuple(wrapper)
        self.installation = installation or (under_test() if command is None else CHECKOUT)
        self.environment = dict(environment or {})
        self.settings = {
            "broker.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(self.log_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **(overrides or {}),
        }

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The id of the process, which must have been started."""
        assert self.process is not None, "the broker was never started"
        return self.process.pid

    @property
    def running(self) -> bool:
        """Whether a process was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    def start(self, timeout_s: float = START_TIMEOUT_S) -> "BrokerProcess":
        """Start the broker and wait until it serves. Raises AssertionError with its output."""
        assert not self.running, "the broker runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.properties.write_text("".join(f"{k}={v}\n" for k, v in self.settings.items()))
        begin = self.output_file.stat().st_size if self.output_file.exists() else 0
        with self.output_file.open("ab") as out:
            self.process = subprocess.Popen(
                [*self.wrapper, *self._command(), str(self.properties), *self._keep_port()],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.installation.directory,
                env=self._environment(),
                start_new_session=True,
            )
        deadline = time.monotonic() + timeout_s
        while True:
            printed = self._read_from(begin)
            found = _LISTENING.findall(printed)
            if found and _STARTED in printed:
                self.port = int(found[0][2])
                return self
            if self.process.poll() is not None:
                raise AssertionError(
                    f"the broker ended with {self.process.returncode}:\n{self.output()}"
                )
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"no start within {timeout_s} s:\n{self.output()}")
            time.sleep(0.01)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop it with SIGTERM. Raises AssertionError if it does not end with code 0."""
        if not self.running:
            return
        code = self._end(signal.SIGTERM, timeout_s)
        assert code == 0, f"the broker ended with {code}:\n{self.output()}"

    def kill(self) -> None:
        """Kill it with SIGKILL; unsynced writes stay in the page cache."""
        if self.running:
            self._end(signal.SIGKILL, STOP_TIMEOUT_S)

    def restart(self) -> "BrokerProcess":
        """Stop cleanly and start again on the same port and directory."""
        self.stop()
        return self.start()

    def output(self, limit: int = 8000) -> str:
        """Return the end of its output."""
        return self._read_from(0)[-limit:].decode(errors="replace")

    def resident_bytes(self) -> int:
        """Return its resident memory (RSS)."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """Return the processor time that it has used, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _command(self) -> list[str]:
        if self.command is None:
            return self.installation.broker(self.python_options)
        return [self.installation.python, *self.python_options, *self.command]

    def _environment(self) -> dict[str, str]:
        inherited = self.installation.process_environment()
        return {**inherited, "PYTHONUNBUFFERED": "1", **self.environment}

    def _keep_port(self) -> list[str]:
        """Return arguments that keep the port of the first start, which clients know."""
        if self.port == 0:
            return []
        listeners = re.sub(r":0\b", f":{self.port}", self.settings["listeners"], count=1)
        return ["--override", f"listeners={listeners}"]

    def _read_from(self, position: int) -> bytes:
        if not self.output_file.exists():
            return b""
        with self.output_file.open("rb") as file:
            file.seek(position)
            return file.read()

    def _end(self, number: int, timeout_s: float) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(STOP_TIMEOUT_S)
            raise AssertionError(f"no end within {timeout_s} s:\n{self.output()}") from None

    def __enter__(self) -> "BrokerProcess":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()
