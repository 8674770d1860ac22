"""A worker of Kafka Connect's distributed mode, and its REST interface."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.ecosystem.jars import jars
from tests.support.ecosystem.processes import ProgramProcess
from tests.support.kafka_jars import LOGGING, SHORT_LIVED
from tests.support.ports import free_port

START_TIMEOUT_S = 60


class ConnectWorker(ProgramProcess):
    """One worker of the group `connect`, which has three topics in the broker."""

    def __init__(self, directory: Path, bootstrap: str, settings: Mapping[str, str]) -> None:
        self.port = free_port()
        text = "org.apache.kafka.connect.storage.StringConverter"
        self.settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "listeners": f"http://127.0.0.1:{self.port}",
            "key.converter": text,
            "value.converter": text,
            "offset.storage.topic": "connect-offsets",
            "config.storage.topic": "connect-configs",
            "status.storage.topic": "connect-status",
            "offset.storage.replication.factor": "1",
            "config.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "offset.storage.partitions": "2",
            "status.storage.partitions": "1",
            "offset.flush.interval.ms": "500",
            **settings,
        }
        directory.mkdir(parents=True, exist_ok=True)
        properties = directory / "worker.properties"
        properties.write_text("".join(f"{k}={v}\n" for k, v in self.settings.items()))
        super().__init__(
            directory,
            [
                *("java", "-Xmx512m", *SHORT_LIVED, *LOGGING, "-cp", jars("connect")),
                *("org.apache.kafka.connect.cli.ConnectDistributed", str(properties)),
            ],
            name="connect",
        )

    def wait_until_serving(self) -> None:
        """Wait until its herder is up and accepts connectors."""
        self.wait_until(lambda: self.get("/connectors") is not None, START_TIMEOUT_S, "REST")

    def put_connector(self, name: str, **config: str) -> None:
        """Create it, or change its config; underscores in names are dots."""
        own = {key.replace("_", "."): value for key, value in config.items()}

        def taken() -> bool:
            return self._call("PUT", f"/connectors/{name}/config", own) is not None

        self.wait_until(taken, START_TIMEOUT_S, f"the connector {name} is taken")

    def wait_until_running(self, *names: str) -> None:
        """Wait until the connectors and at least one task of each run."""

        def run() -> bool:
            for name in names:
                said = self.get(f"/connectors/{name}/status")
                if not said or not said["tasks"]:
                    return False
                states = [said["connector"]["state"], *(task["state"] for task in said["tasks"])]
                assert "FAILED" not in states, said
                if set(states) != {"RUNNING"}:
                    return False
            return True

        self.wait_until(run, START_TIMEOUT_S, f"{names} run")

    def get(self, path: str) -> Any:
        """Return the answer to GET; None if there is none yet."""
        return self._call("GET", path, None)

    def _call(self, method: str, path: str, body: object) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            # 409 while it rebalances, 404 until it has read its own writes, 500 after a timeout.
            assert error.code in (404, 409, 500, 503), error.read()
            return None
        except OSError:
            return None
