# Written by scripts/message-types from leave_group.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class MemberIdentity(Value, metaclass=Group):
    member_id: str
    group_instance_id: str | None
    reason: str | None
    def __init__(
        self,
        *,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        reason: str | None = ...,
    ) -> None: ...

class LeaveGroupRequest(Message, metaclass=Api):
    group_id: str
    member_id: str
    members: ArrayField[MemberIdentity]
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        members: Elements[MemberIdentity] = ...,
    ) -> None: ...

class MemberResponse(Value, metaclass=Group):
    member_id: str
    group_instance_id: str | None
    error_code: int
    def __init__(
        self,
        *,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        error_code: int = ...,
    ) -> None: ...

class LeaveGroupResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    members: ArrayField[MemberResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        members: Elements[MemberResponse] = ...,
    ) -> None: ...
