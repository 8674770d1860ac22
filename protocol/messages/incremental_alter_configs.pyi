# Written by scripts/message-types from incremental_alter_configs.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class AlterableConfig(Value, metaclass=Group):
    name: str
    config_operation: int
    value: str | None
    def __init__(
        self,
        *,
        name: str = ...,
        config_operation: int = ...,
        value: str | None = ...,
    ) -> None: ...

class AlterConfigsResource(Value, metaclass=Group):
    resource_type: int
    resource_name: str
    configs: ArrayField[AlterableConfig]
    def __init__(
        self,
        *,
        resource_type: int = ...,
        resource_name: str = ...,
        configs: Elements[AlterableConfig] = ...,
    ) -> None: ...

class IncrementalAlterConfigsRequest(Message, metaclass=Api):
    resources: ArrayField[AlterConfigsResource]
    validate_only: bool
    def __init__(
        self,
        *,
        resources: Elements[AlterConfigsResource] = ...,
        validate_only: bool = ...,
    ) -> None: ...

class AlterConfigsResourceResponse(Value, metaclass=Group):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        resource_type: int = ...,
        resource_name: str = ...,
    ) -> None: ...

class IncrementalAlterConfigsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    responses: ArrayField[AlterConfigsResourceResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        responses: Elements[AlterConfigsResourceResponse] = ...,
    ) -> None: ...
