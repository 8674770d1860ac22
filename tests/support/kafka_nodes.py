"""Our encoders write the nodes that Apache Kafka 3.9 writes, byte for byte.

The nodes are those of the fixture `nodes` of `tests/conformance/test_zookeeper_values.py`, live or
as they were kept in `tests/golden/zookeeper_nodes.json`; None: a node without a value.
"""

from collections.abc import Callable, Mapping
from typing import Final

from broker.cluster.acl_nodes import decode_rules, encode_rules, pattern_of
from broker.cluster.metadata_store import Put
from broker.cluster.tree_values import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    broker_path,
    decode_broker,
    decode_cluster_id,
    decode_config,
    decode_controller,
    decode_controller_epoch,
    decode_partition_state,
    decode_topic,
    encode_broker,
    encode_cluster_id,
    encode_config,
    encode_controller,
    encode_controller_epoch,
    encode_partition_state,
    encode_topic,
    partition_state_path,
    topic_path,
)
from broker.zookeeper.change_logs import CHANGE_LOGS, log_of, notifications
from broker.zookeeper.zookeeper_store import PERSISTENT_PATHS

Nodes = Mapping[str, bytes | None]


def top_nodes(nodes: Nodes) -> None:
    assert set(PERSISTENT_PATHS) <= set(nodes)
    assert all(nodes[path] is None for path in PERSISTENT_PATHS if path != "/brokers/seqid")


def topics_and_states(nodes: Nodes) -> None:
    value = nodes[topic_path("t")]
    assert value is not None
    topic = decode_topic("t", value)
    assert topic.topic_id is not None
    states = {}
    for index, replicas in topic.replicas.items():
        state = nodes[partition_state_path("t", index)]
        assert state is not None
        states[index] = decode_partition_state("t", index, state, replicas)
        assert encode_partition_state(states[index], controller_epoch=1) == state
        assert nodes[f"/brokers/topics/t/partitions/{index}"] is None
    assert encode_topic(topic.topic_id, states) == value


def configs(nodes: Nodes) -> None:
    found = {}
    for path, value in nodes.items():
        if path.startswith("/config/") and "/changes/" not in path and value is not None:
            assert encode_config(decode_config(path, value)) == value, path
            found[path] = value
    assert set(found) == {
        *("/config/topics/t", "/config/brokers/3", "/config/brokers/<default>"),
        *("/config/users/us%20er", "/config/users/us%20er/clients/<default>"),
    }


def live_broker(nodes: Nodes) -> None:
    value = nodes[broker_path(3)]
    assert value is not None
    assert encode_broker(decode_broker(3, value), (), _timestamp(value)) == value


def controller(nodes: Nodes) -> None:
    value = nodes[CONTROLLER]
    assert value is not None
    assert decode_controller(value) == 3
    assert encode_controller(3, _timestamp(value)) == value
    epoch = nodes[CONTROLLER_EPOCH]
    assert epoch is not None
    assert encode_controller_epoch(decode_controller_epoch(epoch)) == epoch


def cluster(nodes: Nodes) -> None:
    value = nodes["/cluster/id"]
    assert value is not None
    assert encode_cluster_id(decode_cluster_id(value)) == value


def _timestamp(value: bytes) -> int:
    return int(value.split(b'"timestamp":"')[1].split(b'"')[0])


def access_rules(nodes: Nodes) -> None:
    checked = 0
    for path, value in nodes.items():
        if path.startswith(("/kafka-acl/", "/kafka-acl-extended/")) and value is not None:
            pattern = pattern_of(path)
            assert pattern is not None
            rules = decode_rules(pattern, value)
            assert len(rules) == 2
            assert decode_rules(pattern, encode_rules(rules)) == rules
            assert sorted(encode_rules(rules)) == sorted(value)
            checked += 1
    assert checked == 2


def notified(nodes: Nodes) -> None:
    told: dict[str, set[bytes | None]] = {log.root: set() for log in CHANGE_LOGS}
    for path, value in nodes.items():
        parent = path.rpartition("/")[0]
        if parent in told:
            told[parent].add(value)
    ours: dict[str, set[bytes | None]] = {log.root: set() for log in CHANGE_LOGS}
    for path in (
        *("/config/topics/t", "/config/brokers/3", "/config/brokers/<default>"),
        *("/config/users/us%20er", "/config/users/us%20er/clients/<default>"),
        *("/kafka-acl/Topic/t", "/kafka-acl-extended/prefixed/Topic/pre"),
    ):
        log = log_of(path)
        assert log is not None
        for create in notifications([Put(path, b"")]):
            assert create.path == f"{log.root}/{log.prefix}"
            ours[log.root].add(create.value)
    assert told == ours
    assert {path.rpartition("/")[2][:-10] for path in nodes if path.rpartition("/")[0] in told} == {
        log.prefix for log in CHANGE_LOGS[:3]
    }


CHECKS: Final[tuple[Callable[[Nodes], None], ...]] = (
    *(top_nodes, topics_and_states, configs, live_broker, controller, cluster),
    *(access_rules, notified),
)
