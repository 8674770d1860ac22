"""Paths and values of the metadata tree: what Kafka writes to ZooKeeper, as JSON.

    /cluster/id                                {"version":"1","id":"<22 characters>"}
    /brokers/ids/<id>                          ephemeral: endpoints and rack of a live broker
    /brokers/seqid                             its version counts the generated broker ids
    /brokers/topics/<t>                        version 3: topic id, replicas of each partition, and
                                               which of them a reassignment adds and removes
    /brokers/topics/<t>/partitions/<p>/state   leader, leader epoch, in-sync replicas
    /config/topics/<t>                         {"version":1,"config":{…}}
    /config/brokers/<id>, …/<default>          the same: configs set while the broker runs
    /config/users/<user>                       the same: SCRAM credentials, and the user's quotas
    /delegation_token/tokens/<id>              a delegation token, version 3
    /admin/delete_topics/<t>                   the topic's deletion is under way
    /admin/reassign_partitions                 version 1: partitions to move (Kafka's old way)
    /admin/preferred_replica_election          version 1: partitions to elect anew (likewise)
    /isr_change_notification/isr_change_<n>    partitions whose leader changed their ISR itself
    /log_dir_event_notification/log_dir_event_<n>  a broker whose log directory failed
    /latest_producer_id_block                  the last block of producer ids handed out
    /feature                                   finalized levels of features, version 2
    /controller                                ephemeral: the broker that is the controller
    /controller_epoch                          grows with every start of a controller

Reading ignores unknown members, as Kafka's decoders do. The order of members is the one in which
Kafka's Scala maps (2.13) yield them, so that equal values are equal bytes. Pure.
Sources: `kafka.zk.ZkData` (3.9).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from broker.cluster.image import BrokerImage, PartitionImage
from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.cluster.metadata_store import MetadataStoreError
from broker.cluster.replica_assignment import ReplicaAssignment
from broker.quotas.sanitizer import sanitized
from config.definition import ConfigError
from config.listener import SECURITY_PROTOCOLS, Listener, parse_listeners
from protocol.types import TopicPartition, uuid_from_text, uuid_to_text

CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE = "/brokers/seqid"
TOPICS = "/brokers/topics"
TOPIC_CONFIGS = "/config/topics"
BROKER_CONFIGS = "/config/brokers"
USER_CONFIGS = "/config/users"
DELEGATION_TOKENS = "/delegation_token/tokens"
DELETE_TOPICS = "/admin/delete_topics"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURES = "/feature"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENTS}/log_dir_event_"
"""The path of such an event, without the number at its end."""


class BadValueError(MetadataStoreError):
    """The value of a node is invalid for its path."""

    def __init__(self, path: str, reason: object) -> None:
        super().__init__(path, f"the metadata cannot be read: {reason}")


class reading:
    """Within the block: what is missing, or of another type, is a BadValueError of the node."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KeyError | TypeError | ValueError | AttributeError | ConfigError):
            raise BadValueError(self._path, error) from error


def topic_path(name: str) -> str:
    """The node of one topic."""
    return f"{TOPICS}/{name}"


def topic_config_path(name: str) -> str:
    """The node of one topic's own configs."""
    return f"{TOPIC_CONFIGS}/{name}"


def broker_config_path(broker_id: int | None) -> str:
    """The node of one broker's dynamic configs; None: of the configs for all brokers."""
    return f"{BROKER_CONFIGS}/{'<default>' if broker_id is None else broker_id}"


def user_config_path(user: str) -> str:
    """The node of one user's configs."""
    return f"{USER_CONFIGS}/{sanitized(user)}"


def delegation_token_path(token_id: str) -> str:
    """The node of one delegation token."""
    return f"{DELEGATION_TOKENS}/{token_id}"


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
    with reading(path):
        value = json.loads(data)
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
    adding: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """For partitions that are being reassigned: those of the replicas that are being added."""
    removing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def of(self, partition: int) -> ReplicaAssignment:
        """The replicas of one of the partitions."""
        return ReplicaAssignment(
            self.replicas[partition],
            self.adding.get(partition, ()),
            self.removing.get(partition, ()),
        )


def encode_topic(topic_id: bytes | None, partitions: Mapping[int, PartitionImage]) -> bytes:
    """The value of a topic's node, version 3; without an id it has none."""
    return encode_assignment(
        topic_id,
        {
            index: ReplicaAssignment(p.replicas, p.adding_replicas, p.removing_replicas)
            for index, p in partitions.items()
        },
    )


