"""A standalone cluster of one master and two workers: a worker dies, and nothing is missing.

The commands are those of a wheel in a user's environment, beside modules of their own named as the
rooms are, and the executors import from there. All machines of this cluster see the same
directories, as with shared storage.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow.dataset
import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.built_wheel import build_wheel
from tests.support.installation import Installation, in_environment
from tests.support.spark_cluster import SparkCluster
from tests.support.topics import make_topic
from tests.support.users_environment import make_environment, pip

RECORDS = 40_000
PARTITIONS = 4
TIMEOUT_S = 300


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        make_topic(broker.bootstrap, "orders", partitions=PARTITIONS, segment_bytes="200000")
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap, "compression.type": "lz4", "linger.ms": 20}
        )
        for number in range(RECORDS):
            producer.produce("orders", f"{number}".encode(), f"key-{number % 999}".encode())
            if number % 5000 == 0:
                producer.flush(30)
        assert producer.flush(30) == 0
        yield broker


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A wheel, with what the extra brings."""
    directory = tmp_path_factory.mktemp("user")
    make_environment(directory / "environment")
    wheel = build_wheel(directory)
    pip(directory / "environment", "install", "--no-deps", "--no-index", str(wheel))
    return in_environment(directory / "environment")


def run_while(
    used: Installation,
    words: list[str],
    in_the_middle: Callable[[subprocess.Popen[str]], None],
) -> str:
    """Run a command, with something happening meanwhile; what it printed."""
    command = used.begin(
        [*used.tool(), "pipeline", *words], variables={"PYSPARK_PYTHON": used.python}
    )
    try:
        in_the_middle(command)
        printed, said = command.communicate(timeout=TIMEOUT_S)
    finally:
        command.kill()
    assert command.returncode == 0, said
    return printed


def wait_until(command: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    """Raises AssertionError when the command ended before."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if command.poll() is not None:
            raise AssertionError(f"it ended before a worker was killed: {command.communicate()}")
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_archive_is_whole_though_a_worker_dies(
    broker: BrokerProcess, cluster: SparkCluster, installed: Installation, tmp_path: Path
) -> None:
    lake = tmp_path / "orders"

    def kill_one(command: subprocess.Popen[str]) -> None:
        wait_until(command, lambda: any(lake.rglob("*.parquet")))
        assert cluster.runs_executor(0)
        cluster.kill_worker(0)

    run_while(
        installed,
        [
            *("archive", "orders", "--bootstrap-server", broker.bootstrap, "--to", str(lake)),
            *("--available-now", "--max-offsets", "8000", "--log-file", f"{tmp_path}/log"),
            *cluster.arguments,
        ],
        kill_one,
    )
    table: Any = pyarrow.dataset.dataset(lake, format="parquet").to_table(["value", "offset"])
    values = [int(value) for value in table["value"].to_pylist()]
    assert sorted(values) == list(range(RECORDS))
    cluster.start_worker(0)


def test_log_directories_are_read_whole_though_a_worker_dies(
    broker: BrokerProcess, cluster: SparkCluster, installed: Installation, tmp_path: Path
) -> None:
    """The direct reader: tasks in Python, on executors that see the directory."""

    def kill_one(command: subprocess.Popen[str]) -> None:
        wait_until(command, lambda: cluster.runs_python(1))
        cluster.kill_worker(1)

    printed = run_while(
        installed,
        [
            *("stats", "orders", "--log-dirs", str(broker.log_dir), "--json"),
            *("--log-file", f"{tmp_path}/log", *cluster.arguments),
        ],
        kill_one,
    )
    (topic,) = json.loads(printed)["topics"]
    assert sum(one["records"] for one in topic["partitions"]) == RECORDS
    assert [one["partition"] for one in topic["partitions"]] == list(range(PARTITIONS))
    assert topic["keys"]["distinct"] == 999
    assert topic["compaction"]["latest"] == 999
    assert sum(count for _, count, _ in topic["throughput"]) == RECORDS
    assert topic["log"]["file_bytes"] == sum(
        path.stat().st_size for path in broker.log_dir.glob("orders-*/*.log")
    )
