# Written by scripts/message-types from update_features.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class FeatureUpdateKey(Value, metaclass=Group):
    feature: str
    max_version_level: int
    allow_downgrade: bool
    upgrade_type: int
    def __init__(
        self,
        *,
        feature: str = ...,
        max_version_level: int = ...,
        allow_downgrade: bool = ...,
        upgrade_type: int = ...,
    ) -> None: ...

class UpdateFeaturesRequest(Message, metaclass=Api):
    timeout_ms: int
    feature_updates: ArrayField[FeatureUpdateKey]
    validate_only: bool
    def __init__(
        self,
        *,
        timeout_ms: int = ...,
        feature_updates: Elements[FeatureUpdateKey] = ...,
        validate_only: bool = ...,
    ) -> None: ...

class UpdatableFeatureResult(Value, metaclass=Group):
    feature: str
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        feature: str = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class UpdateFeaturesResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: ArrayField[UpdatableFeatureResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        results: Elements[UpdatableFeatureResult] = ...,
    ) -> None: ...
