"""DescribeProducers (key 61): describe the active producers of partitions.

One version, flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Int64, Str, V

# fmt: off

TopicRequest = Group(
    "TopicRequest",
    "name"              / V("0+", Str),
    "partition_indexes" / V("0+", Array(Int32)),
)

DescribeProducersRequest = Api(
    ApiKey.DESCRIBE_PRODUCERS, "DescribeProducersRequest", "0", "0+",
    "topics" / V("0+", Array(TopicRequest)),
)

ProducerState = Group(
    "ProducerState",
    "producer_id"              / V("0+", Int64),
    "producer_epoch"           / V("0+", Int32),
    "last_sequence"            / V("0+", Int32, default=-1),
    "last_timestamp"           / V("0+", Int64, default=-1),
    "coordinator_epoch"        / V("0+", Int32),
    "current_txn_start_offset" / V("0+", Int64, default=-1),
)

PartitionResponse = Group(
    "PartitionResponse",
    "partition_index"  / V("0+", Int32),
    "error_code"       / V("0+", Int16),
    "error_message"    / V("0+", Str, nullable="0+"),
    "active_producers" / V("0+", Array(ProducerState)),
)

TopicResponse = Group(
    "TopicResponse",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(PartitionResponse)),
)

DescribeProducersResponse = Api(
    ApiKey.DESCRIBE_PRODUCERS, "DescribeProducersResponse", "0", "0+",
    "throttle_time_ms" / V("0+", Int32),
    "topics"           / V("0+", Array(TopicResponse)),
)
