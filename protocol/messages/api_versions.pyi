# Written by scripts/message-types from api_versions.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class ApiVersionsRequest(Message, metaclass=Api):
    client_software_name: str
    client_software_version: str
    cluster_id: str | None
    node_id: int
    def __init__(
        self,
        *,
        client_software_name: str = ...,
        client_software_version: str = ...,
        cluster_id: str | None = ...,
        node_id: int = ...,
    ) -> None: ...

class ApiVersion(Value, metaclass=Group):
    api_key: int
    min_version: int
    max_version: int
    def __init__(
        self,
        *,
        api_key: int = ...,
        min_version: int = ...,
        max_version: int = ...,
    ) -> None: ...

class SupportedFeatureKey(Value, metaclass=Group):
    name: str
    min_version: int
    max_version: int
    def __init__(
        self,
        *,
        name: str = ...,
        min_version: int = ...,
        max_version: int = ...,
    ) -> None: ...

class FinalizedFeatureKey(Value, metaclass=Group):
    name: str
    max_version_level: int
    min_version_level: int
    def __init__(
        self,
        *,
        name: str = ...,
        max_version_level: int = ...,
        min_version_level: int = ...,
    ) -> None: ...

class ApiVersionsResponse(Message, metaclass=Api):
    error_code: int
    api_keys: ArrayField[ApiVersion]
    throttle_time_ms: int
    supported_features: ArrayField[SupportedFeatureKey]
    finalized_features_epoch: int
    finalized_features: ArrayField[FinalizedFeatureKey]
    zk_migration_ready: bool
    def __init__(
        self,
        *,
        error_code: int = ...,
        api_keys: Elements[ApiVersion] = ...,
        throttle_time_ms: int = ...,
        supported_features: Elements[SupportedFeatureKey] = ...,
        finalized_features_epoch: int = ...,
        finalized_features: Elements[FinalizedFeatureKey] = ...,
        zk_migration_ready: bool = ...,
    ) -> None: ...
