"""One broker of a cluster: a process of Apache Kafka 3.9 or of this project; the same settings.

Id, ports and directory belong to the place in the cluster, not to the kind: a member that is
replaced by one of the other kind continues its work.
"""

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from tests.support.cluster.jumping_clock import set_clock
from tests.support.cluster.view import ClusterView, view_of
from tests.support.installation import CHECKOUT, under_test
from tests.support.kafka_jars import SHORT_LIVED, kafka_command
from tests.support.ports import free_port
from tests.support.server_process import STOP_TIMEOUT_S, ServerProcess
from tests.support.waiting import wait_until

CLUSTER_KAFKA: Final = "3.9.0"
"""The last line of Apache Kafka that has ZooKeeper mode."""
START_TIMEOUT_S: Final = 90
REGISTRATION_S: Final = 30
"""Longer than sessions with ZooKeeper last."""
OLD_LOGGING: Final = (
    f"-Dlog4j.configuration=file:{Path(__file__).with_name('log4j.properties').resolve()}"
)
CLIENTS, BROKERS = "CLIENTS", "BROKERS"
"""Names of the two listeners."""


class Kind(Enum):
    """The project that a broker is of."""

    KAFKA = "kafka"
    OURS = "ours"

    @property
    def other(self) -> "Kind":
        """The other one."""
        return Kind.OURS if self is Kind.KAFKA else Kind.KAFKA


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The things that stay when the broker of a place is replaced."""

    broker_id: int
    directory: Path
    client_port: int
    internal_port: int
    """The port of its listener for brokers."""
    advertised_port: int
    """The port by which other brokers reach that listener: the same, or a proxy's."""
    zookeeper: str
    """`zookeeper.connect`, perhaps through a proxy."""
    cluster_settings: Mapping[str, str]
    log_dir_count: int = 1

    @property
    def log_dir(self) -> Path:
        """The first log directory."""
        return self.log_dirs[0]

    @property
    def log_dirs(self) -> list[Path]:
        """The log directories."""
        names = ["kafka-logs", *(f"kafka-logs-{n}" for n in range(2, self.log_dir_count + 1))]
        return [self.directory / name for name in names]

    def settings(self) -> dict[str, str]:
        """The properties, for either kind."""
        protocols = f"{CLIENTS}:PLAINTEXT,{BROKERS}:PLAINTEXT"
        return {
            "broker.id": str(self.broker_id),
            "listeners": (
                f"{CLIENTS}://127.0.0.1:{self.client_port},{BROKERS}://127.0.0.1:{self.internal_port}"
            ),
            "advertised.listeners": (
                f"{CLIENTS}://127.0.0.1:{self.client_port},"
                f"{BROKERS}://127.0.0.1:{self.advertised_port}"
            ),
            "listener.security.protocol.map": protocols,
            "inter.broker.listener.name": BROKERS,
            "zookeeper.connect": self.zookeeper,
            "log.dirs": ",".join(map(str, self.log_dirs)),
            **self.cluster_settings,
        }


def new_place(
    broker_id: int,
    directory: Path,
    zookeeper: str,
    settings: Mapping[str, str],
    log_dir_count: int = 1,
) -> Place:
    """A place whose brokers reach each other directly."""
    port = free_port()
    return Place(
        broker_id=broker_id,
        directory=directory,
        client_port=free_port(),
        internal_port=port,
        advertised_port=port,
        zookeeper=zookeeper,
        cluster_settings=settings,
        log_dir_count=log_dir_count,
    )


