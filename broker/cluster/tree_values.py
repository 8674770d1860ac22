"""Paths and values of the metadata tree: what Kafka writes to ZooKeeper, as JSON.

    /cluster/id                                {"version":"1","id":"<22 characters>"}
    /brokers/ids/<id>                          ephemeral: endpoints and rack of a live broker
    /brokers/seqid                             its version counts the generated broker ids
    /brokers/topics/<t>                        version 3: topic id, replicas of each partition
    /brokers/topics/<t>/partitions/<p>/state   leader, leader epoch, in-sync replicas
    /config/topics/<t>                         {"version":1,"config":{…}}
    /config/brokers/<id>, …/<default>          the same: configs set while the broker runs
    /admin/delete_topics/<t>                   the topic's deletion is under way
    /latest_producer_id_block                  the last block of producer ids handed out
    /feature                                   finalized levels of features, version 2
    /controller                                ephemeral: the broker that is the controller
    /controller_epoch                          grows with every start of a controller

Reading ignores unknown members, as Kafka's decoders do. Pure.
Sources: `kafka.zk.ZkData` (3.9).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker.cluster.image import BrokerImage, PartitionImage
from broker.cluster.metadata_store import MetadataStoreError
from config.listener import Listener
from protocol.types import uuid_from_text, uuid_to_text

CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE = "/brokers/seqid"
TOPICS = "/brokers/topics"
TOPIC_CONFIGS = "/config/topics"
BROKER_CONFIGS = "/config/brokers"
DELETE_TOPICS = "/admin/delete_topics"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURES = "/feature"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"


class BadValueError(MetadataStoreError):
    """The value of a node is invalid for its path."""

    def __init__(self, path: str, reason: object) -> None:
        super().__init__(path, f"the metadata cannot be read: {reason}")


def topic_path(name: str) -> str:
    """The node of one topic."""
    return f"{TOPICS}/{name}"


def topic_config_path(name: str) -> str:
    """The node of one topic's own configs."""
    return f"{TOPIC_CONFIGS}/{name}"


def broker_config_path(broker_id: int | None) -> str:
    """The node of one broker's dynamic configs; None: of the configs for all brokers."""
    return f"{BROKER_CONFIGS}/{'<default>' if broker_id is None else broker_id}"


def partition_state_path(name: str, partition: int) -> str:
    """The node of one partition's leader and ISR."""
    return f"{TOPICS}/{name}/partitions/{partition}/state"


def broker_path(broker_id: int) -> str:
    """The node of one live broker."""
    return f"{BROKER_IDS}/{broker_id}"


def deletion_path(name: str) -> str:
    """The mark of a topic that is being deleted."""
    return f"{DELETE_TOPICS}/{name}"


def encode(value: Mapping[str, Any]) -> bytes:
    """Return JSON without blanks, as Kafka writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _decode(path: str, data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise BadValueError(path, error) from error
    if not isinstance(value, dict):
        raise BadValueError(path, "not an object")
    return value


def encode_cluster_id(cluster_id: str) -> bytes:
    """The value of /cluster/id."""
    return encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    """The cluster's id. Raises BadValueError."""
    value = _decode(CLUSTER_ID, data).get("id")
    if not isinstance(value, str) or not value:
        raise BadValueError(CLUSTER_ID, "no id")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAssignment:
    """A topic's node."""

    topic_id: bytes | None
    """None in nodes of version 1 and 2, from before topics had ids."""
    replicas: Mapping[int, tuple[int, ...]]


def encode_topic(topic_id: bytes, partitions: Mapping[int, PartitionImage]) -> bytes:
    """The value of a topic's node, version 3."""
    return encode(
        {
            "removing_replicas": {},
            "partitions": {str(index): list(p.replicas) for index, p in partitions.items()},
            "topic_id": uuid_to_text(topic_id),
            "adding_replicas": {},
            "version": 3,
        }
    )


def decode_topic(name: str, data: bytes) -> TopicAssignment:
    """A topic's node. Raises BadValueError."""
    path = topic_path(name)
    value = _decode(path, data)
    try:
        text = value.get("topic_id")
        replicas = {int(k): tuple(int(b) for b in v) for k, v in value["partitions"].items()}
        return TopicAssignment(
            topic_id=None if text is None else uuid_from_text(text),
            replicas=dict(sorted(replicas.items())),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadValueError(path, error) from error


def encode_partition_state(partition: PartitionImage, controller_epoch: int) -> bytes:
    """The value of a partition's state node."""
    return encode(
        {
            "controller_epoch": controller_epoch,
            "leader": partition.leader,
            "version": 1,
            "leader_epoch": partition.leader_epoch,
            "isr": list(partition.isr),
        }
    )


def decode_partition_state(
    name: str, partition: int, data: bytes, replicas: tuple[int, ...]
) -> PartitionImage:
    """A partition's state node, with the replicas from its topic's. Raises BadValueError."""
    path = partition_state_path(name, partition)
    value = _decode(path, data)
    try:
        return PartitionImage(
            leader=int(value["leader"]),
            leader_epoch=int(value["leader_epoch"]),
            replicas=replicas,
            isr=tuple(int(broker) for broker in value["isr"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadValueError(path, error) from error


def encode_config(config: Mapping[str, str]) -> bytes:
    """The value of a config node, a topic's or a broker's."""
    return encode({"version": 1, "config": dict(config)})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """Return the configs in the config node `path`. Raises BadValueError."""
    config = _decode(path, data).get("config")
    if not isinstance(config, dict):
        raise BadValueError(path, "no config")
    return {str(key): str(value) for key, value in config.items()}


def encode_broker(broker: BrokerImage, bound: tuple[Listener, ...], timestamp_ms: int) -> bytes:
    """The value of a live broker's node; with no advertised endpoint it has those in `bound`."""
    endpoints = broker.endpoints or bound
    first = endpoints[0]
    return encode(
        {
            "features": {},
            "listener_security_protocol_map": {e.name: e.protocol for e in endpoints},
            "endpoints": [str(endpoint) for endpoint in endpoints],
            "jmx_port": -1,
            "port": first.port,
            "host": first.host,
            "version": 5,
            "timestamp": str(timestamp_ms),
            **({"rack": broker.rack} if broker.rack is not None else {}),
        }
    )


def encode_producer_id_block(broker_id: int, first: int, last: int) -> bytes:
    """The value of /latest_producer_id_block: the block `first`..`last`, both included."""
    return encode(
        {"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)}
    )


def decode_producer_id_block(data: bytes) -> int:
    """The last producer id that was handed out. Raises BadValueError."""
    try:
        return int(_decode(PRODUCER_ID_BLOCK, data)["block_end"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadValueError(PRODUCER_ID_BLOCK, error) from error


_FEATURES_ENABLED = 1


def encode_features(levels: Mapping[str, int]) -> bytes:
    """The value of /feature: the finalized level of each feature."""
    features = {name: {"max_version_level": level} for name, level in levels.items()}
    return encode({"version": 2, "status": _FEATURES_ENABLED, "features": features})


def decode_features(data: bytes) -> dict[str, int]:
    """Feature to finalized level; none when features are disabled. Raises BadValueError."""
    value = _decode(FEATURES, data)
    try:
        if value["status"] != _FEATURES_ENABLED:
            return {}
        return {
            str(name): int(levels["max_version_level"])
            for name, levels in value["features"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadValueError(FEATURES, error) from error


def decode_controller_epoch(data: bytes) -> int:
    """The number of controllers so far. Raises BadValueError."""
    try:
        return int(data)
    except ValueError as error:
        raise BadValueError(CONTROLLER_EPOCH, error) from error
