# Written by scripts/message-types from describe_acls.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class DescribeAclsRequest(Message, metaclass=Api):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        resource_type_filter: int = ...,
        resource_name_filter: str | None = ...,
        pattern_type_filter: int = ...,
        principal_filter: str | None = ...,
        host_filter: str | None = ...,
        operation: int = ...,
        permission_type: int = ...,
    ) -> None: ...

class AclDescription(Value, metaclass=Group):
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        principal: str = ...,
        host: str = ...,
        operation: int = ...,
        permission_type: int = ...,
    ) -> None: ...

class DescribeAclsResource(Value, metaclass=Group):
    resource_type: int
    resource_name: str
    pattern_type: int
    acls: ArrayField[AclDescription]
    def __init__(
        self,
        *,
        resource_type: int = ...,
        resource_name: str = ...,
        pattern_type: int = ...,
        acls: Elements[AclDescription] = ...,
    ) -> None: ...

class DescribeAclsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: ArrayField[DescribeAclsResource]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        resources: Elements[DescribeAclsResource] = ...,
    ) -> None: ...
