"""LeaderAndIsr (key 4): the controller tells a broker which partitions to lead and to follow.

Between brokers only, of a cluster on ZooKeeper; Kafka 4 dropped it. Replicas that the request does
not name keep what they have, unless its type says that it is complete.

* v1 adds is_new; v2 adds the broker epoch, against requests for the broker's life before, and
  groups partitions by topic.
* v3 adds what a reassignment adds and removes; v4 is flexible.
* v5 adds topic ids and the type: 0 unknown, 1 incremental, 2 full. Its response groups partitions
  by topic id.
* v6 adds the leader's recovery state; v7 says whether the controller is one of KRaft.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int8, Int16, Int32, Int64, Str, Uuid, V

# fmt: off

LeaderAndIsrPartitionState = Group(
    "LeaderAndIsrPartitionState",
    "topic_name"            / V("0-1", Str),
    "partition_index"       / V("0+",  Int32),
    "controller_epoch"      / V("0+",  Int32),
    "leader"                / V("0+",  Int32),
    "leader_epoch"          / V("0+",  Int32),
    "isr"                   / V("0+",  Array(Int32)),
    "partition_epoch"       / V("0+",  Int32),
    "replicas"              / V("0+",  Array(Int32)),
    "adding_replicas"       / V("3+",  Array(Int32)),
    "removing_replicas"     / V("3+",  Array(Int32)),
    "is_new"                / V("1+",  Bool),
    "leader_recovery_state" / V("6+",  Int8),
)

LeaderAndIsrTopicState = Group(
    "LeaderAndIsrTopicState",
    "topic_name"       / V("2+", Str),
    "topic_id"         / V("5+", Uuid),
    "partition_states" / V("2+", Array(LeaderAndIsrPartitionState)),
)

LeaderAndIsrLiveLeader = Group(
    "LeaderAndIsrLiveLeader",
    "broker_id" / V("0+", Int32),
    "host_name" / V("0+", Str),
    "port"      / V("0+", Int32),
)

LeaderAndIsrRequest = Api(
    ApiKey.LEADER_AND_ISR, "LeaderAndIsrRequest", "0-7", "4+",
    "controller_id"              / V("0+",  Int32),
    "is_k_raft_controller"       / V("7+",  Bool),
    "controller_epoch"           / V("0+",  Int32),
    "broker_epoch"               / V("2+",  Int64, default=-1),
    "type"                       / V("5+",  Int8),
    "ungrouped_partition_states" / V("0-1", Array(LeaderAndIsrPartitionState)),
    "topic_states"               / V("2+",  Array(LeaderAndIsrTopicState)),
    "live_leaders"               / V("0+",  Array(LeaderAndIsrLiveLeader)),
)

LeaderAndIsrPartitionError = Group(
    "LeaderAndIsrPartitionError",
    "topic_name"      / V("0-4", Str),
    "partition_index" / V("0+",  Int32),
    "error_code"      / V("0+",  Int16),
)

LeaderAndIsrTopicError = Group(
    "LeaderAndIsrTopicError",
    "topic_id"         / V("5+", Uuid),
    "partition_errors" / V("5+", Array(LeaderAndIsrPartitionError)),
)

LeaderAndIsrResponse = Api(
    ApiKey.LEADER_AND_ISR, "LeaderAndIsrResponse", "0-7", "4+",
    "error_code"       / V("0+",  Int16),
    "partition_errors" / V("0-4", Array(LeaderAndIsrPartitionError)),
    "topics"           / V("5+",  Array(LeaderAndIsrTopicError)),
)
