# Written by scripts/message-types from offset_fetch.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, NullableArrayField
from protocol.schema.lazy import Elements

class OffsetFetchRequestTopic(Value, metaclass=Group):
    name: str
    partition_indexes: Sequence[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partition_indexes: Sequence[int] = ...,
    ) -> None: ...

class OffsetFetchRequestTopics(Value, metaclass=Group):
    name: str
    topic_id: bytes
    partition_indexes: Sequence[int]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: bytes = ...,
        partition_indexes: Sequence[int] = ...,
    ) -> None: ...

class OffsetFetchRequestGroup(Value, metaclass=Group):
    group_id: str
    member_id: str | None
    member_epoch: int
    topics: NullableArrayField[OffsetFetchRequestTopics]
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str | None = ...,
        member_epoch: int = ...,
        topics: Elements[OffsetFetchRequestTopics] | None = ...,
    ) -> None: ...

class OffsetFetchRequest(Message, metaclass=Api):
    group_id: str
    topics: NullableArrayField[OffsetFetchRequestTopic]
    groups: ArrayField[OffsetFetchRequestGroup]
    require_stable: bool
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: Elements[OffsetFetchRequestTopic] | None = ...,
        groups: Elements[OffsetFetchRequestGroup] = ...,
        require_stable: bool = ...,
    ) -> None: ...

class OffsetFetchResponsePartition(Value, metaclass=Group):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        committed_offset: int = ...,
        committed_leader_epoch: int = ...,
        metadata: str | None = ...,
        error_code: int = ...,
    ) -> None: ...

class OffsetFetchResponseTopic(Value, metaclass=Group):
    name: str
    partitions: ArrayField[OffsetFetchResponsePartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[OffsetFetchResponsePartition] = ...,
    ) -> None: ...

class OffsetFetchResponsePartitions(Value, metaclass=Group):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        committed_offset: int = ...,
        committed_leader_epoch: int = ...,
        metadata: str | None = ...,
        error_code: int = ...,
    ) -> None: ...

class OffsetFetchResponseTopics(Value, metaclass=Group):
    name: str
    topic_id: bytes
    partitions: ArrayField[OffsetFetchResponsePartitions]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: bytes = ...,
        partitions: Elements[OffsetFetchResponsePartitions] = ...,
    ) -> None: ...

class OffsetFetchResponseGroup(Value, metaclass=Group):
    group_id: str
    topics: ArrayField[OffsetFetchResponseTopics]
    error_code: int
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: Elements[OffsetFetchResponseTopics] = ...,
        error_code: int = ...,
    ) -> None: ...

class OffsetFetchResponse(Message, metaclass=Api):
    throttle_time_ms: int
    topics: ArrayField[OffsetFetchResponseTopic]
    error_code: int
    groups: ArrayField[OffsetFetchResponseGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: Elements[OffsetFetchResponseTopic] = ...,
        error_code: int = ...,
        groups: Elements[OffsetFetchResponseGroup] = ...,
    ) -> None: ...
