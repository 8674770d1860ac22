# Written by scripts/message-types from describe_log_dirs.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, NullableArrayField
from protocol.schema.lazy import Elements

class DescribableLogDirTopic(Value, metaclass=Group):
    topic: str
    partitions: Sequence[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: Sequence[int] = ...,
    ) -> None: ...

class DescribeLogDirsRequest(Message, metaclass=Api):
    topics: NullableArrayField[DescribableLogDirTopic]
    def __init__(
        self,
        *,
        topics: Elements[DescribableLogDirTopic] | None = ...,
    ) -> None: ...

class DescribeLogDirsPartition(Value, metaclass=Group):
    partition_index: int
    partition_size: int
    offset_lag: int
    is_future_key: bool
    def __init__(
        self,
        *,
        partition_index: int = ...,
        partition_size: int = ...,
        offset_lag: int = ...,
        is_future_key: bool = ...,
    ) -> None: ...

class DescribeLogDirsTopic(Value, metaclass=Group):
    name: str
    partitions: ArrayField[DescribeLogDirsPartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[DescribeLogDirsPartition] = ...,
    ) -> None: ...

class DescribeLogDirsResult(Value, metaclass=Group):
    error_code: int
    log_dir: str
    topics: ArrayField[DescribeLogDirsTopic]
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool
    def __init__(
        self,
        *,
        error_code: int = ...,
        log_dir: str = ...,
        topics: Elements[DescribeLogDirsTopic] = ...,
        total_bytes: int = ...,
        usable_bytes: int = ...,
        is_cordoned: bool = ...,
    ) -> None: ...

class DescribeLogDirsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    results: ArrayField[DescribeLogDirsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        results: Elements[DescribeLogDirsResult] = ...,
    ) -> None: ...
