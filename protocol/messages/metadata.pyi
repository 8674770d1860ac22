# Written by scripts/message-types from metadata.py.

from collections.abc import Sequence

from protocol.schema import Api, Encoded, Group, Message, Value
from protocol.schema.fields import ArrayField, EncodedArrayField, NullableArrayField
from protocol.schema.lazy import Elements

class MetadataRequestTopic(Value, metaclass=Group):
    topic_id: bytes
    name: str | None
    def __init__(
        self,
        *,
        topic_id: bytes = ...,
        name: str | None = ...,
    ) -> None: ...

class MetadataRequest(Message, metaclass=Api):
    topics: NullableArrayField[MetadataRequestTopic]
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool
    include_topic_authorized_operations: bool
    def __init__(
        self,
        *,
        topics: Elements[MetadataRequestTopic] | None = ...,
        allow_auto_topic_creation: bool = ...,
        include_cluster_authorized_operations: bool = ...,
        include_topic_authorized_operations: bool = ...,
    ) -> None: ...

class MetadataResponseBroker(Value, metaclass=Group):
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

class MetadataResponsePartition(Value, metaclass=Group):
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Sequence[int]
    isr_nodes: Sequence[int]
    offline_replicas: Sequence[int]
    def __init__(
        self,
        *,
        error_code: int = ...,
        partition_index: int = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        replica_nodes: Sequence[int] = ...,
        isr_nodes: Sequence[int] = ...,
        offline_replicas: Sequence[int] = ...,
    ) -> None: ...

class MetadataResponseTopic(Value, metaclass=Group):
    error_code: int
    name: str | None
    topic_id: bytes
    is_internal: bool
    partitions: ArrayField[MetadataResponsePartition]
    topic_authorized_operations: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        name: str | None = ...,
        topic_id: bytes = ...,
        is_internal: bool = ...,
        partitions: Elements[MetadataResponsePartition] = ...,
        topic_authorized_operations: int = ...,
    ) -> None: ...

class MetadataResponse(Message, metaclass=Api):
    throttle_time_ms: int
    brokers: ArrayField[MetadataResponseBroker]
    cluster_id: str | None
    controller_id: int
    topics: EncodedArrayField[MetadataResponseTopic]
    cluster_authorized_operations: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        brokers: Elements[MetadataResponseBroker] = ...,
        cluster_id: str | None = ...,
        controller_id: int = ...,
        topics: Elements[MetadataResponseTopic | Encoded] = ...,
        cluster_authorized_operations: int = ...,
        error_code: int = ...,
    ) -> None: ...
