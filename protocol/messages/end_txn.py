"""EndTxn (key 26): commit or abort a transaction.

* v2 may answer PRODUCER_FENCED; v3 is flexible; v4 may answer TRANSACTION_ABORTABLE.
* v5 returns the producer id and epoch for the next transaction: the epoch rises with every
  transaction (KIP-890).
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Bool, Int16, Int32, Int64, Str, V

# fmt: off

EndTxnRequest = Api(
    ApiKey.END_TXN, "EndTxnRequest", "0-5", "3+",
    "transactional_id" / V("0+", Str),
    "producer_id"      / V("0+", Int64),
    "producer_epoch"   / V("0+", Int16),
    "committed"        / V("0+", Bool),
)

EndTxnResponse = Api(
    ApiKey.END_TXN, "EndTxnResponse", "0-5", "3+",
    "throttle_time_ms" / V("0+", Int32),
    "error_code"       / V("0+", Int16),
    "producer_id"      / V("5+", Int64, default=-1),
    "producer_epoch"   / V("5+", Int16, default=-1),
)