class Member(ServerProcess):
    """The process at a place. Output is in `broker.out` of its directory, of all that ran there."""

    def __init__(
        self,
        place: Place,
        kind: Kind,
        *,
        heap: str = "256m",
        java_options: Sequence[str] = SHORT_LIVED,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
        is_registered: Callable[[int], bool] = lambda broker_id: False,
    ) -> None:
        """`command`: another broker of this checkout, as words for Python (a sabotaged one).

        `is_registered`: whether a broker of this id is in ZooKeeper. One that was killed still is,
        until its session ends; the next one would be refused until then.
        """
        super().__init__(place.directory / "broker.out")
        self.place = place
        self.kind = kind
        self.heap = heap
        self.java_options = tuple(java_options)
        self.environment = dict(environment or {})
        self.command = command
        self._is_registered = is_registered
        self.is_paused = False
        self.started_at = 0.0

    def __str__(self) -> str:
        return f"broker {self.broker_id} ({self.kind.value})"

    @property
    def broker_id(self) -> int:
        return self.place.broker_id

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.place.client_port}"

    # ---- its life

    def begin(self, overrides: Mapping[str, str] | None = None) -> "Member":
        """Start the process; `wait_until_member` waits for it."""
        wait_until(lambda: not self._is_registered(self.broker_id), REGISTRATION_S)
        self.place.directory.mkdir(parents=True, exist_ok=True)
        properties = self.place.directory / "server.properties"
        settings = {**self.place.settings(), **(overrides or {})}
        properties.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
        self.is_paused = False
        self.started_at = time.monotonic()
        words, environment, where = self._command(properties)
        with self.output_file.open("a") as out:
            out.write(f"---- {self} begins\n")
        self.launch(words, directory=where, environment=environment)
        return self

    def wait_until_member(self, timeout_s: float = START_TIMEOUT_S) -> "Member":
        """Wait until it knows of itself and of a controller. Raises AssertionError."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self.check()
            told = self.view(timeout_s=2)
            if told is not None and self.broker_id in told.brokers and told.controller >= 0:
                return self
            time.sleep(0.05)
        raise AssertionError(f"{self} is no member after {timeout_s} s:\n{self.output()}")

    def start(self, timeout_s: float = START_TIMEOUT_S) -> "Member":
        """Start it and wait until it is a member."""
        return self.begin().wait_until_member(timeout_s)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """SIGTERM: a controlled shutdown. Raises AssertionError if it does not end in time."""
        if self.process is not None and self.running:
            super().stop(timeout_s)
            code = self.process.returncode
            # A JVM that ends by SIGTERM says so in its code.
            clean = (0, 143) if self.kind is Kind.KAFKA else (0,)
            assert code in clean, f"{self} ended with {code}:\n{self.output()}"

    def kill(self) -> None:
        """SIGKILL."""
        super().kill()
        self.is_paused = False

    def pause(self) -> None:
        """SIGSTOP: it stands still and keeps its connections."""
        super().pause()
        self.is_paused = True

    def resume(self) -> None:
        """SIGCONT."""
        if self.running:
            super().resume()
        self.is_paused = False

    def empty_directory(self) -> None:
        """Lose the disk; it must not run."""
        assert not self.running
        for log_dir in self.place.log_dirs:
            shutil.rmtree(log_dir, ignore_errors=True)

    @property
    def has_clock(self) -> bool:
        """Whether its wall clock can be made to jump: that of `tests.anomalies.cluster_broker`."""
        return self.kind is Kind.OURS and self.command is not None

    def set_clock(self, offset_ms: int) -> None:
        """Have its wall clock be so far ahead, or behind if below 0."""
        set_clock(self.place.directory, offset_ms)

    # ---- its view

    def view(self, timeout_s: float = 5) -> ClusterView | None:
        """The cluster as it sees it; None if it does not answer."""
        if not self.running or self.is_paused:
            return None
        return view_of(self.place.client_port, timeout_s=timeout_s)

    def _command(self, properties: Path) -> tuple[list[str], dict[str, str], Path]:
        if self.kind is Kind.KAFKA:
            java, *words = kafka_command(CLUSTER_KAFKA, self.heap, self.java_options, properties)
            words = [java, "-Djava.net.preferIPv4Stack=true", OLD_LOGGING, *words]
            return words, dict(os.environ), self.place.directory
        installation = under_test() if self.command is None else CHECKOUT
        if self.command is None:
            words = [*installation.broker(), str(properties)]
        else:
            words = [installation.python, *self.command, str(properties)]
        inherited = installation.process_environment()
        environment = {**inherited, "PYTHONUNBUFFERED": "1", **self.environment}
        return words, environment, installation.directory
