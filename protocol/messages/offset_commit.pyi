# Written by scripts/message-types from offset_commit.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class OffsetCommitRequestPartition(Value, metaclass=Group):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    commit_timestamp: int
    committed_metadata: str | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        committed_offset: int = ...,
        committed_leader_epoch: int = ...,
        commit_timestamp: int = ...,
        committed_metadata: str | None = ...,
    ) -> None: ...

class OffsetCommitRequestTopic(Value, metaclass=Group):
    name: str
    topic_id: bytes
    partitions: ArrayField[OffsetCommitRequestPartition]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: bytes = ...,
        partitions: Elements[OffsetCommitRequestPartition] = ...,
    ) -> None: ...

class OffsetCommitRequest(Message, metaclass=Api):
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    topics: ArrayField[OffsetCommitRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = ...,
        generation_id_or_member_epoch: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        retention_time_ms: int = ...,
        topics: Elements[OffsetCommitRequestTopic] = ...,
    ) -> None: ...

class OffsetCommitResponsePartition(Value, metaclass=Group):
    partition_index: int
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
    ) -> None: ...

class OffsetCommitResponseTopic(Value, metaclass=Group):
    name: str
    topic_id: bytes
    partitions: ArrayField[OffsetCommitResponsePartition]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: bytes = ...,
        partitions: Elements[OffsetCommitResponsePartition] = ...,
    ) -> None: ...

class OffsetCommitResponse(Message, metaclass=Api):
    throttle_time_ms: int
    topics: ArrayField[OffsetCommitResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: Elements[OffsetCommitResponseTopic] = ...,
    ) -> None: ...
