# Written by scripts/message-types from describe_topic_partitions.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class TopicPartitionsTopic(Value, metaclass=Group):
    name: str
    def __init__(
        self,
        *,
        name: str = ...,
    ) -> None: ...

class TopicPartitionsCursor(Value, metaclass=Group):
    topic_name: str
    partition_index: int
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partition_index: int = ...,
    ) -> None: ...

class DescribeTopicPartitionsRequest(Message, metaclass=Api):
    topics: ArrayField[TopicPartitionsTopic]
    response_partition_limit: int
    cursor: TopicPartitionsCursor | None
    def __init__(
        self,
        *,
        topics: Elements[TopicPartitionsTopic] = ...,
        response_partition_limit: int = ...,
        cursor: TopicPartitionsCursor | None = ...,
    ) -> None: ...

class DescribedTopicPartition(Value, metaclass=Group):
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Sequence[int]
    isr_nodes: Sequence[int]
    eligible_leader_replicas: Sequence[int] | None
    last_known_elr: Sequence[int] | None
    offline_replicas: Sequence[int]
    def __init__(
        self,
        *,
        error_code: int = ...,
        partition_index: int = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        replica_nodes: Sequence[int] = ...,
        isr_nodes: Sequence[int] = ...,
        eligible_leader_replicas: Sequence[int] | None = ...,
        last_known_elr: Sequence[int] | None = ...,
        offline_replicas: Sequence[int] = ...,
    ) -> None: ...

class DescribedTopic(Value, metaclass=Group):
    error_code: int
    name: str | None
    topic_id: bytes
    is_internal: bool
    partitions: ArrayField[DescribedTopicPartition]
    topic_authorized_operations: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        name: str | None = ...,
        topic_id: bytes = ...,
        is_internal: bool = ...,
        partitions: Elements[DescribedTopicPartition] = ...,
        topic_authorized_operations: int = ...,
    ) -> None: ...

class DescribeTopicPartitionsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    topics: ArrayField[DescribedTopic]
    next_cursor: TopicPartitionsCursor | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: Elements[DescribedTopic] = ...,
        next_cursor: TopicPartitionsCursor | None = ...,
    ) -> None: ...
