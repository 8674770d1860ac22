"""StopReplica (key 5): the controller has a broker stop following partitions, or delete them.

Between brokers only, of a cluster on ZooKeeper; Kafka 4 dropped it.

* v1 adds the broker epoch, against requests for the broker's life before, and groups partitions by
  topic; v2 is flexible.
* v3 has the leader epoch and the deletion of each partition; it may answer FENCED_LEADER_EPOCH.
* v4 says whether the controller is one of KRaft.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int16, Int32, Int64, Str, V

# fmt: off

StopReplicaPartitionV0 = Group(
    "StopReplicaPartitionV0",
    "topic_name"      / V("0", Str),
    "partition_index" / V("0", Int32),
)

StopReplicaTopicV1 = Group(
    "StopReplicaTopicV1",
    "name"              / V("1-2", Str),
    "partition_indexes" / V("1-2", Array(Int32)),
)

StopReplicaPartitionState = Group(
    "StopReplicaPartitionState",
    "partition_index"  / V("3+", Int32),
    "leader_epoch"     / V("3+", Int32, default=-1),
    "delete_partition" / V("3+", Bool),
)

StopReplicaTopicState = Group(
    "StopReplicaTopicState",
    "topic_name"       / V("3+", Str),
    "partition_states" / V("3+", Array(StopReplicaPartitionState)),
)

StopReplicaRequest = Api(
    ApiKey.STOP_REPLICA, "StopReplicaRequest", "0-4", "2+",
    "controller_id"        / V("0+",  Int32),
    "is_k_raft_controller" / V("4+",  Bool),
    "controller_epoch"     / V("0+",  Int32),
    "broker_epoch"         / V("1+",  Int64, default=-1),
    "delete_partitions"    / V("0-2", Bool),
    "ungrouped_partitions" / V("0",   Array(StopReplicaPartitionV0)),
    "topics"               / V("1-2", Array(StopReplicaTopicV1)),
    "topic_states"         / V("3+",  Array(StopReplicaTopicState)),
)

StopReplicaPartitionError = Group(
    "StopReplicaPartitionError",
    "topic_name"      / V("0+", Str),
    "partition_index" / V("0+", Int32),
    "error_code"      / V("0+", Int16),
)

StopReplicaResponse = Api(
    ApiKey.STOP_REPLICA, "StopReplicaResponse", "0-4", "2+",
    "error_code"       / V("0+", Int16),
    "partition_errors" / V("0+", Array(StopReplicaPartitionError)),
)
