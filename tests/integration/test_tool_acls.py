"""`pykafkalog acls` and Kafka's own kafka-acls against a broker that has an authorizer.

PYKAFKALOG_TEST_BROKER=apache runs the same on Apache Kafka.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_in_process import BrokerTool
from tests.support.either_broker import ON_APACHE, either_broker
from tests.support.kafka_jars import java

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:root",
}
KAFKA_ACLS = "org.apache.kafka.tools.AclCommand"


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with either_broker(tmp_path_factory.mktemp("acls"), SETTINGS) as broker:
        yield broker.bootstrap


@pytest.fixture
def acls(bootstrap: str) -> BrokerTool:
    return BrokerTool("acls", bootstrap)


def told(acls: BrokerTool, *words: str) -> list[tuple[str, ...]]:
    """The rules that a command prints: name, pattern, permission, principal, operation, host."""
    return [tuple(rule.values())[1:] for rule in acls.parsed(*words)]


def kafka_acls(bootstrap: str, *words: str) -> str:
    return java(KAFKA_ACLS, "--bootstrap-server", bootstrap, *words).stdout


def test_rules_are_added_listed_and_removed(acls: BrokerTool, topic: str) -> None:
    def rule(name: str, pattern: str, who: str, op: str, how: str = "ALLOW") -> tuple[str, ...]:
        return name, pattern, who, "*", op, how

    by_name = rule(topic, "LITERAL", "User:alice", "READ")
    by_prefix = rule(topic[:-1], "PREFIXED", "User:bob", "ALL", "DENY")
    add = ("--add", "--operation")
    dry = told(acls, *add, "read", "--allow", "alice", "--topic", topic, "--dry-run")
    assert dry == [by_name]
    assert told(acls, "--topic", topic) == []
    made = told(acls, *add, "read", "--allow", "alice", "--topic", topic)
    assert made == [by_name]
    assert told(acls, *add, "all", "--deny", "bob", "--topic", topic[:-1], "--prefixed") == [
        by_prefix
    ]
    assert told(acls, "--topic", topic) == sorted([by_name, by_prefix])
    assert told(acls, "--topic", topic, "--literal") == [by_name]
    assert told(acls, "--topic", topic[:-1], "--prefixed") == [by_prefix]
    assert told(acls, "--principal", "bob") == [by_prefix]
    table = acls("--principal", "bob").splitlines()
    assert table[0].split()[:4] == ["resource", "name", "pattern", "permission"]
    assert table[1].split()[:4] == ["topic", topic[:-1], "prefixed", "deny"]
    remove = ("--remove", "--topic", topic)
    assert told(acls, *remove, "--dry-run") == [by_name]
    assert told(acls, *remove, "--operation", "write") == []
    assert told(acls, *remove) == [by_name]
    assert told(acls, "--topic", topic) == [by_prefix]
    assert told(acls, "--remove", "--principal", "bob") == [by_prefix]
    assert acls("--topic", topic) == "There are no such rules.\n"


def test_incomplete_rules_are_refused(acls: BrokerTool, topic: str) -> None:
    for words, said in (
        (("--remove",), "--remove needs to be told what"),
        (("--add", "--allow", "a", "--topic", topic), "--add needs --operation"),
        (
            ("--add", "--allow", "a", "--topic", topic, "--operation", "read", "--host", "1.2/99"),
            "1.2/99",
        ),
    ):
        assert said in acls.refusal(*words)


def test_an_explanation_names_the_rule_that_decides(acls: BrokerTool, topic: str) -> None:
    add = ("--add", "--topic", topic, "--operation")
    acls(*add, "read", "--allow", "*")
    acls(*add, "all", "--deny", "eve", "--host", "10.0.0.0/8")
    ask = ("--explain", "--topic", topic, "--operation", "describe", "--principal")
    allowed = acls(*ask, "eve", "--host", "192.168.0.1")
    assert f"User:eve from 192.168.0.1 may describe topic {topic}\n" in allowed
    denied = acls.run(*ask, "eve", "--host", "10.9.9.9")
    assert denied.returncode == 1
    lines = [line.split()[:1] for line in denied.stdout.splitlines()]
    assert lines[-2:] == [["decides"], ["outweighed"]]
    assert ("super user" in acls(*ask, "root")) is not ON_APACHE
    told = acls.run(*ask[:3], "--operation", "write", "--principal", "x", "--json")
    assert told.returncode == 1
    assert json.loads(told.stdout)["because"] == "DefaultDeny"
    assert json.loads(told.stdout)["sure"] is not ON_APACHE


def test_kafka_acls(bootstrap: str, acls: BrokerTool, topic: str, group: str) -> None:
    new = ("--add", "--allow-principal", "User:kim")
    out = kafka_acls(bootstrap, *new, "--producer", "--topic", topic, "--transactional-id", "t")
    assert f"Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name={topic}" in out
    consumer = ("--consumer", "--topic", topic, "--group", group, "--allow-host", "10.0.0.1")
    kafka_acls(bootstrap, *new, *consumer)
    kafka_acls(
        bootstrap,
        *("--add", "--deny-principal", "User:*", "--operation", "Delete", "--topic", topic[:3]),
        *("--resource-pattern-type", "prefixed", "--deny-host", "10.0.0.0/8"),
    )
    kafka_acls(bootstrap, *new, "--operation", "Alter", "--cluster")
    listed = kafka_acls(bootstrap, "--list", "--topic", topic, "--resource-pattern-type", "match")
    for wanted in (
        "(principal=User:kim, host=*, operation=WRITE, permissionType=ALLOW)",
        "(principal=User:kim, host=*, operation=CREATE, permissionType=ALLOW)",
        "(principal=User:kim, host=10.0.0.1, operation=READ, permissionType=ALLOW)",
        f"ResourcePattern(resourceType=TOPIC, name={topic[:3]}, patternType=PREFIXED)",
        "(principal=User:*, host=10.0.0.0/8, operation=DELETE, permissionType=DENY)",
    ):
        assert wanted in listed, listed
    mine = kafka_acls(bootstrap, "--list", "--principal", "User:kim")
    for kind in ("TOPIC", "GROUP", "TRANSACTIONAL_ID", "CLUSTER"):
        assert f"resourceType={kind}" in mine
    assert "User:*" not in mine
    kafka_acls(bootstrap, "--remove", "--force", "--topic", topic)
    kafka_acls(bootstrap, "--remove", "--force", "--cluster")
    left = {rule[0] for rule in told(acls, "--principal", "kim")}
    assert left == {group, "t"}
    kafka_acls(bootstrap, "--remove", "--force", "--group", group, "--transactional-id", "t")
    assert told(acls, "--principal", "kim") == []


def test_without_an_authorizer(tmp_path: Path) -> None:
    with either_broker(tmp_path) as broker:
        refused = BrokerTool("acls", broker.bootstrap).refusal()
        assert "no authorizer, so everybody may do everything" in refused
