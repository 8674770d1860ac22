"""Kafka's notifications: what is written for which changes, and what is read in them."""

import pytest

from broker.cluster.metadata_store import Check, Create, Delete, Put, TreeOperation
from broker.zookeeper.change_logs import CHANGE_LOGS, log_of, notifications


@pytest.mark.parametrize(
    ("path", "root", "value"),
    [
        ("/config/topics/t", "/config/changes", b'{"version":2,"entity_path":"topics/t"}'),
        (
            "/config/brokers/<default>",
            "/config/changes",
            b'{"version":2,"entity_path":"brokers/<default>"}',
        ),
        (
            "/config/users/a%40b/clients/<default>",
            "/config/changes",
            b'{"version":2,"entity_path":"users/a%40b/clients/<default>"}',
        ),
        ("/config/ips/10.0.0.1", "/config/changes", b'{"version":2,"entity_path":"ips/10.0.0.1"}'),
        ("/kafka-acl/Topic/t", "/kafka-acl-changes", b"TOPIC:t"),
        ("/kafka-acl/TransactionalId/a:b", "/kafka-acl-changes", b"TRANSACTIONAL_ID:a:b"),
        (
            "/kafka-acl-extended/prefixed/Group/g",
            "/kafka-acl-extended-changes",
            b'{"version":1,"resourceType":"GROUP","name":"g","patternType":"PREFIXED"}',
        ),
        ("/delegation_token/tokens/T1", "/delegation_token/token_changes", b"T1"),
    ],
)
def test_what_is_written_names_the_node_that_is_read(path: str, root: str, value: bytes) -> None:
    log = log_of(path)
    assert log is not None
    assert log.root == root
    assert notifications([Put(path, b"{}")]) == [
        Create(f"{root}/{log.prefix}", value, sequential=True)
    ]
    assert log.decode(value) == path


@pytest.mark.parametrize(
    "path",
    [
        "/brokers/topics/t",
        "/controller",
        "/config/changes/config_change_0000000001",
        "/config/topics",
        "/config/users/a/clients",
        "/config/client-metrics/x",
        "/kafka-acl/Topic",
        "/kafka-acl-changes/acl_changes_0000000001",
        "/kafka-acl-extended/prefixed/Group",
        "/delegation_token/token_changes/token_change_0000000001",
        "/delegation_token/tokens",
    ],
)
def test_other_nodes_have_none(path: str) -> None:
    assert notifications([Put(path, b"{}")]) == []


@pytest.mark.parametrize(
    ("operations", "count"),
    [
        ([Create("/config/topics/t", b"{}"), Create("/brokers/topics/t", b"{}")], 0),
        ([Create("/config/topics/t", b"{}")], 1),
        ([Delete("/config/topics/t", recursive=True)], 0),
        ([Delete("/config/users/u")], 1),
        ([Delete("/kafka-acl/Topic/t")], 1),
        ([Put("/config/topics/t", b"1"), Put("/config/topics/t", b"2")], 1),
        ([Put("/config/topics/t", b"1"), Put("/config/topics/u", b"2")], 2),
        ([Check("/config/topics/t", 1)], 0),
    ],
)
def test_topics_that_are_made_or_deleted_have_none(
    operations: list[TreeOperation], count: int
) -> None:
    assert len(notifications(operations)) == count


@pytest.mark.parametrize(
    ("root", "value", "path"),
    [
        (
            "/config/changes",
            b'{"version":1,"entity_type":"topics","entity_name":"t"}',
            "/config/topics/t",
        ),
        ("/config/changes", b'{"version":1,"entity_type":"users","entity_name":"t"}', None),
        ("/config/changes", b'{"version":3,"entity_path":"topics/t"}', None),
        ("/config/changes", b'{"version":2,"entity_path":7}', None),
        ("/config/changes", b'{"version":2,"entity_path":"hats/t"}', None),
        ("/config/changes", b"topic", None),
        ("/config/changes", b"[]", None),
        ("/config/changes", b"", None),
        ("/kafka-acl-changes", b"Group:g", "/kafka-acl/Group/g"),
        ("/kafka-acl-changes", b"Hat:g", None),
        ("/kafka-acl-changes", b"Group", None),
        ("/kafka-acl-extended-changes", b'{"version":1}', None),
        ("/delegation_token/token_changes", b"", None),
    ],
)
def test_what_others_have_written(root: str, value: bytes, path: str | None) -> None:
    (log,) = (one for one in CHANGE_LOGS if one.root == root)
    assert log.decode(value) == path


def test_numbers_of_notifications() -> None:
    log = CHANGE_LOGS[0]
    assert log.number("config_change_0000000012") == 12
    assert log.number("config_change_") is None
    assert log.number("other_0000000012") is None
