# Written by scripts/message-types from describe_groups.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, Blob
from protocol.schema.lazy import Elements

class DescribeGroupsRequest(Message, metaclass=Api):
    groups: ArrayField[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        groups: Elements[str] = ...,
        include_authorized_operations: bool = ...,
    ) -> None: ...

class DescribedGroupMember(Value, metaclass=Group):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: Blob
    member_assignment: Blob
    def __init__(
        self,
        *,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        member_metadata: Blob = ...,
        member_assignment: Blob = ...,
    ) -> None: ...

class DescribedGroup(Value, metaclass=Group):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: ArrayField[DescribedGroupMember]
    authorized_operations: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        group_id: str = ...,
        group_state: str = ...,
        protocol_type: str = ...,
        protocol_data: str = ...,
        members: Elements[DescribedGroupMember] = ...,
        authorized_operations: int = ...,
    ) -> None: ...

class DescribeGroupsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    groups: ArrayField[DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        groups: Elements[DescribedGroup] = ...,
    ) -> None: ...
