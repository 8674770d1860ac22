import json

import pytest

from broker.cluster.image import BrokerImage, PartitionImage
from broker.cluster.metadata_store import MetadataStoreError
from broker.cluster.tree_values import (
    BadValueError,
    decode_cluster_id,
    decode_config,
    decode_controller_epoch,
    decode_partition_state,
    decode_producer_id_block,
    decode_topic,
    encode_broker,
    encode_cluster_id,
    encode_config,
    encode_partition_state,
    encode_producer_id_block,
    encode_topic,
)
from config.listener import Listener

PARTITION = PartitionImage(leader=1, leader_epoch=7, replicas=(1, 2), isr=(1,))


def test_values_are_what_kafka_writes_to_zookeeper() -> None:
    """The literal texts are those of Kafka 3.9 in ZooKeeper mode."""
    assert encode_cluster_id("MkU3OEVBNTcwNTJENDM2Qg") == (
        b'{"version":"1","id":"MkU3OEVBNTcwNTJENDM2Qg"}'
    )
    assert encode_topic(bytes(15) + b"\x02", {0: PARTITION}) == (
        b'{"removing_replicas":{},"partitions":{"0":[1,2]},'
        b'"topic_id":"AAAAAAAAAAAAAAAAAAAAAg","adding_replicas":{},"version":3}'
    )
    assert encode_partition_state(PARTITION, 3) == (
        b'{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":7,"isr":[1]}'
    )
    assert encode_config({"a": "b"}) == b'{"version":1,"config":{"a":"b"}}'
    assert encode_producer_id_block(5, 0, 999) == (
        b'{"version":1,"broker":5,"block_start":"0","block_end":"999"}'
    )
    listener = Listener(name="PLAINTEXT", host="h", port=9, protocol="PLAINTEXT")
    broker = BrokerImage(broker_id=5, endpoints=(listener,), rack="r")
    assert json.loads(encode_broker(broker, (), 17)) == {
        "features": {},
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "endpoints": ["PLAINTEXT://h:9"],
        "jmx_port": -1,
        "port": 9,
        "host": "h",
        "version": 5,
        "timestamp": "17",
        "rack": "r",
    }


def test_values_come_back() -> None:
    found = decode_topic("t", encode_topic(b"i" * 16, {0: PARTITION, 10: PARTITION, 2: PARTITION}))
    assert found.topic_id == b"i" * 16
    assert list(found.replicas) == [0, 2, 10]
    state = encode_partition_state(PARTITION, 3)
    assert decode_partition_state("t", 0, state, (1, 2)) == PARTITION
    assert decode_config("/config/topics/t", encode_config({"a": "b"})) == {"a": "b"}
    assert decode_producer_id_block(encode_producer_id_block(5, 0, 999)) == 999
    assert decode_controller_epoch(b"12") == 12


def test_nodes_from_before_topic_ids_are_read() -> None:
    found = decode_topic("t", b'{"version":1,"partitions":{"0":[0]}}')
    assert found.topic_id is None
    assert found.replicas == {0: (0,)}


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"partitions":{"x":[0]}}'])
def test_a_damaged_value_names_its_path(data: bytes) -> None:
    for decode in (
        lambda: decode_topic("t", data),
        lambda: decode_config("/config/topics/t", data),
        lambda: decode_partition_state("t", 0, data, (0,)),
        lambda: decode_producer_id_block(data),
        lambda: decode_cluster_id(data),
    ):
        with pytest.raises(BadValueError, match=r"^/") as caught:
            decode()
        assert isinstance(caught.value, MetadataStoreError)
    with pytest.raises(BadValueError):
        decode_controller_epoch(b"x")
