"""ElectLeaders (key 43): have leaders of partitions elected anew.

* v1 adds the type of election and an error for the response as a whole; v2 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Str, V

# fmt: off

ElectTopicPartitions = Group(
    "ElectTopicPartitions",
    "topic"      / V("0+", Str),
    "partitions" / V("0+", Array(Int32)),
)

ElectLeadersRequest = Api(
    ApiKey.ELECT_LEADERS, "ElectLeadersRequest", "0-2", "2+",
    "election_type"    / V("1+", Int8),
    "topic_partitions" / V("0+", Array(ElectTopicPartitions), nullable="0+"),
    "timeout_ms"       / V("0+", Int32, default=60000),
)

ElectionPartitionResult = Group(
    "ElectionPartitionResult",
    "partition_id"  / V("0+", Int32),
    "error_code"    / V("0+", Int16),
    "error_message" / V("0+", Str, nullable="0+"),
)

ReplicaElectionResult = Group(
    "ReplicaElectionResult",
    "topic"            / V("0+", Str),
    "partition_result" / V("0+", Array(ElectionPartitionResult)),
)

ElectLeadersResponse = Api(
    ApiKey.ELECT_LEADERS, "ElectLeadersResponse", "0-2", "2+",
    "throttle_time_ms"         / V("0+", Int32),
    "error_code"               / V("1+", Int16),
    "replica_election_results" / V("0+", Array(ReplicaElectionResult)),
)
