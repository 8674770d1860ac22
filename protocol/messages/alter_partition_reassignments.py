"""AlterPartitionReassignments (key 45): move partitions to other brokers, or stop doing so.

Flexible from its first version.

* v1 adds whether the replication factor may change.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int16, Int32, Str, V

# fmt: off

ReassignablePartition = Group(
    "ReassignablePartition",
    "partition_index" / V("0+", Int32),
    "replicas"        / V("0+", Array(Int32), nullable="0+", default=None),
)

ReassignableTopic = Group(
    "ReassignableTopic",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(ReassignablePartition)),
)

AlterPartitionReassignmentsRequest = Api(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS, "AlterPartitionReassignmentsRequest", "0-1", "0+",
    "timeout_ms"                      / V("0+", Int32, default=60000),
    "allow_replication_factor_change" / V("1+", Bool, default=True),
    "topics"                          / V("0+", Array(ReassignableTopic)),
)

ReassignablePartitionResponse = Group(
    "ReassignablePartitionResponse",
    "partition_index" / V("0+", Int32),
    "error_code"      / V("0+", Int16),
    "error_message"   / V("0+", Str, nullable="0+"),
)

ReassignableTopicResponse = Group(
    "ReassignableTopicResponse",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(ReassignablePartitionResponse)),
)

AlterPartitionReassignmentsResponse = Api(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS, "AlterPartitionReassignmentsResponse", "0-1", "0+",
    "throttle_time_ms"                / V("0+", Int32),
    "allow_replication_factor_change" / V("1+", Bool, default=True),
    "error_code"                      / V("0+", Int16),
    "error_message"                   / V("0+", Str, nullable="0+"),
    "responses"                       / V("0+", Array(ReassignableTopicResponse)),
)
