# Written by scripts/message-types from txn_offset_commit.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class TxnOffsetCommitRequestPartition(Value, metaclass=Group):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        committed_offset: int = ...,
        committed_leader_epoch: int = ...,
        committed_metadata: str | None = ...,
    ) -> None: ...

class TxnOffsetCommitRequestTopic(Value, metaclass=Group):
    name: str
    topic_id: bytes
    partitions: ArrayField[TxnOffsetCommitRequestPartition]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: bytes = ...,
        partitions: Elements[TxnOffsetCommitRequestPartition] = ...,
    ) -> None: ...

class TxnOffsetCommitRequest(Message, metaclass=Api):
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    topics: ArrayField[TxnOffsetCommitRequestTopic]
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        group_id: str = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        generation_id_or_member_epoch: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        topics: Elements[TxnOffsetCommitRequestTopic] = ...,
    ) -> None: ...

class TxnOffsetCommitResponsePartition(Value, metaclass=Group):
    partition_index: int
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
    ) -> None: ...

class TxnOffsetCommitResponseTopic(Value, metaclass=Group):
    name: str
    topic_id: bytes
    partitions: ArrayField[TxnOffsetCommitResponsePartition]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: bytes = ...,
        partitions: Elements[TxnOffsetCommitResponsePartition] = ...,
    ) -> None: ...

class TxnOffsetCommitResponse(Message, metaclass=Api):
    throttle_time_ms: int
    topics: ArrayField[TxnOffsetCommitResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: Elements[TxnOffsetCommitResponseTopic] = ...,
    ) -> None: ...
