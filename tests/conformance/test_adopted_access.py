"""Access rules, users and quotas of a Kafka in KRaft mode are here after an adoption.

Some of them stand in the metadata log and some in the snapshot that a clean stop leaves behind.
"""

import hashlib
import hmac
import json
from base64 import b64decode
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker.cluster.tree_values import decode_config
from storage.waits import at_once
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.command_in_process import in_process
from tests.support.command_line import pykafkalog
from tests.support.kafka_jars import SHORT_LIVED, java
from tests.support.stores import open_store

pytestmark = pytest.mark.conformance

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
RULES = (
    ("--operation", "read", "--allow", "alice", "--topic", "orders"),
    ("--operation", "all", "--deny", "mallory", "--topic", "ord", "--prefixed"),
    ("--operation", "write", "--allow", "CN=b,O=c/d", "--host", "10.0.0.0/8", "--topic", "*"),
    ("--operation", "alter", "--allow", "ops", "--cluster"),
    ("--operation", "read", "--allow", "alice", "--group", "a/b%2Fc"),
)
PASSWORD = "alice's word"


def alter(bootstrap: str, entity: tuple[str, ...], change: str) -> None:
    java(
        *("kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap, "--alter"),
        *(*entity, "--add-config", change),
    )


ALICE = ("--entity-type", "users", "--entity-name", "alice")
ODD = ("--entity-type", "users", "--entity-name", "CN=b,O=c/d")
ANY_CLIENT = ("--entity-type", "clients", "--entity-default")
ANY_ADDRESS = ("--entity-type", "ips", "--entity-default")


def told(bootstrap: str) -> tuple[list[Any], list[Any]]:
    """The rules, and the quotas."""
    rules = in_process("acls", "-b", bootstrap, "--json")
    quotas = in_process("quotas", "-b", bootstrap, "--json")

    def in_order(text: str) -> list[Any]:
        return sorted(json.loads(text), key=partial(json.dumps, sort_keys=True))

    return in_order(rules.stdout), in_order(quotas.stdout)


def fill(kafka: ApacheKafka) -> None:
    for rule in RULES:
        done = in_process("acls", "-b", kafka.bootstrap, "--add", *rule)
        assert done.returncode == 0, done.stderr
    some = ("-b", kafka.bootstrap, "--topic", "gone")
    assert in_process("acls", "--add", "--operation", "read", "--allow", "bob", *some).stdout
    assert "bob" in in_process("acls", "--remove", *some).stdout
    alter(kafka.bootstrap, ALICE, f"SCRAM-SHA-256=[iterations=4097,password={PASSWORD}]")
    alter(kafka.bootstrap, ALICE, "producer_byte_rate=1024,request_percentage=12.5")
    alter(kafka.bootstrap, (*ODD, *ANY_CLIENT), "consumer_byte_rate=2048")
    alter(kafka.bootstrap, ANY_CLIENT, "controller_mutation_rate=0.5")
    alter(kafka.bootstrap, ANY_ADDRESS, "connection_creation_rate=7")


def test_s_acl_9_rules_users_and_quotas_come_along(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path / "kafka", SETTINGS, heap="512m", java_options=SHORT_LIVED) as kafka:
        fill(kafka)
        theirs = told(kafka.bootstrap)
        kafka.stop()
    assert [len(found) for found in theirs] == [len(RULES), 4]
    broker = BrokerProcess(tmp_path / "ours", {**SETTINGS, "log.dirs": str(kafka.log_dir)})
    broker.directory.mkdir()
    broker.properties.write_text("".join(f"{k}={v}\n" for k, v in broker.settings.items()))
    rehearsed = pykafkalog("adopt", "--dry-run", str(broker.properties))
    assert "To take from the KRaft metadata log: 5 access rules, 1 user" in rehearsed.stdout
    done = pykafkalog("adopt", "--json", str(broker.properties))
    assert done.returncode == 0, done.stderr
    access = json.loads(done.stdout)["access"]
    assert access == {"rules": 5, "users": 1, "quotas": 4, "left_out": []}
    with broker:
        assert told(broker.bootstrap) == theirs
        removed = in_process("acls", "-b", broker.bootstrap, "--remove", "--topic", "orders")
        assert "alice" in removed.stdout
    again = json.loads(pykafkalog("adopt", "--json", str(broker.properties)).stdout)["access"]
    assert again["rules"] == 0
    with broker:
        assert len(told(broker.bootstrap)[0]) == len(RULES) - 1
    check_password(kafka.log_dir / "metadata.sqlite")


def check_password(path: Path) -> None:
    """The credential is one that the password proves (RFC 5802)."""

    async def read() -> dict[str, str]:
        store = await open_store(str(path))
        node = await store.get("/config/users/alice")
        assert node is not None
        return decode_config("/config/users/alice", node.value)

    held = at_once(read())["SCRAM-SHA-256"]
    parts = dict(part.split("=", 1) for part in held.split(","))
    assert parts["iterations"] == "4097"
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), b64decode(parts["salt"]), 4097)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    assert b64decode(parts["stored_key"]) == hashlib.sha256(client_key).digest()
    assert b64decode(parts["server_key"]) == hmac.digest(salted, b"Server Key", "sha256")
