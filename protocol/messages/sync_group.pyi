# Written by scripts/message-types from sync_group.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, Blob
from protocol.schema.lazy import Elements

class SyncGroupRequestAssignment(Value, metaclass=Group):
    member_id: str
    assignment: Blob
    def __init__(
        self,
        *,
        member_id: str = ...,
        assignment: Blob = ...,
    ) -> None: ...

class SyncGroupRequest(Message, metaclass=Api):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: ArrayField[SyncGroupRequestAssignment]
    def __init__(
        self,
        *,
        group_id: str = ...,
        generation_id: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        protocol_type: str | None = ...,
        protocol_name: str | None = ...,
        assignments: Elements[SyncGroupRequestAssignment] = ...,
    ) -> None: ...

class SyncGroupResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    protocol_type: str | None
    protocol_name: str | None
    assignment: Blob
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        protocol_type: str | None = ...,
        protocol_name: str | None = ...,
        assignment: Blob = ...,
    ) -> None: ...
