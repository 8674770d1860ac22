"""ListPartitionReassignments (key 46): list the partitions that are being moved to other brokers.

Flexible from its first version.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Str, V

# fmt: off

ListPartitionReassignmentsTopics = Group(
    "ListPartitionReassignmentsTopics",
    "name"              / V("0+", Str),
    "partition_indexes" / V("0+", Array(Int32)),
)

ListPartitionReassignmentsRequest = Api(
    ApiKey.LIST_PARTITION_REASSIGNMENTS, "ListPartitionReassignmentsRequest", "0", "0+",
    "timeout_ms" / V("0+", Int32, default=60000),
    "topics"     / V("0+", Array(ListPartitionReassignmentsTopics), nullable="0+", default=None),
)

OngoingPartitionReassignment = Group(
    "OngoingPartitionReassignment",
    "partition_index"   / V("0+", Int32),
    "replicas"          / V("0+", Array(Int32)),
    "adding_replicas"   / V("0+", Array(Int32)),
    "removing_replicas" / V("0+", Array(Int32)),
)

OngoingTopicReassignment = Group(
    "OngoingTopicReassignment",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(OngoingPartitionReassignment)),
)

ListPartitionReassignmentsResponse = Api(
    ApiKey.LIST_PARTITION_REASSIGNMENTS, "ListPartitionReassignmentsResponse", "0", "0+",
    "throttle_time_ms" / V("0+", Int32),
    "error_code"       / V("0+", Int16),
    "error_message"    / V("0+", Str, nullable="0+"),
    "topics"           / V("0+", Array(OngoingTopicReassignment)),
)
