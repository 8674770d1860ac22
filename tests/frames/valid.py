"""One valid request of every API in every version, about things that exist on the broker.

Requests are filled from the declared tree: each field by its name, an array with one element,
unless the API has something else to say about it. So a new field or a new API needs a line here
only when its zero value makes no sense.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.messages.registry import request_api
from protocol.records.builder import build_batch
from protocol.schema.constructs import ArrayOf, Blob, Fields, Text, Wire

K = ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of things on the broker, and of things that do not exist yet."""

    topic: str
    """It has two partitions and some records."""
    topic_id: bytes
    broker_id: int = 1
    cluster_id: str | None = None
    directory: str
    """One of `log.dirs`."""
    group: str = "group"
    member: str = ""
    transactional_id: str = "transaction"
    producer_id: int = -1
    producer_epoch: int = -1
    """The epoch of the transactional id's owner."""
    new_topic: str = "not-made-yet"
    timestamp_ms: int = 1_700_000_000_000

    def about(self, **changed: Any) -> "Names":
        """Return these names with some changed."""
        return replace(self, **changed)


def records(names: Names) -> bytes:
    """A batch of two records."""
    now = names.timestamp_ms
    return build_batch([(now, b"key", b"value", ()), (now + 1, None, b"value", [("h", b"x")])])


Filler = Callable[[Names], Any]

_SUBSCRIPTION: Final = b"\0\0\0\0\0\1\0\5topic\xff\xff\xff\xff"
"""A subscription of the consumer protocol, version 0."""

_BY_NAME: Final[Mapping[str, Filler]] = {
    "acks": lambda n: -1,
    "allow_auto_topic_creation": lambda n: False,
    "assignment": lambda n: b"assignment",
    "cluster_id": lambda n: n.cluster_id,
    "client_software_name": lambda n: "fuzz",
    "client_software_version": lambda n: "1.0",
    "committed_leader_epoch": lambda n: -1,
    "committed_metadata": lambda n: "metadata",
    "committed_offset": lambda n: 1,
    "config_operation": lambda n: 0,
    "configuration_keys": lambda n: ["retention.ms", "cleanup.policy"],
    "coordinator_keys": lambda n: [n.group],
    "count": lambda n: 3,
    "current_leader_epoch": lambda n: -1,
    "cursor": lambda n: None,
    "duration_filter": lambda n: -1,
    "endpoint_type": lambda n: 1,
    "feature": lambda n: "transaction.version",
    "generation_id": lambda n: -1,
    "generation_id_or_member_epoch": lambda n: -1,
    "group_id": lambda n: n.group,
    "group_instance_id": lambda n: None,
    "groups_names": lambda n: [n.group],
    "host_filter": lambda n: None,
    "include_synonyms": lambda n: True,
    "key": lambda n: n.group,
    "last_fetched_epoch": lambda n: -1,
    "leader_epoch": lambda n: 0,
    "log_start_offset": lambda n: -1,
    "max_bytes": lambda n: 1 << 20,
    "max_num_offsets": lambda n: 1,
    "max_version_level": lambda n: 2,
    "member_epoch": lambda n: -1,
    "member_id": lambda n: n.member,
    "metadata": lambda n: _SUBSCRIPTION,
    "offset": lambda n: 1,
    "operation": lambda n: 3,
    "partition_max_bytes": lambda n: 1 << 20,
    "path": lambda n: n.directory,
    "pattern_type_filter": lambda n: 3,
    "permission_type": lambda n: 3,
    "principal": lambda n: "User:anybody",
    "owner_principal_type": lambda n: "User",
    "principal_name": lambda n: "anybody",
    "principal_type": lambda n: "User",
    "principal_filter": lambda n: None,
    "producer_epoch": lambda n: n.producer_epoch,
    "producer_id": lambda n: n.producer_id,
    "producer_id_filters": lambda n: [],
    "protocol_type": lambda n: "consumer",
    "reason": lambda n: "because",
    "rebalance_timeout_ms": lambda n: 6_000,
    "records": records,
    "replica_directory_id": lambda n: bytes(16),
    "replica_id": lambda n: -1,
    "replica_state": lambda n: None,
    "response_partition_limit": lambda n: 100,
    "resource_name_filter": lambda n: None,
    "resource_pattern_type": lambda n: 3,
    "resource_type": lambda n: 2,
    "resource_type_filter": lambda n: 2,
    "resource_types": lambda n: [2, 4],
    "retention_time_ms": lambda n: -1,
    "session_epoch": lambda n: -1,
    "session_timeout_ms": lambda n: 6_000,
    "state_filters": lambda n: [],
    "states_filter": lambda n: [],
    "timeout_ms": lambda n: 5_000,
    "topic": lambda n: n.topic,
    "topic_id": lambda n: n.topic_id,
    "topic_names": lambda n: [n.topic],
    "transaction_timeout_ms": lambda n: 60_000,
    "transactional_id": lambda n: n.transactional_id,
    "transactional_id_pattern": lambda n: None,
    "transactional_ids": lambda n: [n.transactional_id],
    "types_filter": lambda n: [],
    "upgrade_type": lambda n: 1,
    "v3_and_below_producer_epoch": lambda n: n.producer_epoch,
    "v3_and_below_producer_id": lambda n: n.producer_id,
    "v3_and_below_transactional_id": lambda n: n.transactional_id,
    "validate_only": lambda n: True,
}

