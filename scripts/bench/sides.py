"""The sides of a comparison: Apache Kafka, forms of this broker, other checkouts, and the floor.

A side is a name and the way to start it. `pure` and `compiled` are forms of one checkout, which
differ by an environment variable; `--tree NAME=PATH` adds another checkout, an environment in which
a wheel is installed, or an interpreter that has the dependencies and runs this checkout.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from floor import Floor
from load import refuse_errors

from protocol.api_keys import ApiKey
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.installation import CHECKOUT, Installation, in_environment, under_test
from tests.support.wire_client import WireClient

SETTINGS = {"group.initial.rebalance.delay.ms": "1000", "log.segment.delete.delay.ms": "1000"}
"""Settings of every broker. A deleted topic gives its memory back before the next is measured;
members that join a new group together are in its first generation together."""
PATIENCE_S = 120
PER_REQUEST = 500
"""Partitions that one request makes or deletes."""
KAFKA, FLOOR = "kafka", "floor"

Broker = BrokerProcess | ApacheKafka | Floor
Maker = Callable[[Path, Mapping[str, str]], Broker]


def ours(installation: Installation, **environment: str) -> Maker:
    """A form of this broker."""

    def make(directory: Path, settings: Mapping[str, str]) -> Broker:
        return BrokerProcess(
            directory, settings, installation=installation, environment=environment
        )

    return make


FORMS: dict[str, Maker] = {
    KAFKA: ApacheKafka,
    "compiled": ours(under_test()),
    "pure": ours(under_test(), PYKAFKALOG_PURE="1"),
}


@cache
def has_compiled() -> bool:
    """Whether this checkout is compiled, as `pykafkalog --version` says."""
    found = under_test()
    words = [*found.tool(), "--version"]
    told = subprocess.run(words, cwd=found.directory, capture_output=True, text=True, check=True)
    return "compiled" in told.stdout


def another(path: Path) -> Maker:
    """The form of a broker that `--tree` names."""
    path = path.absolute()
    if path.is_file():
        return ours(replace(CHECKOUT, python=str(path)))
    if not (path / "broker").is_dir():
        return ours(in_environment(path))
    own = path / ".venv/bin/python"
    python = str(own) if own.exists() else CHECKOUT.python
    return ours(replace(CHECKOUT, python=python, directory=path))


class Side:
    """A broker that runs, its topics and its processor time."""

    def __init__(self, name: str, make: Maker, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.make = make
        self.broker = make(directory / "running", SETTINGS)
        self._made = 0

    @property
    def port(self) -> int:
        return self.broker.port

    @property
    def pid(self) -> int:
        return self.broker.pid

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @contextmanager
    def other(self, prepare: Callable[["Side"], object] = lambda side: None) -> Iterator["Side"]:
        """Another broker of the same form, on an empty directory, for its life from the start.

        `prepare` may change its settings before that.
        """
        self._made += 1
        made = Side(self.name, self.make, self.directory / f"other-{self._made}")
        prepare(made)
        made.broker.start()
        try:
            yield made
        finally:
            made.broker.kill()

    def cpu_seconds(self) -> float:
        """User and system time of the broker so far."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    def resident_mb(self) -> float:
        """Resident memory of the broker."""
        return float(psutil.Process(self.pid).memory_info().rss) / 1e6

    def call(self, key: ApiKey, version: int, request: Any) -> Any:
        """Send a request on a connection of its own. Raises RuntimeError for errors."""
        with WireClient(self.port, timeout_s=PATIENCE_S) as client:
            response = client.call(key, version, request)
        refuse_errors(response)
        return response

    @contextmanager
    def topics(self, count: int, partitions: int) -> Iterator[list[str]]:
        """Topics that are there, and gone from the disk afterwards."""
        if isinstance(self.broker, Floor):
            with self.broker.emptied():
                yield ["none"] * count
            return
        self._made += 1
        prefix = f"bench-{self._made:06}-"
        names = [f"{prefix}{number:04}" for number in range(count)]
        each = max(PER_REQUEST // partitions, 1)
        for some in (names[at : at + each] for at in range(0, count, each)):
            self.call(ApiKey.CREATE_TOPICS, 5, creation(some, partitions))
        self.wait_for_partitions(prefix, count * partitions)
        try:
            yield names
        except Exception:
            with suppress(OSError, RuntimeError):  # the earlier error is raised, not this one
                self._delete(names, each)
            raise
        self._delete(names, each)
        self.wait_for_partitions(prefix, 0)

    def _delete(self, names: Sequence[str], each: int) -> None:
        for some in (names[at : at + each] for at in range(0, len(names), each)):
            request = DeleteTopicsRequest(topic_names=some, timeout_ms=PATIENCE_S * 1000)
            self.call(ApiKey.DELETE_TOPICS, 5, request)

    def wait_for_partitions(self, prefix: str, count: int) -> None:
        """Wait until so many are on the disk, with those that are being deleted."""
        # A deleted topic is there until its files are; Kafka leads a partition soon after.
        assert not isinstance(self.broker, Floor)
        deadline = time.monotonic() + PATIENCE_S
        log_dir = self.broker.log_dir
        while (found := sum(name.startswith(prefix) for name in os.listdir(log_dir))) != count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{found} partitions, not {count}")
            time.sleep(0.02)
        time.sleep(0.1)


def creation(names: Sequence[str], partitions: int) -> CreateTopicsRequest:
    """The request that makes these topics."""
    topics = [
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=PATIENCE_S * 1000)
