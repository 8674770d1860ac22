# Written by scripts/message-types from describe_producers.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class TopicRequest(Value, metaclass=Group):
    name: str
    partition_indexes: Sequence[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partition_indexes: Sequence[int] = ...,
    ) -> None: ...

class DescribeProducersRequest(Message, metaclass=Api):
    topics: ArrayField[TopicRequest]
    def __init__(
        self,
        *,
        topics: Elements[TopicRequest] = ...,
    ) -> None: ...

class ProducerState(Value, metaclass=Group):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        producer_epoch: int = ...,
        last_sequence: int = ...,
        last_timestamp: int = ...,
        coordinator_epoch: int = ...,
        current_txn_start_offset: int = ...,
    ) -> None: ...

class PartitionResponse(Value, metaclass=Group):
    partition_index: int
    error_code: int
    error_message: str | None
    active_producers: ArrayField[ProducerState]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        active_producers: Elements[ProducerState] = ...,
    ) -> None: ...

class TopicResponse(Value, metaclass=Group):
    name: str
    partitions: ArrayField[PartitionResponse]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[PartitionResponse] = ...,
    ) -> None: ...

class DescribeProducersResponse(Message, metaclass=Api):
    throttle_time_ms: int
    topics: ArrayField[TopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: Elements[TopicResponse] = ...,
    ) -> None: ...
