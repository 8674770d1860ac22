"""AddOffsetsToTxn (key 25): add a group's offsets to a transaction.

* v2 may answer PRODUCER_FENCED; v3 is flexible; v4 may answer TRANSACTION_ABORTABLE.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Int16, Int32, Int64, Str, V

# fmt: off

AddOffsetsToTxnRequest = Api(
    ApiKey.ADD_OFFSETS_TO_TXN, "AddOffsetsToTxnRequest", "0-4", "3+",
    "transactional_id" / V("0+", Str),
    "producer_id"      / V("0+", Int64),
    "producer_epoch"   / V("0+", Int16),
    "group_id"         / V("0+", Str),
)

AddOffsetsToTxnResponse = Api(
    ApiKey.ADD_OFFSETS_TO_TXN, "AddOffsetsToTxnResponse", "0-4", "3+",
    "throttle_time_ms" / V("0+", Int32),
    "error_code"       / V("0+", Int16),
)
