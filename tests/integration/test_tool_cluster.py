"""`pykafkalog cluster` against a real broker."""

import json
import os
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.command_in_process import in_process


def test_brokers_counts_features_and_health(bootstrap: str, topic: str) -> None:
    assert in_process("topics", "-b", bootstrap, "--create", topic).returncode == 0
    done = in_process("cluster", "-b", bootstrap, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (broker,) = told["brokers"]
    assert (broker["broker_id"], broker["is_controller"]) == (1, True)
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert broker["leads"] == broker["replicas"] == told["partitions"] > 0
    assert told["topics"] >= 1
    assert told["healthy"]
    assert told["problems"] == []
    levels = {feature["name"]: feature["finalized"] for feature in told["features"]}
    assert levels["transaction.version"] == 2
    shown = in_process("cluster", "-b", bootstrap).stdout
    assert "healthy: every partition has a leader" in shown


def test_api_versions(bootstrap: str) -> None:
    done = in_process("cluster", "-b", bootstrap, "--api-versions", "--json")
    ((broker, apis),) = ((each["broker"], each["apis"]) for each in json.loads(done.stdout))
    assert broker == 1
    by_name = {api["name"]: api for api in apis}
    assert by_name["Metadata"]["max_version"] >= 12
    assert not any(name.startswith("API ") for name in by_name)
    lines = in_process("cluster", "-b", bootstrap, "--api-versions").stdout.splitlines()
    assert len(lines) == len(apis) + 1


def test_a_sound_broker_is_healthy(bootstrap: str) -> None:
    assert in_process("cluster", "-b", bootstrap, "--health").returncode == 0


@pytest.mark.skipif(
    os.environ.get("PYKAFKALOG_TEST_BROKER") == "apache", reason="breaks this project's broker"
)
def test_a_directory_that_failed_is_unhealthy_and_named(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    overrides = {"log.dirs": f"{first},{second}", "num.partitions": "2"}
    broker = BrokerProcess(tmp_path / "broker", overrides)
    with broker:
        done = in_process("topics", "-b", broker.bootstrap, "--create", "orders")
        assert done.returncode == 0, done.stderr
    moved = second / "orders-1" if (second / "orders-1").exists() else second / "orders-0"
    for file in sorted(second.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    second.rmdir()
    second.write_text("a file where a directory was")
    with broker:
        done = in_process("cluster", "-b", broker.bootstrap, "--health", "--json")
        assert done.returncode == 1, done
        told = json.loads(done.stdout)
        assert not told["healthy"]
        kinds = {(each["problem"], each["where"]) for each in told["problems"]}
        assert ("log directory offline", str(second)) in kinds
        place = moved.name.replace("-", ":")
        assert ("partition without a leader", place) in kinds
        shown = in_process("cluster", "-b", broker.bootstrap, "--health")
        assert shown.returncode == 1
        assert "mend the disk and restart the broker" in shown.stdout
