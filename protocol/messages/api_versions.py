"""ApiVersions (key 18): ask a broker which APIs and versions it speaks.

A client must be able to read the answer before it knows any version. So the response's header is v0
at every version, and a request of an unknown version is answered with a v0 body that has
UNSUPPORTED_VERSION and the range of this API (KIP-511).

* v0-v2 requests are empty. v1 adds the throttle time.
* v3 is flexible; the request names the client's software, the response the features of the cluster.
* v4 lets a supported feature begin at level 0.
* v5: the request names the cluster and the broker that the client means to ask (KIP-1242).
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int16, Int32, Int64, Str, V

# fmt: off

ApiVersionsRequest = Api(
    ApiKey.API_VERSIONS, "ApiVersionsRequest", "0-5", "3+",
    "client_software_name"    / V("3+", Str),
    "client_software_version" / V("3+", Str),
    "cluster_id"              / V("5+", Str, nullable="5+"),
    "node_id"                 / V("5+", Int32, default=-1),
)

ApiVersion = Group(
    "ApiVersion",
    "api_key"     / V("0+", Int16),
    "min_version" / V("0+", Int16),
    "max_version" / V("0+", Int16),
)

SupportedFeatureKey = Group(
    "SupportedFeatureKey",
    "name"        / V("3+", Str),
    "min_version" / V("3+", Int16),
    "max_version" / V("3+", Int16),
)

FinalizedFeatureKey = Group(
    "FinalizedFeatureKey",
    "name"              / V("3+", Str),
    "max_version_level" / V("3+", Int16),
    "min_version_level" / V("3+", Int16),
)

ApiVersionsResponse = Api(
    ApiKey.API_VERSIONS, "ApiVersionsResponse", "0-5", "3+",
    "error_code"               / V("0+", Int16),
    "api_keys"                 / V("0+", Array(ApiVersion)),
    "throttle_time_ms"         / V("1+", Int32),
    "supported_features"       / V("3+", Array(SupportedFeatureKey), tag=0),
    "finalized_features_epoch" / V("3+", Int64, default=-1, tag=1),
    "finalized_features"       / V("3+", Array(FinalizedFeatureKey), tag=2),
    "zk_migration_ready"       / V("3+", Bool, tag=3),
)
