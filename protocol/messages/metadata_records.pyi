# Written by scripts/message-types from metadata_records.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, Blob
from protocol.schema.lazy import Elements

class TopicRecord(Message, metaclass=Api):
    name: str
    topic_id: bytes
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: bytes = ...,
    ) -> None: ...

class PartitionRecord(Message, metaclass=Api):
    partition_id: int
    topic_id: bytes
    replicas: Sequence[int]
    isr: Sequence[int]
    removing_replicas: Sequence[int]
    adding_replicas: Sequence[int]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    directories: ArrayField[bytes]
    eligible_leader_replicas: Sequence[int] | None
    last_known_elr: Sequence[int] | None
    def __init__(
        self,
        *,
        partition_id: int = ...,
        topic_id: bytes = ...,
        replicas: Sequence[int] = ...,
        isr: Sequence[int] = ...,
        removing_replicas: Sequence[int] = ...,
        adding_replicas: Sequence[int] = ...,
        leader: int = ...,
        leader_recovery_state: int = ...,
        leader_epoch: int = ...,
        partition_epoch: int = ...,
        directories: Elements[bytes] = ...,
        eligible_leader_replicas: Sequence[int] | None = ...,
        last_known_elr: Sequence[int] | None = ...,
    ) -> None: ...

class ConfigRecord(Message, metaclass=Api):
    resource_type: int
    resource_name: str
    name: str
    value: str | None
    def __init__(
        self,
        *,
        resource_type: int = ...,
        resource_name: str = ...,
        name: str = ...,
        value: str | None = ...,
    ) -> None: ...

class RemoveTopicRecord(Message, metaclass=Api):
    topic_id: bytes
    def __init__(
        self,
        *,
        topic_id: bytes = ...,
    ) -> None: ...

class ProducerIdsRecord(Message, metaclass=Api):
    broker_id: int
    broker_epoch: int
    next_producer_id: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        next_producer_id: int = ...,
    ) -> None: ...

class UserScramCredentialRecord(Message, metaclass=Api):
    name: str
    mechanism: int
    salt: Blob
    stored_key: Blob
    server_key: Blob
    iterations: int
    def __init__(
        self,
        *,
        name: str = ...,
        mechanism: int = ...,
        salt: Blob = ...,
        stored_key: Blob = ...,
        server_key: Blob = ...,
        iterations: int = ...,
    ) -> None: ...

class RemoveUserScramCredentialRecord(Message, metaclass=Api):
    name: str
    mechanism: int
    def __init__(
        self,
        *,
        name: str = ...,
        mechanism: int = ...,
    ) -> None: ...

class QuotaEntity(Value, metaclass=Group):
    entity_type: str
    entity_name: str | None
    def __init__(
        self,
        *,
        entity_type: str = ...,
        entity_name: str | None = ...,
    ) -> None: ...

class ClientQuotaRecord(Message, metaclass=Api):
    entity: ArrayField[QuotaEntity]
    key: str
    value: float
    remove: bool
    def __init__(
        self,
        *,
        entity: Elements[QuotaEntity] = ...,
        key: str = ...,
        value: float = ...,
        remove: bool = ...,
    ) -> None: ...

class AccessControlEntryRecord(Message, metaclass=Api):
    id: bytes
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        id: bytes = ...,
        resource_type: int = ...,
        resource_name: str = ...,
        pattern_type: int = ...,
        principal: str = ...,
        host: str = ...,
        operation: int = ...,
        permission_type: int = ...,
    ) -> None: ...

class RemoveAccessControlEntryRecord(Message, metaclass=Api):
    id: bytes
    def __init__(
        self,
        *,
        id: bytes = ...,
    ) -> None: ...

class BeginTransactionRecord(Message, metaclass=Api):
    name: str | None
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class EndTransactionRecord(Message, metaclass=Api):
    def __init__(self) -> None: ...

class AbortTransactionRecord(Message, metaclass=Api):
    reason: str | None
    def __init__(
        self,
        *,
        reason: str | None = ...,
    ) -> None: ...
