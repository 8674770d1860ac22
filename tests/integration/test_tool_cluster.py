"""`pykafkalog cluster` against a real broker."""

import json
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.command_in_process import BrokerTool, in_process
from tests.support.either_broker import ON_APACHE
from tests.support.topics import make_topic


def test_brokers_counts_features_and_health(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    cluster = BrokerTool("cluster", bootstrap)
    told = cluster.parsed()
    (broker,) = told["brokers"]
    assert (broker["broker_id"], broker["is_controller"]) == (1, True)
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert broker["leads"] == broker["replicas"] == told["partitions"] > 0
    assert told["topics"] >= 1
    assert told["healthy"]
    assert told["problems"] == []
    levels = {feature["name"]: feature["finalized"] for feature in told["features"]}
    assert levels["transaction.version"] == 2
    assert "healthy: every partition has a leader" in cluster("--health")


def test_api_versions(bootstrap: str) -> None:
    cluster = BrokerTool("cluster", bootstrap)
    told = cluster.parsed("--api-versions")
    ((broker, apis),) = ((each["broker"], each["apis"]) for each in told)
    assert broker == 1
    by_name = {api["name"]: api for api in apis}
    assert by_name["Metadata"]["max_version"] >= 12
    assert not any(name.startswith("API ") for name in by_name)
    assert len(cluster("--api-versions").splitlines()) == len(apis) + 1


@pytest.mark.skipif(ON_APACHE, reason="breaks this project's broker")
def test_a_directory_that_failed_is_unhealthy_and_named(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    broker = BrokerProcess(tmp_path / "broker", {"log.dirs": f"{first},{second}"})
    with broker:
        make_topic(broker.bootstrap, "orders", partitions=2)
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
