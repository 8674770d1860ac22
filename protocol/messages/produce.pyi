# Written by scripts/message-types from produce.py.

from collections.abc import Sized

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, RecordsField
from protocol.schema.lazy import Elements

class PartitionProduceData(Value, metaclass=Group):
    index: int
    records: RecordsField
    def __init__(
        self,
        *,
        index: int = ...,
        records: Sized | None = ...,
    ) -> None: ...

class TopicProduceData(Value, metaclass=Group):
    name: str
    topic_id: bytes
    partition_data: ArrayField[PartitionProduceData]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: bytes = ...,
        partition_data: Elements[PartitionProduceData] = ...,
    ) -> None: ...

class ProduceRequest(Message, metaclass=Api):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: ArrayField[TopicProduceData]
    def __init__(
        self,
        *,
        transactional_id: str | None = ...,
        acks: int = ...,
        timeout_ms: int = ...,
        topic_data: Elements[TopicProduceData] = ...,
    ) -> None: ...

class BatchIndexAndErrorMessage(Value, metaclass=Group):
    batch_index: int
    batch_index_error_message: str | None
    def __init__(
        self,
        *,
        batch_index: int = ...,
        batch_index_error_message: str | None = ...,
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

class PartitionProduceResponse(Value, metaclass=Group):
    index: int
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: ArrayField[BatchIndexAndErrorMessage]
    error_message: str | None
    current_leader: LeaderIdAndEpoch
    def __init__(
        self,
        *,
        index: int = ...,
        error_code: int = ...,
        base_offset: int = ...,
        log_append_time_ms: int = ...,
        log_start_offset: int = ...,
        record_errors: Elements[BatchIndexAndErrorMessage] = ...,
        error_message: str | None = ...,
        current_leader: LeaderIdAndEpoch = ...,
    ) -> None: ...

class TopicProduceResponse(Value, metaclass=Group):
    name: str
    topic_id: bytes
    partition_responses: ArrayField[PartitionProduceResponse]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: bytes = ...,
        partition_responses: Elements[PartitionProduceResponse] = ...,
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

class ProduceResponse(Message, metaclass=Api):
    responses: ArrayField[TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: ArrayField[NodeEndpoint]
    def __init__(
        self,
        *,
        responses: Elements[TopicProduceResponse] = ...,
        throttle_time_ms: int = ...,
        node_endpoints: Elements[NodeEndpoint] = ...,
    ) -> None: ...
