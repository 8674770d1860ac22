"""UpdateMetadata (key 6): the controller tells a broker of the cluster, for what clients ask it.

Between brokers only, of a cluster on ZooKeeper; Kafka 4 dropped it. The live brokers are always
named all; partitions only where something changed, with leader -2 for one that is deleted.

* v0 has one address per broker; v1 adds endpoints, v2 racks, v3 listener names.
* v4 adds offline replicas; v5 adds the broker epoch and groups partitions by topic.
* v6 is flexible; v7 adds topic ids; v8 says whether the controller is one of KRaft.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int8, Int16, Int32, Int64, Str, Uuid, V

# fmt: off

UpdateMetadataPartitionState = Group(
    "UpdateMetadataPartitionState",
    "topic_name"       / V("0-4", Str),
    "partition_index"  / V("0+",  Int32),
    "controller_epoch" / V("0+",  Int32),
    "leader"           / V("0+",  Int32),
    "leader_epoch"     / V("0+",  Int32),
    "isr"              / V("0+",  Array(Int32)),
    "zk_version"       / V("0+",  Int32),
    "replicas"         / V("0+",  Array(Int32)),
    "offline_replicas" / V("4+",  Array(Int32)),
)

UpdateMetadataTopicState = Group(
    "UpdateMetadataTopicState",
    "topic_name"       / V("5+", Str),
    "topic_id"         / V("7+", Uuid),
    "partition_states" / V("5+", Array(UpdateMetadataPartitionState)),
)

UpdateMetadataEndpoint = Group(
    "UpdateMetadataEndpoint",
    "port"              / V("1+", Int32),
    "host"              / V("1+", Str),
    "listener"          / V("3+", Str),
    "security_protocol" / V("1+", Int16),
)

UpdateMetadataBroker = Group(
    "UpdateMetadataBroker",
    "id"        / V("0+", Int32),
    "v0_host"   / V("0",  Str),
    "v0_port"   / V("0",  Int32),
    "endpoints" / V("1+", Array(UpdateMetadataEndpoint)),
    "rack"      / V("2+", Str, nullable="0+"),
)

UpdateMetadataRequest = Api(
    ApiKey.UPDATE_METADATA, "UpdateMetadataRequest", "0-8", "6+",
    "controller_id"              / V("0+",  Int32),
    "is_k_raft_controller"       / V("8+",  Bool),
    "type"                       / V("8+",  Int8, tag=0),
    "controller_epoch"           / V("0+",  Int32),
    "broker_epoch"               / V("5+",  Int64, default=-1),
    "ungrouped_partition_states" / V("0-4", Array(UpdateMetadataPartitionState)),
    "topic_states"               / V("5+",  Array(UpdateMetadataTopicState, may_be_encoded=True)),
    "live_brokers"               / V("0+",  Array(UpdateMetadataBroker)),
)

UpdateMetadataResponse = Api(
    ApiKey.UPDATE_METADATA, "UpdateMetadataResponse", "0-8", "6+",
    "error_code" / V("0+", Int16),
)
