"""A real Apache Kafka broker (KRaft, one node) on loopback: the oracle beside this broker."""

import contextlib
import socket
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.kafka_jars import KAFKA_VERSION, java, kafka_command
from tests.support.ports import free_port
from tests.support.server_process import ServerProcess

START_TIMEOUT_S = 60


class ApacheKafka(ServerProcess):
    """Starts, stops and kills one Apache Kafka process; its log directory stays in `directory`."""

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        version: str = KAFKA_VERSION,
        heap: str = "1g",
        java_options: Sequence[str] = ("-XX:+UseG1GC",),
    ) -> None:
        super().__init__(directory / "kafka.out")
        self.directory = directory
        self.version = version
        self.heap = heap
        self.java_options = tuple(java_options)
        self.port = free_port()
        self.controller_port = free_port()
        self.log_dir = directory / "kafka-logs"
        self.properties = directory / "kafka.properties"
        self.settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.log_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **(overrides or {}),
        }

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> "ApacheKafka":
        """Format the directory on first use, start the broker, wait until it answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.properties.write_text("".join(f"{k}={v}\n" for k, v in self.settings.items()))
        if not (self.log_dir / "meta.properties").exists():
            cluster = uuid.uuid4().hex[:22]
            java(
                "kafka.tools.StorageTool",
                *("format", "--ignore-formatted", "-t", cluster, "-c", str(self.properties)),
                version=self.version,
            )
        # Measurements of speed have other options than short-lived processes.
        self.launch(kafka_command(self.version, self.heap, self.java_options, self.properties))
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            self.check()
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), 1) as s,
            ):
                # ApiVersions v0, which the broker answers only once it serves.
                s.settimeout(2)
                s.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff".replace(" ", "")))
                if s.recv(4):
                    return self
            time.sleep(0.1)
        raise AssertionError(f"Apache Kafka did not start: {self.output()}")
