"""WriteTxnMarkers (key 27): have another broker append the markers of transactions.

* v1 is flexible; v2 adds the transaction version.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int8, Int16, Int32, Int64, Str, V

# fmt: off

WritableTxnMarkerTopic = Group(
    "WritableTxnMarkerTopic",
    "name"              / V("0+", Str),
    "partition_indexes" / V("0+", Array(Int32)),
)

WritableTxnMarker = Group(
    "WritableTxnMarker",
    "producer_id"         / V("0+", Int64),
    "producer_epoch"      / V("0+", Int16),
    "transaction_result"  / V("0+", Bool),
    "topics"              / V("0+", Array(WritableTxnMarkerTopic)),
    "coordinator_epoch"   / V("0+", Int32),
    "transaction_version" / V("2+", Int8),
)

WriteTxnMarkersRequest = Api(
    ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkersRequest", "0-2", "1+",
    "markers" / V("0+", Array(WritableTxnMarker)),
)

WritableTxnMarkerPartitionResult = Group(
    "WritableTxnMarkerPartitionResult",
    "partition_index" / V("0+", Int32),
    "error_code"      / V("0+", Int16),
)

WritableTxnMarkerTopicResult = Group(
    "WritableTxnMarkerTopicResult",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(WritableTxnMarkerPartitionResult)),
)

WritableTxnMarkerResult = Group(
    "WritableTxnMarkerResult",
    "producer_id" / V("0+", Int64),
    "topics"      / V("0+", Array(WritableTxnMarkerTopicResult)),
)

WriteTxnMarkersResponse = Api(
    ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkersResponse", "0-2", "1+",
    "markers" / V("0+", Array(WritableTxnMarkerResult)),
)