def encode_assignment(topic_id: bytes | None, partitions: Mapping[int, ReplicaAssignment]) -> bytes:
    """`encode_topic` for whom replicas are all that is known."""
    names = {str(index): one for index, one in partitions.items()}
    adding = [name for name, one in names.items() if one.adding]
    removing = [name for name, one in names.items() if one.removing]
    return encode(
        {
            "partitions": {name: names[name].replicas for name in _hashed_order(names)},
            **({} if topic_id is None else {"topic_id": uuid_to_text(topic_id)}),
            "adding_replicas": {name: names[name].adding for name in _hashed_order(adding)},
            "removing_replicas": {name: names[name].removing for name in _hashed_order(removing)},
            "version": 3,
        }
    )


_SMALLEST_TABLE: Final = 16
_WORD: Final = 1 << 32


def _hashed_order(names: Iterable[str]) -> list[str]:
    """Return the names in the order in which Scala's mutable map has them that was filled singly.

    Its table doubles before it is three quarters full; in one bucket entries are by their hash.
    """
    hashes = {}
    for name in names:
        value = 0
        for char in name:
            value = (31 * value + ord(char)) % _WORD
        hashes[name] = value ^ (value >> 16)
    size = _SMALLEST_TABLE
    while len(hashes) >= size * 3 // 4:
        size *= 2
    return sorted(hashes, key=lambda name: (hashes[name] % size, hashes[name]))


def decode_topic(name: str, data: bytes) -> TopicAssignment:
    """A topic's node. Raises BadValueError."""
    path = topic_path(name)
    value = _decode(path, data)
    with reading(path):
        text = value.get("topic_id")
        replicas = {int(k): tuple(int(b) for b in v) for k, v in value["partitions"].items()}
        return TopicAssignment(
            topic_id=None if text is None else uuid_from_text(text),
            replicas=dict(sorted(replicas.items())),
            adding=_changing(value.get("adding_replicas")),
            removing=_changing(value.get("removing_replicas")),
        )


def _changing(value: Mapping[str, list[int]] | None) -> dict[int, tuple[int, ...]]:
    return {int(k): tuple(int(b) for b in v) for k, v in value.items() if v} if value else {}


def encode_partition_state(partition: PartitionImage, controller_epoch: int) -> bytes:
    """The value of a partition's state node."""
    return encode_leader_and_isr(
        LeaderAndIsr(
            leader=partition.leader,
            isr=partition.isr,
            leader_epoch=partition.leader_epoch,
            controller_epoch=controller_epoch,
        )
    )


def decode_partition_state(
    name: str, partition: int, data: bytes, replicas: tuple[int, ...]
) -> PartitionImage:
    """A partition's state node, with the replicas from its topic's. Raises BadValueError."""
    state = decode_leader_and_isr(partition_state_path(name, partition), data, 0)
    return PartitionImage(
        leader=state.leader, leader_epoch=state.leader_epoch, replicas=replicas, isr=state.isr
    )


def encode_leader_and_isr(state: LeaderAndIsr) -> bytes:
    """The value of a partition's state node. Its partition epoch is the node's version."""
    return encode(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            **({"leader_recovery_state": 1} if state.recovering else {}),
            "leader_epoch": state.leader_epoch,
            "isr": state.isr,
        }
    )


def decode_leader_and_isr(path: str, data: bytes, version: int) -> LeaderAndIsr:
    """The state node at `path`, whose version is `version`. Raises BadValueError."""
    value = _decode(path, data)
    with reading(path):
        return LeaderAndIsr(
            leader=int(value["leader"]),
            isr=tuple(int(broker) for broker in value["isr"]),
            leader_epoch=int(value["leader_epoch"]),
            partition_epoch=version,
            controller_epoch=int(value["controller_epoch"]),
            recovering=int(value.get("leader_recovery_state", 0)) == 1,
        )


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
    plain = next((endpoint for endpoint in endpoints if endpoint.protocol == "PLAINTEXT"), None)
    return encode(
        {
            "features": {
                name: {"min_version": lowest, "max_version": highest}
                for name, lowest, highest in broker.features
            },
            "listener_security_protocol_map": {e.name: e.protocol for e in endpoints},
            "endpoints": [str(endpoint) for endpoint in endpoints],
            **({"rack": broker.rack} if broker.rack is not None else {}),
            "jmx_port": -1,
            "port": -1 if plain is None else plain.port,
            "host": None if plain is None else plain.host,
            "version": 5,
            "timestamp": str(timestamp_ms),
        }
    )


_PROTOCOLS_BY_NAME: Final = {name: name for name in SECURITY_PROTOCOLS}
"""Protocols by listener, in nodes of versions 2 and 3, which name a listener for its protocol."""


