import json

import pytest

from broker.cluster.image import BrokerImage, PartitionImage
from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.cluster.metadata_store import MetadataStoreError
from broker.cluster.replica_assignment import ReplicaAssignment
from broker.cluster.tree_values import (
    BadValueError,
    decode_broker,
    decode_cluster_id,
    decode_config,
    decode_controller,
    decode_controller_epoch,
    decode_leader_and_isr,
    decode_log_dir_event,
    decode_partition_state,
    decode_partitions,
    decode_producer_id_block,
    decode_reassignment,
    decode_topic,
    encode_assignment,
    encode_broker,
    encode_leader_and_isr,
    encode_log_dir_event,
    encode_partition_state,
    encode_partitions,
    encode_producer_id_block,
    encode_reassignment,
    encode_topic,
)
from config.listener import Listener
from protocol.types import TopicPartition

TP = TopicPartition("t", 1)
PARTITION = PartitionImage(leader=1, leader_epoch=7, replicas=(1, 2), isr=(1,))


def test_values_are_what_kafka_writes_to_zookeeper() -> None:
    """The literal texts are those of Kafka 3.9 in ZooKeeper mode; more: `test_golden_nodes.py`."""
    assert encode_producer_id_block(5, 0, 999) == (
        b'{"version":1,"broker":5,"block_start":"0","block_end":"999"}'
    )
    safe = BrokerImage(
        broker_id=5, endpoints=(Listener(name="IN", host="h", port=9, protocol="SASL_SSL"),)
    )
    assert encode_broker(safe, (), 17) == (
        b'{"features":{},"listener_security_protocol_map":{"IN":"SASL_SSL"},'
        b'"endpoints":["IN://h:9"],"jmx_port":-1,"port":-1,"host":null,'
        b'"version":5,"timestamp":"17"}'
    )
    recovering = LeaderAndIsr(1, (1,), leader_epoch=7, controller_epoch=3, recovering=True)
    assert encode_leader_and_isr(recovering) == (
        b'{"controller_epoch":3,"leader":1,"version":1,"leader_recovery_state":1,'
        b'"leader_epoch":7,"isr":[1]}'
    )
    assert encode_leader_and_isr(recovering._replace(recovering=False)) == (
        encode_partition_state(PARTITION, 3)
    )
    assert encode_reassignment({TP: (2, 3)}) == (
        b'{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[2,3]}]}'
    )
    assert encode_partitions([TP]) == (b'{"version":1,"partitions":[{"topic":"t","partition":1}]}')
    assert encode_log_dir_event(5) == b'{"version":1,"broker":5,"event":1}'


def test_a_topic_node_has_partitions_and_reassignments_in_the_order_of_scalas_map() -> None:
    moved = ReplicaAssignment((3, 4, 1), adding=(3, 4), removing=(1,))
    node = encode_assignment(None, dict.fromkeys(range(12), moved))
    value = json.loads(node)
    order = ["11", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
    assert list(value) == ["partitions", "adding_replicas", "removing_replicas", "version"]
    assert list(value["partitions"]) == order
    assert list(value["adding_replicas"]) == list(value["removing_replicas"]) == order
    found = decode_topic("t", node)
    assert found.topic_id is None
    assert found.of(11) == moved
    few = json.loads(encode_assignment(None, dict.fromkeys((*range(10), 1000), moved)))
    assert list(few["partitions"]) == [*"012345678", "1000", "9"]  # the upper half counts too


@pytest.mark.parametrize(
    ("value", "endpoints", "rack"),
    [
        (
            {"version": 1, "host": "h", "port": 9, "jmx_port": 1, "timestamp": "2"},
            [("PLAINTEXT", "h", 9, "PLAINTEXT")],
            None,
        ),
        (
            {"version": 2, "host": "h", "port": 9, "endpoints": ["PLAINTEXT://h:9", "SSL://h:8"]},
            [("PLAINTEXT", "h", 9, "PLAINTEXT"), ("SSL", "h", 8, "SSL")],
            None,
        ),
        (
            {"version": 3, "endpoints": ["SASL_SSL://[::1]:8"], "rack": "dc1"},
            [("SASL_SSL", "::1", 8, "SASL_SSL")],
            "dc1",
        ),
        (
            {
                "version": 4,
                "endpoints": ["client://h:9", "REPLICATION://h:10"],
                "listener_security_protocol_map": {"client": "SSL", "REPLICATION": "PLAINTEXT"},
                "rack": None,
            },
            [("CLIENT", "h", 9, "SSL"), ("REPLICATION", "h", 10, "PLAINTEXT")],
            None,
        ),
    ],
)
def test_every_version_of_a_brokers_node_is_read(
    value: dict[str, object], endpoints: list[tuple[str, str, int, str]], rack: str | None
) -> None:
    found = decode_broker(5, json.dumps(value).encode())
    assert [(e.name, e.host, e.port, e.protocol) for e in found.endpoints] == endpoints
    assert (found.broker_id, found.rack, found.features) == (5, rack, ())


def test_a_brokers_node_comes_back() -> None:
    listener = Listener(name="IN", host="h", port=9, protocol="SSL")
    broker = BrokerImage(
        broker_id=5, endpoints=(listener,), rack="r", features=(("metadata.version", 1, 21),)
    )
    assert decode_broker(5, encode_broker(broker, (), 17)) == broker


def test_values_come_back() -> None:
    found = decode_topic("t", encode_topic(b"i" * 16, {0: PARTITION, 10: PARTITION, 2: PARTITION}))
    assert found.topic_id == b"i" * 16
    assert list(found.replicas) == [0, 2, 10]
    state = encode_partition_state(PARTITION, 3)
    assert decode_partition_state("t", 0, state, (1, 2)) == PARTITION
    assert decode_producer_id_block(encode_producer_id_block(5, 0, 999)) == 999
    assert decode_controller(b'{"version":1,"brokerid":5,"timestamp":"17"}') == 5
    assert decode_reassignment(encode_reassignment({TP: (2, 3)})) == {TP: (2, 3)}
    assert decode_partitions("/p", encode_partitions([TP, TP])) == [TP]
    assert decode_log_dir_event("/e", encode_log_dir_event(5)) == 5
    recovering = LeaderAndIsr(1, (1,), 7, 11, 3, recovering=True)
    assert decode_leader_and_isr("/s", encode_leader_and_isr(recovering), 11) == recovering


def test_nodes_from_before_topic_ids_are_read() -> None:
    found = decode_topic("t", b'{"version":1,"partitions":{"0":[0]}}')
    assert found.topic_id is None
    assert found.replicas == {0: (0,)}


def test_a_node_of_producer_ids_that_was_made_empty_has_none() -> None:
    """As Kafka makes it at a start, before the first block is taken."""
    assert decode_producer_id_block(b"") == -1


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"partitions":{"x":[0]}}'])
def test_a_damaged_value_names_its_path(data: bytes) -> None:
    for decode in (
        lambda: decode_topic("t", data),
        lambda: decode_config("/config/topics/t", data),
        lambda: decode_partition_state("t", 0, data, (0,)),
        lambda: decode_producer_id_block(data or b"{}"),
        lambda: decode_cluster_id(data),
        lambda: decode_broker(5, data),
        lambda: decode_controller(data),
        lambda: decode_leader_and_isr("/s", data, 0),
        lambda: decode_log_dir_event("/e", data),
    ):
        with pytest.raises(BadValueError, match=r"^/") as caught:
            decode()
        assert isinstance(caught.value, MetadataStoreError)
    with pytest.raises(BadValueError):
        decode_controller_epoch(b"x")
