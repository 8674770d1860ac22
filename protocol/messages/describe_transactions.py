"""DescribeTransactions (key 65): describe transactions by transactional id.

One version, flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Int64, Str, V

# fmt: off

DescribeTransactionsRequest = Api(
    ApiKey.DESCRIBE_TRANSACTIONS, "DescribeTransactionsRequest", "0", "0+",
    "transactional_ids" / V("0+", Array(Str)),
)

TopicData = Group(
    "TopicData",
    "topic"      / V("0+", Str),
    "partitions" / V("0+", Array(Int32)),
)

TransactionState = Group(
    "TransactionState",
    "error_code"                / V("0+", Int16),
    "transactional_id"          / V("0+", Str),
    "transaction_state"         / V("0+", Str),
    "transaction_timeout_ms"    / V("0+", Int32),
    "transaction_start_time_ms" / V("0+", Int64),
    "producer_id"               / V("0+", Int64),
    "producer_epoch"            / V("0+", Int16),
    "topics"                    / V("0+", Array(TopicData)),
)

DescribeTransactionsResponse = Api(
    ApiKey.DESCRIBE_TRANSACTIONS, "DescribeTransactionsResponse", "0", "0+",
    "throttle_time_ms"   / V("0+", Int32),
    "transaction_states" / V("0+", Array(TransactionState)),
)
