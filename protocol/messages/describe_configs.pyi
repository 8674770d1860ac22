# Written by scripts/message-types from describe_configs.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, NullableArrayField
from protocol.schema.lazy import Elements

class DescribeConfigsResource(Value, metaclass=Group):
    resource_type: int
    resource_name: str
    configuration_keys: NullableArrayField[str]
    def __init__(
        self,
        *,
        resource_type: int = ...,
        resource_name: str = ...,
        configuration_keys: Elements[str] | None = ...,
    ) -> None: ...

class DescribeConfigsRequest(Message, metaclass=Api):
    resources: ArrayField[DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool
    def __init__(
        self,
        *,
        resources: Elements[DescribeConfigsResource] = ...,
        include_synonyms: bool = ...,
        include_documentation: bool = ...,
    ) -> None: ...

class DescribeConfigsSynonym(Value, metaclass=Group):
    name: str
    value: str | None
    source: int
    def __init__(
        self,
        *,
        name: str = ...,
        value: str | None = ...,
        source: int = ...,
    ) -> None: ...

class DescribeConfigsResourceResult(Value, metaclass=Group):
    name: str
    value: str | None
    read_only: bool
    is_default: bool
    config_source: int
    is_sensitive: bool
    synonyms: ArrayField[DescribeConfigsSynonym]
    config_type: int
    documentation: str | None
    def __init__(
        self,
        *,
        name: str = ...,
        value: str | None = ...,
        read_only: bool = ...,
        is_default: bool = ...,
        config_source: int = ...,
        is_sensitive: bool = ...,
        synonyms: Elements[DescribeConfigsSynonym] = ...,
        config_type: int = ...,
        documentation: str | None = ...,
    ) -> None: ...

class DescribeConfigsResult(Value, metaclass=Group):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    configs: ArrayField[DescribeConfigsResourceResult]
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        resource_type: int = ...,
        resource_name: str = ...,
        configs: Elements[DescribeConfigsResourceResult] = ...,
    ) -> None: ...

class DescribeConfigsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    results: ArrayField[DescribeConfigsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: Elements[DescribeConfigsResult] = ...,
    ) -> None: ...
