# Written by scripts/message-types from alter_replica_log_dirs.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class AlterReplicaLogDirTopic(Value, metaclass=Group):
    name: str
    partitions: Sequence[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Sequence[int] = ...,
    ) -> None: ...

class AlterReplicaLogDir(Value, metaclass=Group):
    path: str
    topics: ArrayField[AlterReplicaLogDirTopic]
    def __init__(
        self,
        *,
        path: str = ...,
        topics: Elements[AlterReplicaLogDirTopic] = ...,
    ) -> None: ...

class AlterReplicaLogDirsRequest(Message, metaclass=Api):
    dirs: ArrayField[AlterReplicaLogDir]
    def __init__(
        self,
        *,
        dirs: Elements[AlterReplicaLogDir] = ...,
    ) -> None: ...

class AlterReplicaLogDirPartitionResult(Value, metaclass=Group):
    partition_index: int
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
    ) -> None: ...

class AlterReplicaLogDirTopicResult(Value, metaclass=Group):
    topic_name: str
    partitions: ArrayField[AlterReplicaLogDirPartitionResult]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partitions: Elements[AlterReplicaLogDirPartitionResult] = ...,
    ) -> None: ...

class AlterReplicaLogDirsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    results: ArrayField[AlterReplicaLogDirTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: Elements[AlterReplicaLogDirTopicResult] = ...,
    ) -> None: ...
