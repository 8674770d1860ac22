"""AlterPartition (key 56): a leader asks the controller to change the ISR of partitions.

Between brokers only.

* v1 adds the leader's recovery state.
* v2 names topics by id; it may answer INELIGIBLE_REPLICA, NEW_LEADER_ELECTED, UNKNOWN_TOPIC_ID.
* v3 names the broker epoch of each member of the new ISR, -1 where it is not known.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Int64, Str, Uuid, V

# fmt: off

BrokerState = Group(
    "BrokerState",
    "broker_id"    / V("3+", Int32),
    "broker_epoch" / V("3+", Int64, default=-1),
)

AlteredPartition = Group(
    "AlteredPartition",
    "partition_index"       / V("0+",  Int32),
    "leader_epoch"          / V("0+",  Int32),
    "new_isr"               / V("0-2", Array(Int32)),
    "new_isr_with_epochs"   / V("3+",  Array(BrokerState)),
    "leader_recovery_state" / V("1+",  Int8),
    "partition_epoch"       / V("0+",  Int32),
)

AlteredTopic = Group(
    "AlteredTopic",
    "topic_name" / V("0-1", Str),
    "topic_id"   / V("2+",  Uuid),
    "partitions" / V("0+",  Array(AlteredPartition)),
)

AlterPartitionRequest = Api(
    ApiKey.ALTER_PARTITION, "AlterPartitionRequest", "0-3", "0+",
    "broker_id"    / V("0+", Int32),
    "broker_epoch" / V("0+", Int64, default=-1),
    "topics"       / V("0+", Array(AlteredTopic)),
)

AlteredPartitionResult = Group(
    "AlteredPartitionResult",
    "partition_index"       / V("0+", Int32),
    "error_code"            / V("0+", Int16),
    "leader_id"             / V("0+", Int32),
    "leader_epoch"          / V("0+", Int32),
    "isr"                   / V("0+", Array(Int32)),
    "leader_recovery_state" / V("1+", Int8),
    "partition_epoch"       / V("0+", Int32),
)

AlteredTopicResult = Group(
    "AlteredTopicResult",
    "topic_name" / V("0-1", Str),
    "topic_id"   / V("2+",  Uuid),
    "partitions" / V("0+",  Array(AlteredPartitionResult)),
)

AlterPartitionResponse = Api(
    ApiKey.ALTER_PARTITION, "AlterPartitionResponse", "0-3", "0+",
    "throttle_time_ms" / V("0+", Int32),
    "error_code"       / V("0+", Int16),
    "topics"           / V("0+", Array(AlteredTopicResult)),
)
