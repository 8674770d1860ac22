"""AlterReplicaLogDirs (key 34): move partitions of one broker between its log directories.

* v2 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Str, V

# fmt: off

AlterReplicaLogDirTopic = Group(
    "AlterReplicaLogDirTopic",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(Int32)),
)

AlterReplicaLogDir = Group(
    "AlterReplicaLogDir",
    "path"   / V("0+", Str),
    "topics" / V("0+", Array(AlterReplicaLogDirTopic)),
)

AlterReplicaLogDirsRequest = Api(
    ApiKey.ALTER_REPLICA_LOG_DIRS, "AlterReplicaLogDirsRequest", "0-2", "2+",
    "dirs" / V("0+", Array(AlterReplicaLogDir)),
)

AlterReplicaLogDirPartitionResult = Group(
    "AlterReplicaLogDirPartitionResult",
    "partition_index" / V("0+", Int32),
    "error_code"      / V("0+", Int16),
)

AlterReplicaLogDirTopicResult = Group(
    "AlterReplicaLogDirTopicResult",
    "topic_name" / V("0+", Str),
    "partitions" / V("0+", Array(AlterReplicaLogDirPartitionResult)),
)

AlterReplicaLogDirsResponse = Api(
    ApiKey.ALTER_REPLICA_LOG_DIRS, "AlterReplicaLogDirsResponse", "0-2", "2+",
    "throttle_time_ms" / V("0+", Int32),
    "results"          / V("0+", Array(AlterReplicaLogDirTopicResult)),
)