def decode_broker(broker_id: int, data: bytes) -> BrokerImage:
    """A live broker's node, of versions 1 to 5. Raises BadValueError."""
    path = broker_path(broker_id)
    value = _decode(path, data)
    with reading(path):
        version = int(value["version"])
        if version < 1:
            raise BadValueError(path, f"version {version} is not known")
        if version == 1:
            endpoints: tuple[Listener, ...] = (
                Listener(
                    name="PLAINTEXT",
                    host=str(value["host"]),
                    port=int(value["port"]),
                    protocol="PLAINTEXT",
                ),
            )
        else:
            protocols = value.get("listener_security_protocol_map")
            endpoints = parse_listeners(
                "endpoints",
                tuple(str(endpoint) for endpoint in value["endpoints"]),
                _PROTOCOLS_BY_NAME
                if protocols is None
                else {str(name).upper(): str(kind) for name, kind in protocols.items()},
                same_port=True,
            )
        rack = value.get("rack")
        features = value.get("features") or {}
        return BrokerImage(
            broker_id=broker_id,
            endpoints=endpoints,
            rack=None if rack is None else str(rack),
            features=tuple(
                (str(name), int(range_["min_version"]), int(range_["max_version"]))
                for name, range_ in features.items()
            ),
        )


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    """The value of /controller; no KRaft controller has written it."""
    return encode(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(data: bytes) -> int:
    """The id of the broker that is the controller. Raises BadValueError."""
    with reading(CONTROLLER):
        return int(_decode(CONTROLLER, data)["brokerid"])


def encode_reassignment(targets: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    """The value of /admin/reassign_partitions."""
    return encode(
        {
            "version": 1,
            "partitions": [
                {"topic": tp.topic, "partition": tp.partition, "replicas": replicas}
                for tp, replicas in targets.items()
            ],
        }
    )


def decode_reassignment(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Partition to its wanted replicas. Raises BadValueError."""
    with reading(REASSIGN_PARTITIONS):
        return {
            TopicPartition(str(one["topic"]), int(one["partition"])): tuple(
                int(broker) for broker in one["replicas"]
            )
            for one in _decode(REASSIGN_PARTITIONS, data)["partitions"]
        }


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """The value of /admin/preferred_replica_election, and of an ISR change notification."""
    return encode(
        {
            "version": 1,
            "partitions": [{"topic": tp.topic, "partition": tp.partition} for tp in partitions],
        }
    )


def decode_partitions(path: str, data: bytes) -> list[TopicPartition]:
    """The different partitions that the node at `path` lists. Raises BadValueError."""
    with reading(path):
        return list(
            dict.fromkeys(
                TopicPartition(str(one["topic"]), int(one["partition"]))
                for one in _decode(path, data)["partitions"]
            )
        )


_LOG_DIR_FAILURE: Final = 1


def encode_log_dir_event(broker_id: int) -> bytes:
    """The value of a log directory event: one of the broker's has failed."""
    return encode({"version": 1, "broker": broker_id, "event": _LOG_DIR_FAILURE})


def decode_log_dir_event(path: str, data: bytes) -> int:
    """The id of the broker whose directory failed. Raises BadValueError."""
    with reading(path):
        return int(_decode(path, data)["broker"])


def encode_producer_id_block(broker_id: int, first: int, last: int) -> bytes:
    """The value of /latest_producer_id_block: the block `first`..`last`, both included."""
    return encode(
        {"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)}
    )


def decode_producer_id_block(data: bytes) -> int:
    """The last producer id that was handed out; -1: none, in a node that was made empty.

    Raises BadValueError.
    """
    if not data:
        return -1
    with reading(PRODUCER_ID_BLOCK):
        return int(_decode(PRODUCER_ID_BLOCK, data)["block_end"])


_FEATURES_ENABLED = 1


def encode_features(levels: Mapping[str, int]) -> bytes:
    """The value of /feature: the finalized level of each feature."""
    features = {name: {"max_version_level": level} for name, level in levels.items()}
    return encode({"features": features, "version": 2, "status": _FEATURES_ENABLED})


def decode_features(data: bytes) -> dict[str, int]:
    """Feature to finalized level; none when features are disabled. Raises BadValueError."""
    value = _decode(FEATURES, data)
    with reading(FEATURES):
        if value["status"] != _FEATURES_ENABLED:
            return {}
        return {
            str(name): int(levels["max_version_level"])
            for name, levels in value["features"].items()
        }


def encode_controller_epoch(epoch: int) -> bytes:
    """The value of /controller_epoch."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    """The number of controllers so far. Raises BadValueError."""
    with reading(CONTROLLER_EPOCH):
        return int(data)
