# Written by scripts/message-types from delete_groups.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class DeleteGroupsRequest(Message, metaclass=Api):
    groups_names: ArrayField[str]
    def __init__(
        self,
        *,
        groups_names: Elements[str] = ...,
    ) -> None: ...

class DeletableGroupResult(Value, metaclass=Group):
    group_id: str
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class DeleteGroupsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    results: ArrayField[DeletableGroupResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: Elements[DeletableGroupResult] = ...,
    ) -> None: ...
