"""Real ZooKeeper servers on loopback, one or an ensemble, from the jars of Apache Kafka 3.9.

    with ZooKeeper(tmp_path) as zookeeper:
        zookeeper.connect                       "127.0.0.1:<port>", for zookeeper.connect
        zookeeper.pause(), .resume()            SIGSTOP and SIGCONT
        zookeeper.kill(), .start()              SIGKILL; the data stay in the directory

    with Ensemble(tmp_path) as ensemble:
        ensemble.leader().kill()

Sessions may be as short as half a second. Writes are not forced to the disk unless asked for
(`forced=True`): tests kill processes, not machines.
"""

import contextlib
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.kafka_jars import LOGGING, SHORT_LIVED, kafka_jars
from tests.support.ports import free_port
from tests.support.server_process import ForWith, ServerProcess

KAFKA_WITH_ZOOKEEPER = "3.9.0"
"""The newest Kafka that knows ZooKeeper; it brings ZooKeeper 3.8."""
START_TIMEOUT_S = 60
TICK_MS = 250
"""The grain of session timeouts: a session ends at most so much later than it could."""
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeper(ServerProcess):
    """One server process. Its data stay in `directory`."""

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        tick_ms: int = TICK_MS,
        forced: bool = False,
        heap: str = "128m",
        settings: Sequence[str] = (),
        number: int | None = None,
    ) -> None:
        """`settings`: further lines of zoo.cfg. `number`: of a server of an ensemble."""
        super().__init__(directory / "zookeeper.out")
        self.directory = directory
        self.port = free_port() if port is None else port
        self.number = number
        self._heap = heap
        self._forced = forced
        self._config = [
            f"dataDir={directory / 'data'}",
            f"clientPort={self.port}",
            "clientPortAddress=127.0.0.1",
            f"tickTime={tick_ms}",
            "minSessionTimeout=500",
            "maxSessionTimeout=120000",
            "initLimit=40",
            "syncLimit=20",
            "admin.enableServer=false",
            "4lw.commands.whitelist=*",
            "maxClientCnxns=0",
            *settings,
        ]

    @property
    def connect(self) -> str:
        """The value of zookeeper.connect for this server alone."""
        return f"127.0.0.1:{self.port}"

    def begin(self) -> None:
        """Start the process without waiting until it serves."""
        (self.directory / "data").mkdir(parents=True, exist_ok=True)
        if self.number is not None:
            (self.directory / "data" / "myid").write_text(f"{self.number}\n")
        config = self.directory / "zoo.cfg"
        config.write_text("".join(f"{line}\n" for line in self._config))
        self.launch(
            [
                *("java", f"-Xmx{self._heap}", *SHORT_LIVED, *LOGGING),
                "-Dzookeeper.jmx.log4j.disable=true",
                *(() if self._forced else ("-Dzookeeper.forceSync=no",)),
                *("-cp", kafka_jars(KAFKA_WITH_ZOOKEEPER), MAIN, str(config)),
            ]
        )

    def start(self) -> "ZooKeeper":
        """Start it and wait until it serves clients."""
        self.begin()
        self.wait_until_serving()
        return self

    def wait_until_serving(self) -> None:
        """Wait until it answers clients, which a server of an ensemble does with a leader only."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            self.check()
            if self.mode() is not None:
                return
            time.sleep(0.05)
        raise AssertionError(f"ZooKeeper does not serve: {self.output()}")

    def mode(self) -> str | None:
        """`standalone`, `leader` or `follower`; None while it does not serve."""
        for line in self.ask("srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ").strip()
        return None

    def ask(self, command: str) -> str:
        """The answer to a four letter word (`srvr`, `mntr`, `cons`, `dump`, …); empty: none."""
        answer = b""
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), 2) as asking,
        ):
            asking.sendall(command.encode())
            while piece := asking.recv(65536):
                answer += piece
        return answer.decode(errors="replace")


class Ensemble(ForWith):
    """Several servers that elect a leader; a size of 1 is a server that stands alone."""

    def __init__(
        self, directory: Path, size: int = 3, *, tick_ms: int = TICK_MS, forced: bool = False
    ) -> None:
        numbers = range(1, size + 1)
        lines = [f"server.{number}=127.0.0.1:{free_port()}:{free_port()}" for number in numbers]
        if size == 1:
            lines.clear()
        self.servers = [
            ZooKeeper(
                directory / f"zookeeper-{number}",
                tick_ms=tick_ms,
                forced=forced,
                settings=lines,
                number=number if size > 1 else None,
            )
            for number in numbers
        ]

    @property
    def connect(self) -> str:
        """The value of zookeeper.connect."""
        return ",".join(server.connect for server in self.servers)

    def start(self) -> "Ensemble":
        """Start all servers that do not run, and wait until they serve."""
        started = [server for server in self.servers if not server.running]
        for server in started:
            server.begin()
        for server in started:
            server.wait_until_serving()
        return self

    def ask(self, command: str) -> str:
        """The answers of all servers, one after the other (`ZooKeeper.ask`)."""
        return "".join(server.ask(command) for server in self.servers)

    def leader(self) -> ZooKeeper:
        """The server that leads, once there is one."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for server in self.servers:
                if server.mode() == "leader":
                    return server
            time.sleep(0.05)
        raise AssertionError("the ensemble has no leader")

    def followers(self) -> list[ZooKeeper]:
        """The servers that follow now."""
        return [server for server in self.servers if server.mode() == "follower"]

    def close(self) -> None:
        """Kill all."""
        for server in self.servers:
            server.kill()
