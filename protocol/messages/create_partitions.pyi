# Written by scripts/message-types from create_partitions.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, NullableArrayField
from protocol.schema.lazy import Elements

class CreatePartitionsAssignment(Value, metaclass=Group):
    broker_ids: Sequence[int]
    def __init__(
        self,
        *,
        broker_ids: Sequence[int] = ...,
    ) -> None: ...

class CreatePartitionsTopic(Value, metaclass=Group):
    name: str
    count: int
    assignments: NullableArrayField[CreatePartitionsAssignment]
    def __init__(
        self,
        *,
        name: str = ...,
        count: int = ...,
        assignments: Elements[CreatePartitionsAssignment] | None = ...,
    ) -> None: ...

class CreatePartitionsRequest(Message, metaclass=Api):
    topics: ArrayField[CreatePartitionsTopic]
    timeout_ms: int
    validate_only: bool
    def __init__(
        self,
        *,
        topics: Elements[CreatePartitionsTopic] = ...,
        timeout_ms: int = ...,
        validate_only: bool = ...,
    ) -> None: ...

class CreatePartitionsTopicResult(Value, metaclass=Group):
    name: str
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        name: str = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class CreatePartitionsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    results: ArrayField[CreatePartitionsTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: Elements[CreatePartitionsTopicResult] = ...,
    ) -> None: ...
