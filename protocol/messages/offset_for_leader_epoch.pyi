# Written by scripts/message-types from offset_for_leader_epoch.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class OffsetForLeaderPartition(Value, metaclass=Group):
    partition: int
    current_leader_epoch: int
    leader_epoch: int
    def __init__(
        self,
        *,
        partition: int = ...,
        current_leader_epoch: int = ...,
        leader_epoch: int = ...,
    ) -> None: ...

class OffsetForLeaderTopic(Value, metaclass=Group):
    topic: str
    partitions: ArrayField[OffsetForLeaderPartition]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: Elements[OffsetForLeaderPartition] = ...,
    ) -> None: ...

class OffsetForLeaderEpochRequest(Message, metaclass=Api):
    replica_id: int
    topics: ArrayField[OffsetForLeaderTopic]
    def __init__(
        self,
        *,
        replica_id: int = ...,
        topics: Elements[OffsetForLeaderTopic] = ...,
    ) -> None: ...

class EpochEndOffset(Value, metaclass=Group):
    error_code: int
    partition: int
    leader_epoch: int
    end_offset: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        partition: int = ...,
        leader_epoch: int = ...,
        end_offset: int = ...,
    ) -> None: ...

class OffsetForLeaderTopicResult(Value, metaclass=Group):
    topic: str
    partitions: ArrayField[EpochEndOffset]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: Elements[EpochEndOffset] = ...,
    ) -> None: ...

class OffsetForLeaderEpochResponse(Message, metaclass=Api):
    throttle_time_ms: int
    topics: ArrayField[OffsetForLeaderTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: Elements[OffsetForLeaderTopicResult] = ...,
    ) -> None: ...
