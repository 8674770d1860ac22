"""DescribeLogDirs (key 35): describe log directories and the partitions in them.

* v2 is flexible; v3 adds a top-level error; v4 sizes of the volumes; v5 whether a directory is
  cordoned.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int16, Int32, Int64, Str, V

# fmt: off

DescribableLogDirTopic = Group(
    "DescribableLogDirTopic",
    "topic"      / V("0+", Str),
    "partitions" / V("0+", Array(Int32)),
)

DescribeLogDirsRequest = Api(
    ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirsRequest", "0-5", "2+",
    "topics" / V("0+", Array(DescribableLogDirTopic), nullable="0+"),
)

DescribeLogDirsPartition = Group(
    "DescribeLogDirsPartition",
    "partition_index" / V("0+", Int32),
    "partition_size"  / V("0+", Int64),
    "offset_lag"      / V("0+", Int64),
    "is_future_key"   / V("0+", Bool),
)

DescribeLogDirsTopic = Group(
    "DescribeLogDirsTopic",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(DescribeLogDirsPartition)),
)

DescribeLogDirsResult = Group(
    "DescribeLogDirsResult",
    "error_code"   / V("0+", Int16),
    "log_dir"      / V("0+", Str),
    "topics"       / V("0+", Array(DescribeLogDirsTopic)),
    "total_bytes"  / V("4+", Int64, default=-1),
    "usable_bytes" / V("4+", Int64, default=-1),
    "is_cordoned"  / V("5+", Bool),
)

DescribeLogDirsResponse = Api(
    ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirsResponse", "0-5", "2+",
    "throttle_time_ms" / V("0+", Int32),
    "error_code"       / V("3+", Int16),
    "results"          / V("0+", Array(DescribeLogDirsResult)),
)
