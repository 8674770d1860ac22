# Written by scripts/message-types from fetch.py.

from collections.abc import Sequence, Sized

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, NullableArrayField
from protocol.schema.lazy import Elements

class ReplicaState(Value, metaclass=Group):
    replica_id: int
    replica_epoch: int
    def __init__(
        self,
        *,
        replica_id: int = ...,
        replica_epoch: int = ...,
    ) -> None: ...

class FetchPartition(Value, metaclass=Group):
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int
    replica_directory_id: bytes
    high_watermark: int
    def __init__(
        self,
        *,
        partition: int = ...,
        current_leader_epoch: int = ...,
        fetch_offset: int = ...,
        last_fetched_epoch: int = ...,
        log_start_offset: int = ...,
        partition_max_bytes: int = ...,
        replica_directory_id: bytes = ...,
        high_watermark: int = ...,
    ) -> None: ...

class FetchTopic(Value, metaclass=Group):
    topic: str
    topic_id: bytes
    partitions: ArrayField[FetchPartition]
    def __init__(
        self,
        *,
        topic: str = ...,
        topic_id: bytes = ...,
        partitions: Elements[FetchPartition] = ...,
    ) -> None: ...

class ForgottenTopic(Value, metaclass=Group):
    topic: str
    topic_id: bytes
    partitions: Sequence[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        topic_id: bytes = ...,
        partitions: Sequence[int] = ...,
    ) -> None: ...

class FetchRequest(Message, metaclass=Api):
    cluster_id: str | None
    replica_id: int
    replica_state: ReplicaState
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: ArrayField[FetchTopic]
    forgotten_topics_data: ArrayField[ForgottenTopic]
    rack_id: str
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        replica_id: int = ...,
        replica_state: ReplicaState = ...,
        max_wait_ms: int = ...,
        min_bytes: int = ...,
        max_bytes: int = ...,
        isolation_level: int = ...,
        session_id: int = ...,
        session_epoch: int = ...,
        topics: Elements[FetchTopic] = ...,
        forgotten_topics_data: Elements[ForgottenTopic] = ...,
        rack_id: str = ...,
    ) -> None: ...

class EpochEndOffset(Value, metaclass=Group):
    epoch: int
    end_offset: int
    def __init__(
        self,
        *,
        epoch: int = ...,
        end_offset: int = ...,
    ) -> None: ...

class LeaderIdAndEpoch(Value, metaclass=Group):
    leader_id: int
    leader_epoch: int
    def __init__(
        self,
        *,
        leader_id: int = ...,
        leader_epoch: int = ...,
    ) -> None: ...

class SnapshotId(Value, metaclass=Group):
    end_offset: int
    epoch: int
    def __init__(
        self,
        *,
        end_offset: int = ...,
        epoch: int = ...,
    ) -> None: ...

class AbortedTransaction(Value, metaclass=Group):
    producer_id: int
    first_offset: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        first_offset: int = ...,
    ) -> None: ...

class PartitionData(Value, metaclass=Group):
    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: EpochEndOffset
    current_leader: LeaderIdAndEpoch
    snapshot_id: SnapshotId
    aborted_transactions: NullableArrayField[AbortedTransaction]
    preferred_read_replica: int
    records: Sized | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        high_watermark: int = ...,
        last_stable_offset: int = ...,
        log_start_offset: int = ...,
        diverging_epoch: EpochEndOffset = ...,
        current_leader: LeaderIdAndEpoch = ...,
        snapshot_id: SnapshotId = ...,
        aborted_transactions: Elements[AbortedTransaction] | None = ...,
        preferred_read_replica: int = ...,
        records: Sized | None = ...,
    ) -> None: ...

class FetchableTopicResponse(Value, metaclass=Group):
    topic: str
    topic_id: bytes
    partitions: ArrayField[PartitionData]
    def __init__(
        self,
        *,
        topic: str = ...,
        topic_id: bytes = ...,
        partitions: Elements[PartitionData] = ...,
    ) -> None: ...

class NodeEndpoint(Value, metaclass=Group):
    node_id: int
    host: str
    port: int
    rack: str | None
    def __init__(
        self,
        *,
        node_id: int = ...,
        host: str = ...,
        port: int = ...,
        rack: str | None = ...,
    ) -> None: ...

class FetchResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    session_id: int
    responses: ArrayField[FetchableTopicResponse]
    node_endpoints: ArrayField[NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        session_id: int = ...,
        responses: Elements[FetchableTopicResponse] = ...,
        node_endpoints: Elements[NodeEndpoint] = ...,
    ) -> None: ...
