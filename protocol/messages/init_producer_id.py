"""InitProducerId (key 22): obtain a producer id and epoch.

* v2 is flexible.
* v3 lets a producer bring its id and epoch, to get the next epoch (KIP-360).
* v4 may answer PRODUCER_FENCED, v5 TRANSACTION_ABORTABLE.

v6 (two-phase commit, KIP-939) is unstable in Kafka 4.3 and not declared.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Int16, Int32, Int64, Str, V

# fmt: off

InitProducerIdRequest = Api(
    ApiKey.INIT_PRODUCER_ID, "InitProducerIdRequest", "0-5", "2+",
    "transactional_id"       / V("0+", Str, nullable="0+"),
    "transaction_timeout_ms" / V("0+", Int32),
    "producer_id"            / V("3+", Int64, default=-1),
    "producer_epoch"         / V("3+", Int16, default=-1),
)

InitProducerIdResponse = Api(
    ApiKey.INIT_PRODUCER_ID, "InitProducerIdResponse", "0-5", "2+",
    "throttle_time_ms" / V("0+", Int32),
    "error_code"       / V("0+", Int16),
    "producer_id"      / V("0+", Int64, default=-1),
    "producer_epoch"   / V("0+", Int16),
)
