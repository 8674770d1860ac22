"""ListTransactions (key 66): list the transactions that a broker coordinates.

Flexible from its first version.

* v1 adds the filter by duration; v2 by a pattern of transactional ids (KIP-1152), which may be
  answered with INVALID_REGULAR_EXPRESSION.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Int64, Str, V

# fmt: off

ListTransactionsRequest = Api(
    ApiKey.LIST_TRANSACTIONS, "ListTransactionsRequest", "0-2", "0+",
    "state_filters"            / V("0+", Array(Str)),
    "producer_id_filters"      / V("0+", Array(Int64)),
    "duration_filter"          / V("1+", Int64, default=-1),
    "transactional_id_pattern" / V("2+", Str, nullable="2+"),
)

TransactionState = Group(
    "TransactionState",
    "transactional_id"  / V("0+", Str),
    "producer_id"       / V("0+", Int64),
    "transaction_state" / V("0+", Str),
)

ListTransactionsResponse = Api(
    ApiKey.LIST_TRANSACTIONS, "ListTransactionsResponse", "0-2", "0+",
    "throttle_time_ms"      / V("0+", Int32),
    "error_code"            / V("0+", Int16),
    "unknown_state_filters" / V("0+", Array(Str)),
    "transaction_states"    / V("0+", Array(TransactionState)),
)
