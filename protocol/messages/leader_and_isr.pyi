# Written by scripts/message-types from leader_and_isr.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class LeaderAndIsrPartitionState(Value, metaclass=Group):
    topic_name: str
    partition_index: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: Sequence[int]
    partition_epoch: int
    replicas: Sequence[int]
    adding_replicas: Sequence[int]
    removing_replicas: Sequence[int]
    is_new: bool
    leader_recovery_state: int
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partition_index: int = ...,
        controller_epoch: int = ...,
        leader: int = ...,
        leader_epoch: int = ...,
        isr: Sequence[int] = ...,
        partition_epoch: int = ...,
        replicas: Sequence[int] = ...,
        adding_replicas: Sequence[int] = ...,
        removing_replicas: Sequence[int] = ...,
        is_new: bool = ...,
        leader_recovery_state: int = ...,
    ) -> None: ...

class LeaderAndIsrTopicState(Value, metaclass=Group):
    topic_name: str
    topic_id: bytes
    partition_states: ArrayField[LeaderAndIsrPartitionState]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        topic_id: bytes = ...,
        partition_states: Elements[LeaderAndIsrPartitionState] = ...,
    ) -> None: ...

class LeaderAndIsrLiveLeader(Value, metaclass=Group):
    broker_id: int
    host_name: str
    port: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        host_name: str = ...,
        port: int = ...,
    ) -> None: ...

class LeaderAndIsrRequest(Message, metaclass=Api):
    controller_id: int
    is_k_raft_controller: bool
    controller_epoch: int
    broker_epoch: int
    type: int
    ungrouped_partition_states: ArrayField[LeaderAndIsrPartitionState]
    topic_states: ArrayField[LeaderAndIsrTopicState]
    live_leaders: ArrayField[LeaderAndIsrLiveLeader]
    def __init__(
        self,
        *,
        controller_id: int = ...,
        is_k_raft_controller: bool = ...,
        controller_epoch: int = ...,
        broker_epoch: int = ...,
        type: int = ...,
        ungrouped_partition_states: Elements[LeaderAndIsrPartitionState] = ...,
        topic_states: Elements[LeaderAndIsrTopicState] = ...,
        live_leaders: Elements[LeaderAndIsrLiveLeader] = ...,
    ) -> None: ...

class LeaderAndIsrPartitionError(Value, metaclass=Group):
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

class LeaderAndIsrTopicError(Value, metaclass=Group):
    topic_id: bytes
    partition_errors: ArrayField[LeaderAndIsrPartitionError]
    def __init__(
        self,
        *,
        topic_id: bytes = ...,
        partition_errors: Elements[LeaderAndIsrPartitionError] = ...,
    ) -> None: ...

class LeaderAndIsrResponse(Message, metaclass=Api):
    error_code: int
    partition_errors: ArrayField[LeaderAndIsrPartitionError]
    topics: ArrayField[LeaderAndIsrTopicError]
    def __init__(
        self,
        *,
        error_code: int = ...,
        partition_errors: Elements[LeaderAndIsrPartitionError] = ...,
        topics: Elements[LeaderAndIsrTopicError] = ...,
    ) -> None: ...
