"""`pykafkalog configs` against a real broker."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.command_in_process import BrokerTool
from tests.support.either_broker import ON_APACHE
from tests.support.topics import make_topic


@pytest.fixture
def configs(bootstrap: str) -> BrokerTool:
    return BrokerTool("configs", bootstrap)


def told(configs: BrokerTool, *words: str) -> dict[str, Any]:
    return {each["name"]: each for each in configs.parsed(*words)}


def test_a_topics_settings(configs: BrokerTool, topic: str) -> None:
    make_topic(configs.bootstrap, topic)
    assert told(configs, "--topic", topic) == {}
    assert told(configs, "--topic", topic, "--all")["segment.bytes"]["default"] == "1073741824"
    configs("--topic", topic, "--add", "retention.ms=5", "--dry-run")
    assert told(configs, "--topic", topic) == {}
    changed = told(configs, "--topic", topic, "--add", "retention.ms=5", "preallocate=true")
    assert {name: each["value"] for name, each in changed.items()} == {
        "retention.ms": "5",
        "preallocate": "true",
    }
    assert changed["retention.ms"]["source"] == "topic"
    left = told(configs, "--topic", topic, "--delete", "retention.ms")
    assert list(left) == ["preallocate"]
    shown = configs("--topic", topic, "--explain", "retention.ms")
    assert shown.startswith("retention.ms=604800000\n")
    for words, said in (
        (("--topic", f"{topic}-missing"), "there is no topic"),
        (("--topic", topic, "--add", "retention.ms=x"), "Invalid value x"),
        (("--topic", topic, "--explain", "nonsense"), "there is no setting nonsense"),
        (("--broker", "77"), "there is no broker 77; known: 1"),
        (("--broker", "1", "--dry-run"), "--dry-run goes with --add or --delete"),
        (("--broker", "1", "--add", "log.dirs=/x"), "Cannot update these configs"),
    ):
        assert said in configs.refusal(*words)


def test_a_brokers_and_the_clusters_settings(configs: BrokerTool) -> None:
    changed = told(configs, "--broker", "1", "--changed")
    assert changed["group.initial.rebalance.delay.ms"]["value"] == "100"
    assert changed["group.initial.rebalance.delay.ms"]["source"] == "static"
    name = "log.cleaner.backoff.ms"
    before = told(configs, "--cluster-default")
    assert told(configs, "--cluster-default", "--add", f"{name}=14999")[name]["value"] == "14999"
    told(configs, "--broker", "1", "--add", f"{name}=14998")
    both = told(configs, "--broker", "1", "--changed")[name]
    assert (both["value"], both["default"]) == ("14998", "15000")
    places = [(place["where"], place["value"]) for place in both["set_by"]]
    assert places == [
        ("broker, dynamic", "14998"),
        ("cluster, dynamic", "14999"),
        ("default", "15000"),
    ]
    assert name not in told(configs, "--cluster-default", "--delete", name)
    told(configs, "--broker", "1", "--delete", name)
    assert told(configs, "--cluster-default") == before


def test_levels_of_loggers(configs: BrokerTool) -> None:
    levels = configs.parsed("--loggers", "1")
    name = next(name for name, level in levels.items() if level in ("INFO", "WARN"))
    assert configs.parsed("--loggers", "1", "--add", f"{name}=ERROR") == {name: "ERROR"}
    configs("--loggers", "1", "--delete", name)
    assert "LOUD" in configs.refusal("--loggers", "1", "--add", f"{name}=LOUD")


@pytest.mark.skipif(ON_APACHE, reason="its brokers do not tell what has no effect")
def test_settings_without_effect_are_marked(tmp_path: Path) -> None:
    overrides = {
        "alter.log.dirs.replication.quota.window.num": "5",
        "my.plugin.class": "x",
        "num.partitions": "3",
    }
    with BrokerProcess(tmp_path, overrides) as broker:
        configs = BrokerTool("configs", broker.bootstrap)
        inert = told(configs, "--broker", "1", "--no-effect")
        assert set(inert) == {"alter.log.dirs.replication.quota.window.num", "my.plugin.class"}
        assert not told(configs, "--broker", "1", "--changed")["num.partitions"]["no_effect"]
        make_topic(broker.bootstrap, "orders")
        done = configs.run("--topic", "orders", "--add", "remote.log.copy.disable=true")
        assert done.stderr == ("remote.log.copy.disable is set, and has no effect in this broker\n")
        assert done.stdout.splitlines()[1].split()[-1] == "none"
