"""The tables of keys equal Apache Kafka's: names, types, defaults, importance, synonyms."""

import re
from pathlib import Path

import pytest

from config.broker_keys import BROKER_KEYS
from config.definition import ConfigTable, UpdateMode, format_value
from config.topic_keys import TOPIC_KEYS
from tests.support.kafka_jars import java

pytestmark = pytest.mark.conformance

REQUIRED_THERE = {"node.id", "process.roles", "controller.listener.names"}
OTHER_HERE = {"internal.segment.bytes"}
"""A setting for Kafka's own tests; here `segment.bytes` itself may be small."""
NOT_IN_KAFKAS_TABLE = {
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
"""Keys that can be set dynamically only, not in server.properties."""


SMALL_SEGMENTS = ("[14,...]", "[1048576,...]")
OTHER_RANGES = {
    "segment.bytes": SMALL_SEGMENTS,
    "log.segment.bytes": SMALL_SEGMENTS,
    "node.id": ("", "[0,...]"),
    "offsets.topic.compression.codec": ("[0,...,4]", ""),
}
"""Key to its value (here, in Kafka); docs/differences.md has the reasons."""
RANGE = re.compile(r"\[[-0-9.]*,?\.\.\.,?[-0-9.]*\]")


@pytest.fixture(scope="module")
def kafka() -> list[list[str]]:
    source = Path(__file__).with_name("ConfigDump.java")
    return [line.split("\t") for line in java(str(source)).stdout.splitlines() if "\t" in line]


def compare(table: ConfigTable, rows: list[list[str]]) -> list[str]:
    differences = []
    for name, kind, default, importance, _ in rows:
        key = table.get(name)
        if key is None:
            if name not in OTHER_HERE:
                differences.append(f"{name} is missing")
            continue
        ours = [key.type.name, format_value(key.default), key.importance.name]
        theirs = [kind, default, importance]
        if name in REQUIRED_THERE:
            ours[1] = theirs[1]
        if name == "listener.security.protocol.map":
            ours[1], theirs[1] = (",".join(sorted(v.split(","))) for v in (ours[1], theirs[1]))
        if ours != theirs:
            differences.append(f"{name}: {ours} here, {theirs} there")
    return differences


def ranges(table: ConfigTable, rows: list[list[str]]) -> dict[str, tuple[str, str]]:
    """Return (here, in Kafka) for each key whose bounds differ."""
    found = {}
    for name, *_, theirs in rows:
        key = table.get(name)
        if key is None:
            continue
        text = key.validator.text if key.validator else ""
        ours = text if RANGE.fullmatch(text) else ""
        if ours != theirs:
            found[name] = (ours, theirs)
    return found


def test_broker_keys(kafka: list[list[str]]) -> None:
    assert compare(BROKER_KEYS, [row[1:] for row in kafka if row[0] == "broker"]) == []


def test_topic_keys_and_their_synonyms(kafka: list[list[str]]) -> None:
    assert compare(TOPIC_KEYS, [row[1:] for row in kafka if row[0] == "topic"]) == []
    for _, name, synonyms in (row for row in kafka if row[0] == "synonyms"):
        assert TOPIC_KEYS[name].synonyms == tuple(synonyms.split(",")), name


def test_update_modes(kafka: list[list[str]]) -> None:
    theirs = {row[1]: row[2] for row in kafka if row[0] == "mode"}
    for name in NOT_IN_KAFKAS_TABLE:
        theirs.pop(name, None)
    ours = {
        key.name: key.dynamic.value
        for key in BROKER_KEYS
        if key.dynamic is not UpdateMode.READ_ONLY
    }
    assert ours == theirs


def test_ranges(kafka: list[list[str]]) -> None:
    """Including those of KIP-1030."""
    found = {
        **ranges(BROKER_KEYS, [row[1:] for row in kafka if row[0] == "broker"]),
        **ranges(TOPIC_KEYS, [row[1:] for row in kafka if row[0] == "topic"]),
    }
    assert found == OTHER_RANGES
