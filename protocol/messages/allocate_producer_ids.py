"""AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids.

Between brokers only.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Int16, Int32, Int64, V

# fmt: off

AllocateProducerIdsRequest = Api(
    ApiKey.ALLOCATE_PRODUCER_IDS, "AllocateProducerIdsRequest", "0", "0+",
    "broker_id"    / V("0+", Int32),
    "broker_epoch" / V("0+", Int64, default=-1),
)

AllocateProducerIdsResponse = Api(
    ApiKey.ALLOCATE_PRODUCER_IDS, "AllocateProducerIdsResponse", "0", "0+",
    "throttle_time_ms"  / V("0+", Int32),
    "error_code"        / V("0+", Int16),
    "producer_id_start" / V("0+", Int64),
    "producer_id_len"   / V("0+", Int32),
)
