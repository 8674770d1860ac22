# Written by scripts/message-types from list_offsets.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class ListOffsetsPartition(Value, metaclass=Group):
    partition_index: int
    current_leader_epoch: int
    timestamp: int
    max_num_offsets: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        current_leader_epoch: int = ...,
        timestamp: int = ...,
        max_num_offsets: int = ...,
    ) -> None: ...

class ListOffsetsTopic(Value, metaclass=Group):
    name: str
    partitions: ArrayField[ListOffsetsPartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[ListOffsetsPartition] = ...,
    ) -> None: ...

class ListOffsetsRequest(Message, metaclass=Api):
    replica_id: int
    isolation_level: int
    topics: ArrayField[ListOffsetsTopic]
    timeout_ms: int
    def __init__(
        self,
        *,
        replica_id: int = ...,
        isolation_level: int = ...,
        topics: Elements[ListOffsetsTopic] = ...,
        timeout_ms: int = ...,
    ) -> None: ...

class ListOffsetsPartitionResponse(Value, metaclass=Group):
    partition_index: int
    error_code: int
    old_style_offsets: Sequence[int]
    timestamp: int
    offset: int
    leader_epoch: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        old_style_offsets: Sequence[int] = ...,
        timestamp: int = ...,
        offset: int = ...,
        leader_epoch: int = ...,
    ) -> None: ...

class ListOffsetsTopicResponse(Value, metaclass=Group):
    name: str
    partitions: ArrayField[ListOffsetsPartitionResponse]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[ListOffsetsPartitionResponse] = ...,
    ) -> None: ...

class ListOffsetsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    topics: ArrayField[ListOffsetsTopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: Elements[ListOffsetsTopicResponse] = ...,
    ) -> None: ...
