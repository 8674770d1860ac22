# Written by scripts/message-types from controlled_shutdown.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class ControlledShutdownRequest(Message, metaclass=Api):
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
    ) -> None: ...

class RemainingPartition(Value, metaclass=Group):
    topic_name: str
    partition_index: int
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partition_index: int = ...,
    ) -> None: ...

class ControlledShutdownResponse(Message, metaclass=Api):
    error_code: int
    remaining_partitions: ArrayField[RemainingPartition]
    def __init__(
        self,
        *,
        error_code: int = ...,
        remaining_partitions: Elements[RemainingPartition] = ...,
    ) -> None: ...
