# Written by scripts/message-types from delete_records.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class DeleteRecordsPartition(Value, metaclass=Group):
    partition_index: int
    offset: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        offset: int = ...,
    ) -> None: ...

class DeleteRecordsTopic(Value, metaclass=Group):
    name: str
    partitions: ArrayField[DeleteRecordsPartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[DeleteRecordsPartition] = ...,
    ) -> None: ...

class DeleteRecordsRequest(Message, metaclass=Api):
    topics: ArrayField[DeleteRecordsTopic]
    timeout_ms: int
    def __init__(
        self,
        *,
        topics: Elements[DeleteRecordsTopic] = ...,
        timeout_ms: int = ...,
    ) -> None: ...

class DeleteRecordsPartitionResult(Value, metaclass=Group):
    partition_index: int
    low_watermark: int
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        low_watermark: int = ...,
        error_code: int = ...,
    ) -> None: ...

class DeleteRecordsTopicResult(Value, metaclass=Group):
    name: str
    partitions: ArrayField[DeleteRecordsPartitionResult]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[DeleteRecordsPartitionResult] = ...,
    ) -> None: ...

class DeleteRecordsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    topics: ArrayField[DeleteRecordsTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: Elements[DeleteRecordsTopicResult] = ...,
    ) -> None: ...
