"""ControlledShutdown (key 7): a broker that will stop asks the controller to move its leaders.

Between brokers only, of a cluster on ZooKeeper; Kafka 4 dropped it.

* v0 has a header of its own, without a client id; v2 adds the broker epoch; v3 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Int64, Str, V

# fmt: off

ControlledShutdownRequest = Api(
    ApiKey.CONTROLLED_SHUTDOWN, "ControlledShutdownRequest", "0-3", "3+",
    "broker_id"    / V("0+", Int32),
    "broker_epoch" / V("2+", Int64, default=-1),
)

RemainingPartition = Group(
    "RemainingPartition",
    "topic_name"      / V("0+", Str),
    "partition_index" / V("0+", Int32),
)

ControlledShutdownResponse = Api(
    ApiKey.CONTROLLED_SHUTDOWN, "ControlledShutdownResponse", "0-3", "3+",
    "error_code"           / V("0+", Int16),
    "remaining_partitions" / V("0+", Array(RemainingPartition)),
)
