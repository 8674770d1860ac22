# Written by scripts/message-types from join_group.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, Blob
from protocol.schema.lazy import Elements

class JoinGroupRequestProtocol(Value, metaclass=Group):
    name: str
    metadata: Blob
    def __init__(
        self,
        *,
        name: str = ...,
        metadata: Blob = ...,
    ) -> None: ...

class JoinGroupRequest(Message, metaclass=Api):
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: ArrayField[JoinGroupRequestProtocol]
    reason: str | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        session_timeout_ms: int = ...,
        rebalance_timeout_ms: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        protocol_type: str = ...,
        protocols: Elements[JoinGroupRequestProtocol] = ...,
        reason: str | None = ...,
    ) -> None: ...

class JoinGroupResponseMember(Value, metaclass=Group):
    member_id: str
    group_instance_id: str | None
    metadata: Blob
    def __init__(
        self,
        *,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        metadata: Blob = ...,
    ) -> None: ...

class JoinGroupResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: ArrayField[JoinGroupResponseMember]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        generation_id: int = ...,
        protocol_type: str | None = ...,
        protocol_name: str | None = ...,
        leader: str = ...,
        skip_assignment: bool = ...,
        member_id: str = ...,
        members: Elements[JoinGroupResponseMember] = ...,
    ) -> None: ...
