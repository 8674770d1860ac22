"""CreateTopics (key 19): create topics.

* v1 adds validate_only and error messages; v2 the throttle time.
* v4 lets -1 stand for the broker's default number of partitions and replicas (KIP-464).
* v5 is flexible and returns the topic as it was made: partitions, replicas and configs (KIP-525).
  The tagged topic_config_error_code says why configs are missing.
* v6 may answer THROTTLING_QUOTA_EXCEEDED; v7 returns the topic's id.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int8, Int16, Int32, Str, Uuid, V

# fmt: off

CreatableReplicaAssignment = Group(
    "CreatableReplicaAssignment",
    "partition_index" / V("0+", Int32),
    "broker_ids"      / V("0+", Array(Int32)),
)

CreatableTopicConfig = Group(
    "CreatableTopicConfig",
    "name"  / V("0+", Str),
    "value" / V("0+", Str, nullable="0+"),
)

CreatableTopic = Group(
    "CreatableTopic",
    "name"               / V("0+", Str),
    "num_partitions"     / V("0+", Int32),
    "replication_factor" / V("0+", Int16),
    "assignments"        / V("0+", Array(CreatableReplicaAssignment)),
    "configs"            / V("0+", Array(CreatableTopicConfig)),
)

CreateTopicsRequest = Api(
    ApiKey.CREATE_TOPICS, "CreateTopicsRequest", "0-7", "5+",
    "topics"        / V("0+", Array(CreatableTopic)),
    "timeout_ms"    / V("0+", Int32, default=60000),
    "validate_only" / V("1+", Bool),
)

CreatableTopicConfigs = Group(
    "CreatableTopicConfigs",
    "name"          / V("5+", Str),
    "value"         / V("5+", Str, nullable="5+"),
    "read_only"     / V("5+", Bool),
    "config_source" / V("5+", Int8, default=-1),
    "is_sensitive"  / V("5+", Bool),
)

CreatableTopicResult = Group(
    "CreatableTopicResult",
    "name"                    / V("0+", Str),
    "topic_id"                / V("7+", Uuid),
    "error_code"              / V("0+", Int16),
    "error_message"           / V("1+", Str, nullable="0+"),
    "topic_config_error_code" / V("5+", Int16, tag=0),
    "num_partitions"          / V("5+", Int32, default=-1),
    "replication_factor"      / V("5+", Int16, default=-1),
    "configs"                 / V("5+", Array(CreatableTopicConfigs), nullable="5+"),
)

CreateTopicsResponse = Api(
    ApiKey.CREATE_TOPICS, "CreateTopicsResponse", "0-7", "5+",
    "throttle_time_ms" / V("2+", Int32),
    "topics"           / V("0+", Array(CreatableTopicResult)),
)
