"""TxnOffsetCommit (key 28): store a group's offsets within a transaction.

* v2 adds leader epochs.
* v3 is flexible and adds generation, member id and instance id, so that a zombie is fenced
  (KIP-447).
* v4 may answer TRANSACTION_ABORTABLE; in v5 the request itself adds the partition of
  `__consumer_offsets` to the transaction (KIP-890).
* v6 names topics by id only.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Int64, Str, Uuid, V

# fmt: off

TxnOffsetCommitRequestPartition = Group(
    "TxnOffsetCommitRequestPartition",
    "partition_index"        / V("0+", Int32),
    "committed_offset"       / V("0+", Int64),
    "committed_leader_epoch" / V("2+", Int32, default=-1),
    "committed_metadata"     / V("0+", Str, nullable="0+"),
)

TxnOffsetCommitRequestTopic = Group(
    "TxnOffsetCommitRequestTopic",
    "name"       / V("0-5", Str),
    "topic_id"   / V("6+",  Uuid),
    "partitions" / V("0+",  Array(TxnOffsetCommitRequestPartition)),
)

TxnOffsetCommitRequest = Api(
    ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommitRequest", "0-6", "3+",
    "transactional_id"              / V("0+", Str),
    "group_id"                      / V("0+", Str),
    "producer_id"                   / V("0+", Int64),
    "producer_epoch"                / V("0+", Int16),
    "generation_id_or_member_epoch" / V("3+", Int32, default=-1),
    "member_id"                     / V("3+", Str),
    "group_instance_id"             / V("3+", Str, nullable="3+"),
    "topics"                        / V("0+", Array(TxnOffsetCommitRequestTopic)),
)

TxnOffsetCommitResponsePartition = Group(
    "TxnOffsetCommitResponsePartition",
    "partition_index" / V("0+", Int32),
    "error_code"      / V("0+", Int16),
)

TxnOffsetCommitResponseTopic = Group(
    "TxnOffsetCommitResponseTopic",
    "name"       / V("0-5", Str),
    "topic_id"   / V("6+",  Uuid),
    "partitions" / V("0+",  Array(TxnOffsetCommitResponsePartition)),
)

TxnOffsetCommitResponse = Api(
    ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommitResponse", "0-6", "3+",
    "throttle_time_ms" / V("0+", Int32),
    "topics"           / V("0+", Array(TxnOffsetCommitResponseTopic)),
)
