# Written by scripts/message-types from alter_partition.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class BrokerState(Value, metaclass=Group):
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
    ) -> None: ...

class AlteredPartition(Value, metaclass=Group):
    partition_index: int
    leader_epoch: int
    new_isr: Sequence[int]
    new_isr_with_epochs: ArrayField[BrokerState]
    leader_recovery_state: int
    partition_epoch: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        leader_epoch: int = ...,
        new_isr: Sequence[int] = ...,
        new_isr_with_epochs: Elements[BrokerState] = ...,
        leader_recovery_state: int = ...,
        partition_epoch: int = ...,
    ) -> None: ...

class AlteredTopic(Value, metaclass=Group):
    topic_name: str
    topic_id: bytes
    partitions: ArrayField[AlteredPartition]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        topic_id: bytes = ...,
        partitions: Elements[AlteredPartition] = ...,
    ) -> None: ...

class AlterPartitionRequest(Message, metaclass=Api):
    broker_id: int
    broker_epoch: int
    topics: ArrayField[AlteredTopic]
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        topics: Elements[AlteredTopic] = ...,
    ) -> None: ...

class AlteredPartitionResult(Value, metaclass=Group):
    partition_index: int
    error_code: int
    leader_id: int
    leader_epoch: int
    isr: Sequence[int]
    leader_recovery_state: int
    partition_epoch: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        isr: Sequence[int] = ...,
        leader_recovery_state: int = ...,
        partition_epoch: int = ...,
    ) -> None: ...

class AlteredTopicResult(Value, metaclass=Group):
    topic_name: str
    topic_id: bytes
    partitions: ArrayField[AlteredPartitionResult]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        topic_id: bytes = ...,
        partitions: Elements[AlteredPartitionResult] = ...,
    ) -> None: ...

class AlterPartitionResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    topics: ArrayField[AlteredTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        topics: Elements[AlteredTopicResult] = ...,
    ) -> None: ...
