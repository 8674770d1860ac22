"""DeleteRecords (key 21): raise the log start offset.

Offset -1 stands for the high watermark.

* v2 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Int64, Str, V

# fmt: off

DeleteRecordsPartition = Group(
    "DeleteRecordsPartition",
    "partition_index" / V("0+", Int32),
    "offset"          / V("0+", Int64),
)

DeleteRecordsTopic = Group(
    "DeleteRecordsTopic",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(DeleteRecordsPartition)),
)

DeleteRecordsRequest = Api(
    ApiKey.DELETE_RECORDS, "DeleteRecordsRequest", "0-2", "2+",
    "topics"     / V("0+", Array(DeleteRecordsTopic)),
    "timeout_ms" / V("0+", Int32),
)

DeleteRecordsPartitionResult = Group(
    "DeleteRecordsPartitionResult",
    "partition_index" / V("0+", Int32),
    "low_watermark"   / V("0+", Int64),
    "error_code"      / V("0+", Int16),
)

DeleteRecordsTopicResult = Group(
    "DeleteRecordsTopicResult",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(DeleteRecordsPartitionResult)),
)

DeleteRecordsResponse = Api(
    ApiKey.DELETE_RECORDS, "DeleteRecordsResponse", "0-2", "2+",
    "throttle_time_ms" / V("0+", Int32),
    "topics"           / V("0+", Array(DeleteRecordsTopicResult)),
)
