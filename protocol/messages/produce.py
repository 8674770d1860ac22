"""Produce (key 0): append record batches to partitions.

With acks=0 there is no response.

* v0 and v1 carry message sets of magic 0, v2 of magic 1, v3 and later batches of magic 2. v3 adds
  the transactional id.
* v1 adds the throttle time; v2 the append time; v5 the log start offset.
* v7 allows zstd. v8 adds which records were refused, and why.
* v9 is flexible.
* v10 names the new leader: tagged current_leader and node_endpoints (KIP-951).
* v11 may answer TRANSACTION_ABORTABLE; in v12 the request itself adds its partitions to the
  transaction (KIP-890).
* v13 names topics by id only.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Int64, Records, Str, Uuid, V

# fmt: off

PartitionProduceData = Group(
    "PartitionProduceData",
    "index"   / V("0+", Int32),
    "records" / V("0+", Records, nullable="0+"),
)

TopicProduceData = Group(
    "TopicProduceData",
    "name"           / V("0-12", Str),
    "topic_id"       / V("13+",  Uuid),
    "partition_data" / V("0+",   Array(PartitionProduceData)),
)

ProduceRequest = Api(
    ApiKey.PRODUCE, "ProduceRequest", "0-13", "9+",
    "transactional_id" / V("3+", Str, nullable="3+"),
    "acks"             / V("0+", Int16),
    "timeout_ms"       / V("0+", Int32),
    "topic_data"       / V("0+", Array(TopicProduceData)),
)

BatchIndexAndErrorMessage = Group(
    "BatchIndexAndErrorMessage",
    "batch_index"               / V("8+", Int32),
    "batch_index_error_message" / V("8+", Str, nullable="8+"),
)

LeaderIdAndEpoch = Group(
    "LeaderIdAndEpoch",
    "leader_id"    / V("10+", Int32, default=-1),
    "leader_epoch" / V("10+", Int32, default=-1),
)

PartitionProduceResponse = Group(
    "PartitionProduceResponse",
    "index"              / V("0+",  Int32),
    "error_code"         / V("0+",  Int16),
    "base_offset"        / V("0+",  Int64),
    "log_append_time_ms" / V("2+",  Int64, default=-1),
    "log_start_offset"   / V("5+",  Int64, default=-1),
    "record_errors"      / V("8+",  Array(BatchIndexAndErrorMessage)),
    "error_message"      / V("8+",  Str, nullable="8+"),
    "current_leader"     / V("10+", LeaderIdAndEpoch, tag=0),
)

TopicProduceResponse = Group(
    "TopicProduceResponse",
    "name"                / V("0-12", Str),
    "topic_id"            / V("13+",  Uuid),
    "partition_responses" / V("0+",   Array(PartitionProduceResponse)),
)

NodeEndpoint = Group(
    "NodeEndpoint",
    "node_id" / V("10+", Int32),
    "host"    / V("10+", Str),
    "port"    / V("10+", Int32),
    "rack"    / V("10+", Str, nullable="10+"),
)

ProduceResponse = Api(
    ApiKey.PRODUCE, "ProduceResponse", "0-13", "9+",
    "responses"        / V("0+",  Array(TopicProduceResponse)),
    "throttle_time_ms" / V("1+",  Int32),
    "node_endpoints"   / V("10+", Array(NodeEndpoint), tag=0),
)