_OF_API: Final[Mapping[tuple[ApiKey, str], Filler]] = {
    (K.PRODUCE, "transactional_id"): lambda n: None,
    (K.API_VERSIONS, "node_id"): lambda n: -1 if n.cluster_id is None else n.broker_id,
    (K.FETCH, "cluster_id"): lambda n: None,
    (K.FETCH, "forgotten_topics_data"): lambda n: [],
    (K.LIST_OFFSETS, "timestamp"): lambda n: n.timestamp_ms,
    (K.OFFSET_COMMIT, "commit_timestamp"): lambda n: -1,
    (K.JOIN_GROUP, "name"): lambda n: "range",
    (K.SYNC_GROUP, "generation_id"): lambda n: 1,
    (K.SYNC_GROUP, "protocol_name"): lambda n: "range",
    (K.HEARTBEAT, "generation_id"): lambda n: 1,
    (K.DESCRIBE_GROUPS, "groups"): lambda n: [n.group],
    (K.CREATE_TOPICS, "num_partitions"): lambda n: 2,
    (K.CREATE_TOPICS, "replication_factor"): lambda n: 1,
    (K.CREATE_TOPICS, "assignments"): lambda n: [],
    (K.CREATE_PARTITIONS, "assignments"): lambda n: None,
    (K.INIT_PRODUCER_ID, "producer_id"): lambda n: -1,
    (K.INIT_PRODUCER_ID, "producer_epoch"): lambda n: -1,
    (K.SASL_HANDSHAKE, "mechanism"): lambda n: "PLAIN",
    (K.SASL_AUTHENTICATE, "auth_bytes"): lambda n: b"\0alice\0secret",
    (K.CREATE_DELEGATION_TOKEN, "max_lifetime_ms"): lambda n: -1,
    (K.ALTER_USER_SCRAM_CREDENTIALS, "mechanism"): lambda n: 1,
    (K.ALTER_USER_SCRAM_CREDENTIALS, "iterations"): lambda n: 4096,
    (K.ALTER_USER_SCRAM_CREDENTIALS, "salt"): lambda n: b"salt",
    (K.ALTER_USER_SCRAM_CREDENTIALS, "salted_password"): lambda n: b"salted password",
    (K.CREATE_ACLS, "resource_type"): lambda n: 2,
    (K.CREATE_ACLS, "host"): lambda n: "*",
}

_OF_PATH: Final[Mapping[tuple[ApiKey, str], Filler]] = {
    (K.CREATE_TOPICS, "topics.name"): lambda n: n.new_topic,
    (K.ALTER_USER_SCRAM_CREDENTIALS, "deletions.name"): lambda n: "nobody",
    (K.CREATE_TOPICS, "topics.configs.name"): lambda n: "retention.ms",
    (K.CREATE_TOPICS, "topics.configs.value"): lambda n: "1000000",
    (K.ALTER_CONFIGS, "resources.configs.name"): lambda n: "retention.ms",
    (K.ALTER_CONFIGS, "resources.configs.value"): lambda n: "1000000",
    (K.INCREMENTAL_ALTER_CONFIGS, "resources.configs.name"): lambda n: "retention.ms",
    (K.INCREMENTAL_ALTER_CONFIGS, "resources.configs.value"): lambda n: "1000000",
    (K.ALTER_PARTITION_REASSIGNMENTS, "topics.partitions.replicas"): lambda n: [n.broker_id],
    (K.FETCH, "topics.partitions.replica_directory_id"): lambda n: bytes(16),
}


def valid_request(key: ApiKey, version: int, names: Names) -> Any:
    """The request. A topic is named either by name or by id, as the version wants it."""
    return _filled(key, tree_of(key, version), names, ())


@cache
def tree_of(key: ApiKey, version: int) -> Fields:
    """The declared tree of a request."""
    tree = request_api(key).at(version)
    assert isinstance(tree, Fields)
    return tree


def _filled(key: ApiKey, node: Fields, names: Names, path: tuple[str, ...]) -> Any:
    value: Any = node.cls()
    members = dict(node.fields)
    for name, member in members.items():
        setattr(value, name, _value(key, member, names, (*path, name)))
    # Two ways to name a topic exclude each other.
    if "topic_id" in members and "name" in members:
        value.topic_id = bytes(16)
    return value


def _value(key: ApiKey, node: Wire, names: Names, path: tuple[str, ...]) -> Any:
    name = path[-1]
    fill = _OF_PATH.get((key, ".".join(path))) or _OF_API.get((key, name)) or _BY_NAME.get(name)
    if fill is not None and (name != "metadata" or isinstance(node, Blob)):
        return fill(names)
    if isinstance(node, ArrayOf):
        return [_value(key, node.element, names, path)]
    if isinstance(node, Fields):
        return _filled(key, node, names, path)
    if isinstance(node, Text):
        return names.topic
    if isinstance(node, Blob):
        return b""
    if node.code == "16s":
        return names.topic_id
    return False if node.code == "?" else 0


def advertised_versions(
    advertised: Mapping[ApiKey, tuple[int, int]],
) -> Iterator[tuple[ApiKey, int]]:
    """Every API in every version of a table."""
    for key, (first, last) in sorted(advertised.items()):
        for version in range(first, last + 1):
            yield ApiKey(key), version
