"""`pykafkalog configs` against a real broker."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.command_in_process import Done, in_process

APACHE = os.environ.get("PYKAFKALOG_TEST_BROKER") == "apache"


def run(bootstrap: str, *words: str) -> Done:
    return in_process("configs", "-b", bootstrap, *words)


def told(bootstrap: str, *words: str) -> dict[str, Any]:
    done = run(bootstrap, *words, "--json")
    assert done.returncode == 0, done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)}


def test_a_topics_settings(bootstrap: str, topic: str) -> None:
    assert in_process("topics", "-b", bootstrap, "--create", topic).returncode == 0
    assert told(bootstrap, "--topic", topic) == {}
    assert told(bootstrap, "--topic", topic, "--all")["segment.bytes"]["default"] == "1073741824"
    assert run(bootstrap, "--topic", topic, "--add", "retention.ms=5", "--dry-run").returncode == 0
    assert told(bootstrap, "--topic", topic) == {}
    changed = told(bootstrap, "--topic", topic, "--add", "retention.ms=5", "preallocate=true")
    assert {name: each["value"] for name, each in changed.items()} == {
        "retention.ms": "5",
        "preallocate": "true",
    }
    assert changed["retention.ms"]["source"] == "topic"
    left = told(bootstrap, "--topic", topic, "--delete", "retention.ms")
    assert list(left) == ["preallocate"]
    shown = run(bootstrap, "--topic", topic, "--explain", "retention.ms").stdout
    assert shown.startswith("retention.ms=604800000\n")
    for words, said in (
        (("--topic", f"{topic}-missing"), "there is no topic"),
        (("--topic", topic, "--add", "retention.ms=x"), "Invalid value x"),
        (("--topic", topic, "--explain", "nonsense"), "there is no setting nonsense"),
        (("--broker", "77"), "there is no broker 77; known: 1"),
        (("--broker", "1", "--dry-run"), "--dry-run goes with --add or --delete"),
    ):
        refused = run(bootstrap, *words)
        assert refused.returncode == 1
        assert said in refused.stderr


def test_a_brokers_and_the_clusters_settings(bootstrap: str) -> None:
    changed = told(bootstrap, "--broker", "1", "--changed")
    assert changed["group.initial.rebalance.delay.ms"]["value"] == "100"
    assert changed["group.initial.rebalance.delay.ms"]["source"] == "static"
    name = "log.cleaner.backoff.ms"
    before = told(bootstrap, "--cluster-default")
    assert told(bootstrap, "--cluster-default", "--add", f"{name}=14999")[name]["value"] == "14999"
    told(bootstrap, "--broker", "1", "--add", f"{name}=14998")
    both = told(bootstrap, "--broker", "1", "--changed")[name]
    assert (both["value"], both["default"]) == ("14998", "15000")
    places = [(place["where"], place["value"]) for place in both["set_by"]]
    assert places == [
        ("broker, dynamic", "14998"),
        ("cluster, dynamic", "14999"),
        ("default", "15000"),
    ]
    assert name not in told(bootstrap, "--cluster-default", "--delete", name)
    told(bootstrap, "--broker", "1", "--delete", name)
    assert told(bootstrap, "--cluster-default") == before


def test_levels_of_loggers(bootstrap: str) -> None:
    levels = json.loads(run(bootstrap, "--loggers", "1", "--json").stdout)
    name = next(name for name, level in levels.items() if level in ("INFO", "WARN"))
    done = run(bootstrap, "--loggers", "1", "--add", f"{name}=ERROR", "--json")
    assert json.loads(done.stdout) == {name: "ERROR"}
    assert run(bootstrap, "--loggers", "1", "--delete", name).returncode == 0
    refused = run(bootstrap, "--loggers", "1", "--add", f"{name}=LOUD")
    assert refused.returncode == 1
    assert "LOUD" in refused.stderr


@pytest.mark.skipif(APACHE, reason="its brokers do not tell what has no effect")
def test_what_has_no_effect_is_told_by_the_broker(tmp_path: Path) -> None:
    overrides = {
        "alter.log.dirs.replication.quota.window.num": "5",
        "my.plugin.class": "x",
        "num.partitions": "3",
    }
    with BrokerProcess(tmp_path, overrides) as broker:
        where = broker.bootstrap
        inert = told(where, "--broker", "1", "--no-effect")
        assert set(inert) == {"alter.log.dirs.replication.quota.window.num", "my.plugin.class"}
        assert not told(where, "--broker", "1", "--changed")["num.partitions"]["no_effect"]
        assert in_process("topics", "-b", where, "--create", "orders").returncode == 0
        done = run(where, "--topic", "orders", "--add", "remote.log.copy.disable=true")
        assert done.stderr == ("remote.log.copy.disable is set, and has no effect in this broker\n")
        assert done.stdout.splitlines()[1].split()[-1] == "none"
