# Written by scripts/message-types from create_acls.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class AclCreation(Value, metaclass=Group):
    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        resource_type: int = ...,
        resource_name: str = ...,
        resource_pattern_type: int = ...,
        principal: str = ...,
        host: str = ...,
        operation: int = ...,
        permission_type: int = ...,
    ) -> None: ...

class CreateAclsRequest(Message, metaclass=Api):
    creations: ArrayField[AclCreation]
    def __init__(
        self,
        *,
        creations: Elements[AclCreation] = ...,
    ) -> None: ...

class AclCreationResult(Value, metaclass=Group):
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class CreateAclsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    results: ArrayField[AclCreationResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: Elements[AclCreationResult] = ...,
    ) -> None: ...
