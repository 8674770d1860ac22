"""DescribeTopicPartitions (key 75): describe topics in pages, with a cursor (KIP-966).

Flexible from its first version.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int16, Int32, Str, Uuid, V

# fmt: off

TopicPartitionsTopic = Group(
    "TopicPartitionsTopic",
    "name" / V("0+", Str),
)

TopicPartitionsCursor = Group(
    "TopicPartitionsCursor",
    "topic_name"      / V("0+", Str),
    "partition_index" / V("0+", Int32),
)

DescribeTopicPartitionsRequest = Api(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitionsRequest", "0", "0+",
    "topics"                   / V("0+", Array(TopicPartitionsTopic)),
    "response_partition_limit" / V("0+", Int32, default=2000),
    "cursor"                   / V("0+", TopicPartitionsCursor, nullable="0+", default=None),
)

DescribedTopicPartition = Group(
    "DescribedTopicPartition",
    "error_code"               / V("0+", Int16),
    "partition_index"          / V("0+", Int32),
    "leader_id"                / V("0+", Int32),
    "leader_epoch"             / V("0+", Int32, default=-1),
    "replica_nodes"            / V("0+", Array(Int32)),
    "isr_nodes"                / V("0+", Array(Int32)),
    "eligible_leader_replicas" / V("0+", Array(Int32), nullable="0+", default=None),
    "last_known_elr"           / V("0+", Array(Int32), nullable="0+", default=None),
    "offline_replicas"         / V("0+", Array(Int32)),
)

DescribedTopic = Group(
    "DescribedTopic",
    "error_code"                  / V("0+", Int16),
    "name"                        / V("0+", Str, nullable="0+"),
    "topic_id"                    / V("0+", Uuid),
    "is_internal"                 / V("0+", Bool),
    "partitions"                  / V("0+", Array(DescribedTopicPartition)),
    "topic_authorized_operations" / V("0+", Int32, default=-2147483648),
)

DescribeTopicPartitionsResponse = Api(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitionsResponse", "0", "0+",
    "throttle_time_ms" / V("0+", Int32),
    "topics"           / V("0+", Array(DescribedTopic)),
    "next_cursor"      / V("0+", TopicPartitionsCursor, nullable="0+", default=None),
)
