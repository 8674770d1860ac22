# Written by scripts/message-types from update_metadata.py.

from collections.abc import Sequence

from protocol.schema import Api, Encoded, Group, Message, Value
from protocol.schema.fields import ArrayField, EncodedArrayField
from protocol.schema.lazy import Elements

class UpdateMetadataPartitionState(Value, metaclass=Group):
    topic_name: str
    partition_index: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: Sequence[int]
    zk_version: int
    replicas: Sequence[int]
    offline_replicas: Sequence[int]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partition_index: int = ...,
        controller_epoch: int = ...,
        leader: int = ...,
        leader_epoch: int = ...,
        isr: Sequence[int] = ...,
        zk_version: int = ...,
        replicas: Sequence[int] = ...,
        offline_replicas: Sequence[int] = ...,
    ) -> None: ...

class UpdateMetadataTopicState(Value, metaclass=Group):
    topic_name: str
    topic_id: bytes
    partition_states: ArrayField[UpdateMetadataPartitionState]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        topic_id: bytes = ...,
        partition_states: Elements[UpdateMetadataPartitionState] = ...,
    ) -> None: ...

class UpdateMetadataEndpoint(Value, metaclass=Group):
    port: int
    host: str
    listener: str
    security_protocol: int
    def __init__(
        self,
        *,
        port: int = ...,
        host: str = ...,
        listener: str = ...,
        security_protocol: int = ...,
    ) -> None: ...

class UpdateMetadataBroker(Value, metaclass=Group):
    id: int
    v0_host: str
    v0_port: int
    endpoints: ArrayField[UpdateMetadataEndpoint]
    rack: str | None
    def __init__(
        self,
        *,
        id: int = ...,
        v0_host: str = ...,
        v0_port: int = ...,
        endpoints: Elements[UpdateMetadataEndpoint] = ...,
        rack: str | None = ...,
    ) -> None: ...

class UpdateMetadataRequest(Message, metaclass=Api):
    controller_id: int
    is_k_raft_controller: bool
    type: int
    controller_epoch: int
    broker_epoch: int
    ungrouped_partition_states: ArrayField[UpdateMetadataPartitionState]
    topic_states: EncodedArrayField[UpdateMetadataTopicState]
    live_brokers: ArrayField[UpdateMetadataBroker]
    def __init__(
        self,
        *,
        controller_id: int = ...,
        is_k_raft_controller: bool = ...,
        type: int = ...,
        controller_epoch: int = ...,
        broker_epoch: int = ...,
        ungrouped_partition_states: Elements[UpdateMetadataPartitionState] = ...,
        topic_states: Elements[UpdateMetadataTopicState | Encoded] = ...,
        live_brokers: Elements[UpdateMetadataBroker] = ...,
    ) -> None: ...

class UpdateMetadataResponse(Message, metaclass=Api):
    error_code: int
    def __init__(
        self,
        *,
        error_code: int = ...,
    ) -> None: ...
