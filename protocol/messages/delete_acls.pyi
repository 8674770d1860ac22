# Written by scripts/message-types from delete_acls.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class DeleteAclsFilter(Value, metaclass=Group):
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

class DeleteAclsRequest(Message, metaclass=Api):
    filters: ArrayField[DeleteAclsFilter]
    def __init__(
        self,
        *,
        filters: Elements[DeleteAclsFilter] = ...,
    ) -> None: ...

class DeleteAclsMatchingAcl(Value, metaclass=Group):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        resource_type: int = ...,
        resource_name: str = ...,
        pattern_type: int = ...,
        principal: str = ...,
        host: str = ...,
        operation: int = ...,
        permission_type: int = ...,
    ) -> None: ...

class DeleteAclsFilterResult(Value, metaclass=Group):
    error_code: int
    error_message: str | None
    matching_acls: ArrayField[DeleteAclsMatchingAcl]
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        matching_acls: Elements[DeleteAclsMatchingAcl] = ...,
    ) -> None: ...

class DeleteAclsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    filter_results: ArrayField[DeleteAclsFilterResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        filter_results: Elements[DeleteAclsFilterResult] = ...,
    ) -> None: ...
