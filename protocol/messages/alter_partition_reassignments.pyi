# Written by scripts/message-types from alter_partition_reassignments.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class ReassignablePartition(Value, metaclass=Group):
    partition_index: int
    replicas: Sequence[int] | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        replicas: Sequence[int] | None = ...,
    ) -> None: ...

class ReassignableTopic(Value, metaclass=Group):
    name: str
    partitions: ArrayField[ReassignablePartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[ReassignablePartition] = ...,
    ) -> None: ...

class AlterPartitionReassignmentsRequest(Message, metaclass=Api):
    timeout_ms: int
    allow_replication_factor_change: bool
    topics: ArrayField[ReassignableTopic]
    def __init__(
        self,
        *,
        timeout_ms: int = ...,
        allow_replication_factor_change: bool = ...,
        topics: Elements[ReassignableTopic] = ...,
    ) -> None: ...

class ReassignablePartitionResponse(Value, metaclass=Group):
    partition_index: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class ReassignableTopicResponse(Value, metaclass=Group):
    name: str
    partitions: ArrayField[ReassignablePartitionResponse]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[ReassignablePartitionResponse] = ...,
    ) -> None: ...

class AlterPartitionReassignmentsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: ArrayField[ReassignableTopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        allow_replication_factor_change: bool = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        responses: Elements[ReassignableTopicResponse] = ...,
    ) -> None: ...
