# Written by scripts/message-types from offset_delete.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class OffsetDeleteRequestPartition(Value, metaclass=Group):
    partition_index: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
    ) -> None: ...

class OffsetDeleteRequestTopic(Value, metaclass=Group):
    name: str
    partitions: ArrayField[OffsetDeleteRequestPartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[OffsetDeleteRequestPartition] = ...,
    ) -> None: ...

class OffsetDeleteRequest(Message, metaclass=Api):
    group_id: str
    topics: ArrayField[OffsetDeleteRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: Elements[OffsetDeleteRequestTopic] = ...,
    ) -> None: ...

class OffsetDeleteResponsePartition(Value, metaclass=Group):
    partition_index: int
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
    ) -> None: ...

class OffsetDeleteResponseTopic(Value, metaclass=Group):
    name: str
    partitions: ArrayField[OffsetDeleteResponsePartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[OffsetDeleteResponsePartition] = ...,
    ) -> None: ...

class OffsetDeleteResponse(Message, metaclass=Api):
    error_code: int
    throttle_time_ms: int
    topics: ArrayField[OffsetDeleteResponseTopic]
    def __init__(
        self,
        *,
        error_code: int = ...,
        throttle_time_ms: int = ...,
        topics: Elements[OffsetDeleteResponseTopic] = ...,
    ) -> None: ...
