# Written by scripts/message-types from stop_replica.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class StopReplicaPartitionV0(Value, metaclass=Group):
    topic_name: str
    partition_index: int
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partition_index: int = ...,
    ) -> None: ...

class StopReplicaTopicV1(Value, metaclass=Group):
    name: str
    partition_indexes: Sequence[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partition_indexes: Sequence[int] = ...,
    ) -> None: ...

class StopReplicaPartitionState(Value, metaclass=Group):
    partition_index: int
    leader_epoch: int
    delete_partition: bool
    def __init__(
        self,
        *,
        partition_index: int = ...,
        leader_epoch: int = ...,
        delete_partition: bool = ...,
    ) -> None: ...

class StopReplicaTopicState(Value, metaclass=Group):
    topic_name: str
    partition_states: ArrayField[StopReplicaPartitionState]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partition_states: Elements[StopReplicaPartitionState] = ...,
    ) -> None: ...

class StopReplicaRequest(Message, metaclass=Api):
    controller_id: int
    is_k_raft_controller: bool
    controller_epoch: int
    broker_epoch: int
    delete_partitions: bool
    ungrouped_partitions: ArrayField[StopReplicaPartitionV0]
    topics: ArrayField[StopReplicaTopicV1]
    topic_states: ArrayField[StopReplicaTopicState]
    def __init__(
        self,
        *,
        controller_id: int = ...,
        is_k_raft_controller: bool = ...,
        controller_epoch: int = ...,
        broker_epoch: int = ...,
        delete_partitions: bool = ...,
        ungrouped_partitions: Elements[StopReplicaPartitionV0] = ...,
        topics: Elements[StopReplicaTopicV1] = ...,
        topic_states: Elements[StopReplicaTopicState] = ...,
    ) -> None: ...

class StopReplicaPartitionError(Value, metaclass=Group):
    topic_name: str
    partition_index: int
    error_code: int
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partition_index: int = ...,
        error_code: int = ...,
    ) -> None: ...

class StopReplicaResponse(Message, metaclass=Api):
    error_code: int
    partition_errors: ArrayField[StopReplicaPartitionError]
    def __init__(
        self,
        *,
        error_code: int = ...,
        partition_errors: Elements[StopReplicaPartitionError] = ...,
    ) -> None: ...
