# Written by scripts/message-types from list_partition_reassignments.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, NullableArrayField
from protocol.schema.lazy import Elements

class ListPartitionReassignmentsTopics(Value, metaclass=Group):
    name: str
    partition_indexes: Sequence[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partition_indexes: Sequence[int] = ...,
    ) -> None: ...

class ListPartitionReassignmentsRequest(Message, metaclass=Api):
    timeout_ms: int
    topics: NullableArrayField[ListPartitionReassignmentsTopics]
    def __init__(
        self,
        *,
        timeout_ms: int = ...,
        topics: Elements[ListPartitionReassignmentsTopics] | None = ...,
    ) -> None: ...

class OngoingPartitionReassignment(Value, metaclass=Group):
    partition_index: int
    replicas: Sequence[int]
    adding_replicas: Sequence[int]
    removing_replicas: Sequence[int]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        replicas: Sequence[int] = ...,
        adding_replicas: Sequence[int] = ...,
        removing_replicas: Sequence[int] = ...,
    ) -> None: ...

class OngoingTopicReassignment(Value, metaclass=Group):
    name: str
    partitions: ArrayField[OngoingPartitionReassignment]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[OngoingPartitionReassignment] = ...,
    ) -> None: ...

class ListPartitionReassignmentsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: ArrayField[OngoingTopicReassignment]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        topics: Elements[OngoingTopicReassignment] = ...,
    ) -> None: ...
