# Written by scripts/message-types from list_config_resources.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class ListConfigResourcesRequest(Message, metaclass=Api):
    resource_types: Sequence[int]
    def __init__(
        self,
        *,
        resource_types: Sequence[int] = ...,
    ) -> None: ...

class ListedConfigResource(Value, metaclass=Group):
    resource_name: str
    resource_type: int
    def __init__(
        self,
        *,
        resource_name: str = ...,
        resource_type: int = ...,
    ) -> None: ...

class ListConfigResourcesResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    config_resources: ArrayField[ListedConfigResource]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        config_resources: Elements[ListedConfigResource] = ...,
    ) -> None: ...
