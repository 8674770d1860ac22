"""AddPartitionsToTxn (key 24): add partitions to a transaction.

Clients send v0-v3. Brokers send v4 and v5, which add or verify partitions of many transactions at
once; the fields of the old form have the suffix v3_and_below.

* v2 may answer PRODUCER_FENCED; v3 is flexible; v4 adds the batched form; v5 may answer
  TRANSACTION_ABORTABLE.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int16, Int32, Int64, Str, V

# fmt: off

AddPartitionsToTxnTopic = Group(
    "AddPartitionsToTxnTopic",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(Int32)),
)

AddPartitionsToTxnTransaction = Group(
    "AddPartitionsToTxnTransaction",
    "transactional_id" / V("4+", Str),
    "producer_id"      / V("4+", Int64),
    "producer_epoch"   / V("4+", Int16),
    "verify_only"      / V("4+", Bool),
    "topics"           / V("4+", Array(AddPartitionsToTxnTopic)),
)

AddPartitionsToTxnRequest = Api(
    ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxnRequest", "0-5", "3+",
    "transactions"                  / V("4+",  Array(AddPartitionsToTxnTransaction)),
    "v3_and_below_transactional_id" / V("0-3", Str),
    "v3_and_below_producer_id"      / V("0-3", Int64),
    "v3_and_below_producer_epoch"   / V("0-3", Int16),
    "v3_and_below_topics"           / V("0-3", Array(AddPartitionsToTxnTopic)),
)

AddPartitionsToTxnPartitionResult = Group(
    "AddPartitionsToTxnPartitionResult",
    "partition_index"      / V("0+", Int32),
    "partition_error_code" / V("0+", Int16),
)

AddPartitionsToTxnTopicResult = Group(
    "AddPartitionsToTxnTopicResult",
    "name"                 / V("0+", Str),
    "results_by_partition" / V("0+", Array(AddPartitionsToTxnPartitionResult)),
)

AddPartitionsToTxnResult = Group(
    "AddPartitionsToTxnResult",
    "transactional_id" / V("4+", Str),
    "topic_results"    / V("4+", Array(AddPartitionsToTxnTopicResult)),
)

AddPartitionsToTxnResponse = Api(
    ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxnResponse", "0-5", "3+",
    "throttle_time_ms"              / V("0+",  Int32),
    "error_code"                    / V("4+",  Int16),
    "results_by_transaction"        / V("4+",  Array(AddPartitionsToTxnResult)),
    "results_by_topic_v3_and_below" / V("0-3", Array(AddPartitionsToTxnTopicResult)),
)
