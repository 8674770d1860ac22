"""Metadata (key 3): describe brokers, topics and the leaders of partitions.

In v0 an empty array asks for all topics. From v1 on null asks for all, and an empty array for none.

* v1 adds racks, the controller and the internal flag; v2 the cluster id; v3 the throttle time.
* v4 adds allow_auto_topic_creation; for older requests the broker's configuration decides.
* v5 adds offline replicas; v7 leader epochs.
* v8 adds authorized operations (those of the cluster until v10; then DescribeCluster has them).
* v9 is flexible.
* v10 adds topic ids to the response; v12 allows to ask by id, with a null name.
* v13 adds an error for the response as a whole.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int16, Int32, Str, Uuid, V

# fmt: off

MetadataRequestTopic = Group(
    "MetadataRequestTopic",
    "topic_id" / V("10+", Uuid),
    "name"     / V("0+",  Str, nullable="10+"),
)

MetadataRequest = Api(
    ApiKey.METADATA, "MetadataRequest", "0-13", "9+",
    "topics"                                / V("0+",   Array(MetadataRequestTopic), nullable="1+"),
    "allow_auto_topic_creation"             / V("4+",   Bool, default=True),
    "include_cluster_authorized_operations" / V("8-10", Bool),
    "include_topic_authorized_operations"   / V("8+",   Bool),
)

MetadataResponseBroker = Group(
    "MetadataResponseBroker",
    "node_id" / V("0+", Int32),
    "host"    / V("0+", Str),
    "port"    / V("0+", Int32),
    "rack"    / V("1+", Str, nullable="1+"),
)

MetadataResponsePartition = Group(
    "MetadataResponsePartition",
    "error_code"       / V("0+", Int16),
    "partition_index"  / V("0+", Int32),
    "leader_id"        / V("0+", Int32),
    "leader_epoch"     / V("7+", Int32, default=-1),
    "replica_nodes"    / V("0+", Array(Int32)),
    "isr_nodes"        / V("0+", Array(Int32)),
    "offline_replicas" / V("5+", Array(Int32)),
)

MetadataResponseTopic = Group(
    "MetadataResponseTopic",
    "error_code"                  / V("0+",  Int16),
    "name"                        / V("0+",  Str, nullable="12+"),
    "topic_id"                    / V("10+", Uuid),
    "is_internal"                 / V("1+",  Bool),
    "partitions"                  / V("0+",  Array(MetadataResponsePartition)),
    "topic_authorized_operations" / V("8+",  Int32, default=-2147483648),
)

MetadataResponse = Api(
    ApiKey.METADATA, "MetadataResponse", "0-13", "9+",
    "throttle_time_ms"              / V("3+",   Int32),
    "brokers"                       / V("0+",   Array(MetadataResponseBroker)),
    "cluster_id"                    / V("2+",   Str, nullable="2+"),
    "controller_id"                 / V("1+",   Int32, default=-1),
    "topics"                        / V("0+",   Array(MetadataResponseTopic, may_be_encoded=True)),
    "cluster_authorized_operations" / V("8-10", Int32, default=-2147483648),
    "error_code"                    / V("13+",  Int16),
)
