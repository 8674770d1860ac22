"""Nodes with access rules: paths, values, and what is no such value."""

import json

import pytest

from broker.cluster.acl_nodes import decode_rules, encode_rules, node_path, pattern_of
from broker.cluster.tree_values import BadValueError
from protocol.acls.rules import Pattern, Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC = Pattern(ResourceType.TOPIC, "orders")
READ = Rule(*TOPIC, "User:alice", "*", Operation.READ, PermissionType.ALLOW)
DENIED = Rule(*TOPIC, "User:*", "10.0.0.1", Operation.ALTER_CONFIGS, PermissionType.DENY)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (TOPIC, "/kafka-acl/Topic/orders"),
        (Pattern(ResourceType.CLUSTER, "kafka-cluster"), "/kafka-acl/Cluster/kafka-cluster"),
        (Pattern(ResourceType.TRANSACTIONAL_ID, "*"), "/kafka-acl/TransactionalId/*"),
        (
            Pattern(ResourceType.GROUP, "a/b%c", PREFIXED),
            "/kafka-acl-extended/prefixed/Group/a%2Fb%25c",
        ),
        (Pattern(ResourceType.GROUP, "%2F"), "/kafka-acl/Group/%252F"),
        (Pattern(ResourceType.GROUP, "a%25"), "/kafka-acl/Group/a%2525"),
        (Pattern(ResourceType.GROUP, "100%"), "/kafka-acl/Group/100%"),
        (Pattern(ResourceType.GROUP, "%2f"), "/kafka-acl/Group/%2f"),
    ],
)
def test_s_acl_9_paths_are_kafkas_and_a_name_is_one_node(pattern: Pattern, path: str) -> None:
    assert node_path(pattern) == path
    assert pattern_of(path) == pattern


def test_nodes_above_and_beside_have_no_rules() -> None:
    assert pattern_of("/kafka-acl/Topic") is None
    assert pattern_of("/kafka-acl") is None
    assert pattern_of("/kafka-acl-changes/acl_changes_0000000000") is None
    for unknown in ("/kafka-acl/Frob/x", "/kafka-acl/Any/x"):
        with pytest.raises(BadValueError, match="no type of resources"):
            pattern_of(unknown)


def test_s_acl_9_values_are_kafkas_json() -> None:
    value = encode_rules([READ, DENIED])
    assert json.loads(value) == {
        "version": 1,
        "acls": [
            {
                "principal": "User:*",
                "permissionType": "Deny",
                "operation": "AlterConfigs",
                "host": "10.0.0.1",
            },
            {
                "principal": "User:alice",
                "permissionType": "Allow",
                "operation": "Read",
                "host": "*",
            },
        ],
    }
    assert decode_rules(TOPIC, value) == {READ, DENIED}
    assert decode_rules(TOPIC, b"") == set()


ENTRY = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}


@pytest.mark.parametrize(
    "value",
    [
        b"{",
        b"[]",
        b"7",
        b'{"version":2,"acls":[]}',
        b'{"version":1}',
        *(
            json.dumps({"version": 1, "acls": [ENTRY, entry]}).encode()
            for entry in (
                7,
                {**ENTRY, "operation": "Frob"},
                {**ENTRY, "operation": "Any"},
                {**ENTRY, "permissionType": "Unknown"},
                {**ENTRY, "principal": "alice"},
                {**ENTRY, "principal": 7},
                {**ENTRY, "host": None},
                {"principal": "User:a"},
            )
        ),
    ],
)
def test_a_value_that_cannot_be_read_is_no_rule_less(value: bytes) -> None:
    with pytest.raises(BadValueError, match="/kafka-acl/Topic/orders"):
        decode_rules(TOPIC, value)
