"""DescribeCluster (key 60): describe brokers, controller and cluster id.

Flexible from its first version.

* v1 adds the endpoint type (1 brokers, 2 controllers); v2 fenced brokers.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int8, Int16, Int32, Str, V

# fmt: off

DescribeClusterRequest = Api(
    ApiKey.DESCRIBE_CLUSTER, "DescribeClusterRequest", "0-2", "0+",
    "include_cluster_authorized_operations" / V("0+", Bool),
    "endpoint_type"                         / V("1+", Int8, default=1),
    "include_fenced_brokers"                / V("2+", Bool),
)

DescribeClusterBroker = Group(
    "DescribeClusterBroker",
    "broker_id" / V("0+", Int32),
    "host"      / V("0+", Str),
    "port"      / V("0+", Int32),
    "rack"      / V("0+", Str, nullable="0+"),
    "is_fenced" / V("2+", Bool),
)

DescribeClusterResponse = Api(
    ApiKey.DESCRIBE_CLUSTER, "DescribeClusterResponse", "0-2", "0+",
    "throttle_time_ms"              / V("0+", Int32),
    "error_code"                    / V("0+", Int16),
    "error_message"                 / V("0+", Str, nullable="0+"),
    "endpoint_type"                 / V("1+", Int8, default=1),
    "cluster_id"                    / V("0+", Str),
    "controller_id"                 / V("0+", Int32, default=-1),
    "brokers"                       / V("0+", Array(DescribeClusterBroker)),
    "cluster_authorized_operations" / V("0+", Int32, default=-2147483648),
)
