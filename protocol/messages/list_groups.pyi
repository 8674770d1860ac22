# Written by scripts/message-types from list_groups.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class ListGroupsRequest(Message, metaclass=Api):
    states_filter: ArrayField[str]
    types_filter: ArrayField[str]
    def __init__(
        self,
        *,
        states_filter: Elements[str] = ...,
        types_filter: Elements[str] = ...,
    ) -> None: ...

class ListedGroup(Value, metaclass=Group):
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        protocol_type: str = ...,
        group_state: str = ...,
        group_type: str = ...,
    ) -> None: ...

class ListGroupsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    groups: ArrayField[ListedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        groups: Elements[ListedGroup] = ...,
    ) -> None: ...
