"""CreatePartitions (key 37): add partitions to topics.

* v2 is flexible; v3 may answer THROTTLING_QUOTA_EXCEEDED.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int16, Int32, Str, V

# fmt: off

CreatePartitionsAssignment = Group(
    "CreatePartitionsAssignment",
    "broker_ids" / V("0+", Array(Int32)),
)

CreatePartitionsTopic = Group(
    "CreatePartitionsTopic",
    "name"        / V("0+", Str),
    "count"       / V("0+", Int32),
    "assignments" / V("0+", Array(CreatePartitionsAssignment), nullable="0+"),
)

CreatePartitionsRequest = Api(
    ApiKey.CREATE_PARTITIONS, "CreatePartitionsRequest", "0-3", "2+",
    "topics"        / V("0+", Array(CreatePartitionsTopic)),
    "timeout_ms"    / V("0+", Int32),
    "validate_only" / V("0+", Bool),
)

CreatePartitionsTopicResult = Group(
    "CreatePartitionsTopicResult",
    "name"          / V("0+", Str),
    "error_code"    / V("0+", Int16),
    "error_message" / V("0+", Str, nullable="0+"),
)

CreatePartitionsResponse = Api(
    ApiKey.CREATE_PARTITIONS, "CreatePartitionsResponse", "0-3", "2+",
    "throttle_time_ms" / V("0+", Int32),
    "results"          / V("0+", Array(CreatePartitionsTopicResult)),
)
