"""UpdateFeatures (key 57): change the finalized levels of the cluster's features.

Flexible from its first version.

* v1 replaces the permission to downgrade by three kinds of change, and adds validate_only.
* v2 drops the results per feature: there is one error for the whole request.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int8, Int16, Int32, Str, V

# fmt: off

FeatureUpdateKey = Group(
    "FeatureUpdateKey",
    "feature"           / V("0+", Str),
    "max_version_level" / V("0+", Int16),
    "allow_downgrade"   / V("0",  Bool),
    "upgrade_type"      / V("1+", Int8, default=1),
)

UpdateFeaturesRequest = Api(
    ApiKey.UPDATE_FEATURES, "UpdateFeaturesRequest", "0-2", "0+",
    "timeout_ms"      / V("0+", Int32, default=60000),
    "feature_updates" / V("0+", Array(FeatureUpdateKey)),
    "validate_only"   / V("1+", Bool),
)

UpdatableFeatureResult = Group(
    "UpdatableFeatureResult",
    "feature"       / V("0+", Str),
    "error_code"    / V("0+", Int16),
    "error_message" / V("0+", Str, nullable="0+"),
)

UpdateFeaturesResponse = Api(
    ApiKey.UPDATE_FEATURES, "UpdateFeaturesResponse", "0-2", "0+",
    "throttle_time_ms" / V("0+",  Int32),
    "error_code"       / V("0+",  Int16),
    "error_message"    / V("0+",  Str, nullable="0+"),
    "results"          / V("0-1", Array(UpdatableFeatureResult)),
)
