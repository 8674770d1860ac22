# Written by scripts/message-types from elect_leaders.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, NullableArrayField
from protocol.schema.lazy import Elements

class ElectTopicPartitions(Value, metaclass=Group):
    topic: str
    partitions: Sequence[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: Sequence[int] = ...,
    ) -> None: ...

class ElectLeadersRequest(Message, metaclass=Api):
    election_type: int
    topic_partitions: NullableArrayField[ElectTopicPartitions]
    timeout_ms: int
    def __init__(
        self,
        *,
        election_type: int = ...,
        topic_partitions: Elements[ElectTopicPartitions] | None = ...,
        timeout_ms: int = ...,
    ) -> None: ...

class ElectionPartitionResult(Value, metaclass=Group):
    partition_id: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        partition_id: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class ReplicaElectionResult(Value, metaclass=Group):
    topic: str
    partition_result: ArrayField[ElectionPartitionResult]
    def __init__(
        self,
        *,
        topic: str = ...,
        partition_result: Elements[ElectionPartitionResult] = ...,
    ) -> None: ...

class ElectLeadersResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    replica_election_results: ArrayField[ReplicaElectionResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        replica_election_results: Elements[ReplicaElectionResult] = ...,
    ) -> None: ...
