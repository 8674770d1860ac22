"""A real broker process of this project on loopback, for tests that talk to it with real clients.

    with BrokerProcess(tmp_path, {"num.partitions": "4"}) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

It listens on a free port, or on those that its start messages tell when `listeners` says 0. A
restart keeps the (first) port and the log directory. The broker's output is in
`directory/broker.out`; assertions that fail here include its end. `tests.support.installation`
says which installation the broker is of.
"""

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.installation import CHECKOUT, Installation, under_test
from tests.support.ports import free_port
from tests.support.server_process import ServerProcess

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30
_LISTENING = re.compile(r"^Listening on (\S+)://(\S+):(\d+)\s*$", re.MULTILINE)
_STARTED = "Kafka Server started"


class BrokerProcess(ServerProcess):
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
        super().__init__(directory / "broker.out")
        self.directory = directory
        self.log_dir = directory / "kafka-logs"
        self.properties = directory / "server.properties"
        self.port = 0
        self.python_options = tuple(python_options)
        self.command = command
        self.wrapper = tuple(wrapper)
        self.installation = installation or (under_test() if command is None else CHECKOUT)
        self.environment = dict(environment or {})
        self.settings = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
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

    def port_of(self, listener: str) -> int:
        """The port of a listener, by its name, as the last start printed it."""
        found = _LISTENING.findall(self.output_file.read_text(errors="replace"))
        return int(next(port for name, _, port in reversed(found) if name == listener))

    def start(self, timeout_s: float = START_TIMEOUT_S) -> "BrokerProcess":
        """Start the broker and wait until it serves. Raises AssertionError with its output."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.properties.write_text("".join(f"{k}={v}\n" for k, v in self.settings.items()))
        self.launch(
            [*self.wrapper, *self._command(), str(self.properties), *self._keep_port()],
            directory=self.installation.directory,
            environment=self._environment(),
        )
        deadline = time.monotonic() + timeout_s
        while True:
            printed = self.printed()
            found = _LISTENING.findall(printed)
            if found and _STARTED in printed:
                self.port = int(found[0][2])
                return self
            self.check()
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"no start within {timeout_s} s:\n{self.output()}")
            time.sleep(0.01)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop it with SIGTERM. Raises AssertionError if it does not end with code 0."""
        if self.process is not None and self.running:
            super().stop(timeout_s)
            code = self.process.returncode
            assert code == 0, f"the broker ended with {code}:\n{self.output()}"

    def restart(self) -> "BrokerProcess":
        """Stop cleanly and start again on the same port and directory."""
        self.stop()
        return self.start()

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

    def __exit__(self, *failure: object) -> None:
        if any(failure):
            self.kill()
        else:
            self.stop()
