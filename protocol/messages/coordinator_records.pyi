# Written by scripts/message-types from coordinator_records.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, Blob, NullableArrayField
from protocol.schema.lazy import Elements

class OffsetCommitKey(Message, metaclass=Api):
    group: str
    topic: str
    partition: int
    def __init__(
        self,
        *,
        group: str = ...,
        topic: str = ...,
        partition: int = ...,
    ) -> None: ...

class OffsetCommitValue(Message, metaclass=Api):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: bytes
    def __init__(
        self,
        *,
        offset: int = ...,
        leader_epoch: int = ...,
        metadata: str = ...,
        commit_timestamp: int = ...,
        expire_timestamp: int = ...,
        topic_id: bytes = ...,
    ) -> None: ...

class GroupMetadataKey(Message, metaclass=Api):
    group: str
    def __init__(
        self,
        *,
        group: str = ...,
    ) -> None: ...

class MemberMetadata(Value, metaclass=Group):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: Blob
    assignment: Blob
    def __init__(
        self,
        *,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        rebalance_timeout: int = ...,
        session_timeout: int = ...,
        subscription: Blob = ...,
        assignment: Blob = ...,
    ) -> None: ...

class GroupMetadataValue(Message, metaclass=Api):
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: ArrayField[MemberMetadata]
    def __init__(
        self,
        *,
        protocol_type: str = ...,
        generation: int = ...,
        protocol: str | None = ...,
        leader: str | None = ...,
        current_state_timestamp: int = ...,
        members: Elements[MemberMetadata] = ...,
    ) -> None: ...

class ConsumerProtocolTopicPartition(Value, metaclass=Group):
    topic: str
    partitions: Sequence[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: Sequence[int] = ...,
    ) -> None: ...

class ConsumerProtocolSubscription(Message, metaclass=Api):
    topics: ArrayField[str]
    user_data: Blob | None
    owned_partitions: ArrayField[ConsumerProtocolTopicPartition]
    generation_id: int
    rack_id: str | None
    def __init__(
        self,
        *,
        topics: Elements[str] = ...,
        user_data: Blob | None = ...,
        owned_partitions: Elements[ConsumerProtocolTopicPartition] = ...,
        generation_id: int = ...,
        rack_id: str | None = ...,
    ) -> None: ...

class ConsumerProtocolAssignment(Message, metaclass=Api):
    assigned_partitions: ArrayField[ConsumerProtocolTopicPartition]
    user_data: Blob | None
    def __init__(
        self,
        *,
        assigned_partitions: Elements[ConsumerProtocolTopicPartition] = ...,
        user_data: Blob | None = ...,
    ) -> None: ...

class TransactionLogKey(Message, metaclass=Api):
    transactional_id: str
    def __init__(
        self,
        *,
        transactional_id: str = ...,
    ) -> None: ...

class PartitionsSchema(Value, metaclass=Group):
    topic: str
    partition_ids: Sequence[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        partition_ids: Sequence[int] = ...,
    ) -> None: ...

class TransactionLogValue(Message, metaclass=Api):
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: NullableArrayField[PartitionsSchema]
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    client_transaction_version: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        previous_producer_id: int = ...,
        next_producer_id: int = ...,
        producer_epoch: int = ...,
        next_producer_epoch: int = ...,
        transaction_timeout_ms: int = ...,
        transaction_status: int = ...,
        transaction_partitions: Elements[PartitionsSchema] | None = ...,
        transaction_last_update_timestamp_ms: int = ...,
        transaction_start_timestamp_ms: int = ...,
        client_transaction_version: int = ...,
    ) -> None: ...

class EndTxnMarker(Message, metaclass=Api):
    coordinator_epoch: int
    def __init__(
        self,
        *,
        coordinator_epoch: int = ...,
    ) -> None: ...
