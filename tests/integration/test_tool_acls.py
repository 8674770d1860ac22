"""`pykafkalog acls` and Kafka's own kafka-acls against a broker that has an authorizer.

With PYKAFKALOG_TEST_BROKER=apache Apache Kafka is asked.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.command_in_process import Done, in_process
from tests.support.kafka_jars import java

ON_APACHE = os.environ.get("PYKAFKALOG_TEST_BROKER") == "apache"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:root",
}
KAFKA_ACLS = "org.apache.kafka.tools.AclCommand"


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("acls")
    with (ApacheKafka if ON_APACHE else BrokerProcess)(directory, SETTINGS) as broker:
        yield broker.bootstrap


def run(bootstrap: str, *words: str) -> Done:
    return in_process("acls", "-b", bootstrap, *words)


def told(bootstrap: str, *words: str) -> list[tuple[str, ...]]:
    """The rules that a command prints: name, pattern, permission, principal, operation, host."""
    done = run(bootstrap, *words, "--json")
    assert done.returncode == 0, done.stderr
    return [tuple(rule.values())[1:] for rule in json.loads(done.stdout)]


def kafka_acls(bootstrap: str, *words: str) -> str:
    return java(KAFKA_ACLS, "--bootstrap-server", bootstrap, *words).stdout


def test_rules_are_added_listed_and_removed(bootstrap: str, topic: str) -> None:
    def rule(name: str, pattern: str, who: str, op: str, how: str = "ALLOW") -> tuple[str, ...]:
        return name, pattern, who, "*", op, how

    by_name = rule(topic, "LITERAL", "User:alice", "READ")
    by_prefix = rule(topic[:-1], "PREFIXED", "User:bob", "ALL", "DENY")
    add = ("--add", "--operation")
    dry = told(bootstrap, *add, "read", "--allow", "alice", "--topic", topic, "--dry-run")
    assert dry == [by_name]
    assert told(bootstrap, "--topic", topic) == []
    made = told(bootstrap, *add, "read", "--allow", "alice", "--topic", topic)
    assert made == [by_name]
    assert told(bootstrap, *add, "all", "--deny", "bob", "--topic", topic[:-1], "--prefixed") == [
        by_prefix
    ]
    assert told(bootstrap, "--topic", topic) == sorted([by_name, by_prefix])
    assert told(bootstrap, "--topic", topic, "--literal") == [by_name]
    assert told(bootstrap, "--topic", topic[:-1], "--prefixed") == [by_prefix]
    assert told(bootstrap, "--principal", "bob") == [by_prefix]
    table = run(bootstrap, "--principal", "bob").stdout.splitlines()
    assert table[0].split()[:4] == ["resource", "name", "pattern", "permission"]
    assert table[1].split()[:4] == ["topic", topic[:-1], "prefixed", "deny"]
    remove = ("--remove", "--topic", topic)
    assert told(bootstrap, *remove, "--dry-run") == [by_name]
    assert told(bootstrap, *remove, "--operation", "write") == []
    assert told(bootstrap, *remove) == [by_name]
    assert told(bootstrap, "--topic", topic) == [by_prefix]
    assert told(bootstrap, "--remove", "--principal", "bob") == [by_prefix]
    assert run(bootstrap, "--topic", topic).stdout == "There are no such rules.\n"


def test_what_is_refused(bootstrap: str, topic: str) -> None:
    for words, said in (
        (("--remove",), "--remove needs to be told what"),
        (("--add", "--allow", "a", "--topic", topic), "--add needs --operation"),
        (
            ("--add", "--allow", "a", "--topic", topic, "--operation", "read", "--host", "1.2/99"),
            "1.2/99",
        ),
    ):
        refused = run(bootstrap, *words)
        assert refused.returncode == 1
        assert said in refused.stderr


def test_who_decides(bootstrap: str, topic: str) -> None:
    add = ("--add", "--topic", topic, "--operation")
    assert run(bootstrap, *add, "read", "--allow", "*").returncode == 0
    assert run(bootstrap, *add, "all", "--deny", "eve", "--host", "10.0.0.0/8").returncode == 0
    ask = ("--explain", "--topic", topic, "--operation", "describe", "--principal")
    allowed = run(bootstrap, *ask, "eve", "--host", "192.168.0.1")
    assert allowed.returncode == 0
    assert f"User:eve from 192.168.0.1 may describe topic {topic}\n" in allowed.stdout
    denied = run(bootstrap, *ask, "eve", "--host", "10.9.9.9")
    assert denied.returncode == 1
    lines = [line.split()[:1] for line in denied.stdout.splitlines()]
    assert lines[-2:] == [["decides"], ["outweighed"]]
    above = run(bootstrap, *ask, "root")
    assert above.returncode == 0
    assert ("super user" in above.stdout) is not ON_APACHE
    told = run(bootstrap, *ask[:3], "--operation", "write", "--principal", "x", "--json")
    assert told.returncode == 1
    assert json.loads(told.stdout)["because"] == "DefaultDeny"
    assert json.loads(told.stdout)["sure"] is not ON_APACHE


def test_kafka_acls(bootstrap: str, topic: str, group: str) -> None:
    new = ("--add", "--allow-principal", "User:kim")
    out = kafka_acls(bootstrap, *new, "--producer", "--topic", topic, "--transactional-id", "t")
    assert f"Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name={topic}" in out
    kafka_acls(
        bootstrap,
        *new,
        "--consumer",
        "--topic",
        topic,
        "--group",
        group,
        "--allow-host",
        "10.0.0.1",
    )
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
    left = {rule[0] for rule in told(bootstrap, "--principal", "kim")}
    assert left == {group, "t"}
    kafka_acls(bootstrap, "--remove", "--force", "--group", group, "--transactional-id", "t")
    assert told(bootstrap, "--principal", "kim") == []


def test_without_an_authorizer(tmp_path: Path) -> None:
    with (ApacheKafka if ON_APACHE else BrokerProcess)(tmp_path) as broker:
        refused = run(broker.bootstrap)
        assert refused.returncode == 1
        assert "no authorizer, so everybody may do everything" in refused.stderr
