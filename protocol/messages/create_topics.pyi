# Written by scripts/message-types from create_topics.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, NullableArrayField
from protocol.schema.lazy import Elements

class CreatableReplicaAssignment(Value, metaclass=Group):
    partition_index: int
    broker_ids: Sequence[int]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        broker_ids: Sequence[int] = ...,
    ) -> None: ...

class CreatableTopicConfig(Value, metaclass=Group):
    name: str
    value: str | None
    def __init__(
        self,
        *,
        name: str = ...,
        value: str | None = ...,
    ) -> None: ...

class CreatableTopic(Value, metaclass=Group):
    name: str
    num_partitions: int
    replication_factor: int
    assignments: ArrayField[CreatableReplicaAssignment]
    configs: ArrayField[CreatableTopicConfig]
    def __init__(
        self,
        *,
        name: str = ...,
        num_partitions: int = ...,
        replication_factor: int = ...,
        assignments: Elements[CreatableReplicaAssignment] = ...,
        configs: Elements[CreatableTopicConfig] = ...,
    ) -> None: ...

class CreateTopicsRequest(Message, metaclass=Api):
    topics: ArrayField[CreatableTopic]
    timeout_ms: int
    validate_only: bool
    def __init__(
        self,
        *,
        topics: Elements[CreatableTopic] = ...,
        timeout_ms: int = ...,
        validate_only: bool = ...,
    ) -> None: ...

class CreatableTopicConfigs(Value, metaclass=Group):
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool
    def __init__(
        self,
        *,
        name: str = ...,
        value: str | None = ...,
        read_only: bool = ...,
        config_source: int = ...,
        is_sensitive: bool = ...,
    ) -> None: ...

class CreatableTopicResult(Value, metaclass=Group):
    name: str
    topic_id: bytes
    error_code: int
    error_message: str | None
    topic_config_error_code: int
    num_partitions: int
    replication_factor: int
    configs: NullableArrayField[CreatableTopicConfigs]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: bytes = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        topic_config_error_code: int = ...,
        num_partitions: int = ...,
        replication_factor: int = ...,
        configs: Elements[CreatableTopicConfigs] | None = ...,
    ) -> None: ...

class CreateTopicsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    topics: ArrayField[CreatableTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: Elements[CreatableTopicResult] = ...,
    ) -> None: ...
