# Written by scripts/message-types from write_txn_markers.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class WritableTxnMarkerTopic(Value, metaclass=Group):
    name: str
    partition_indexes: Sequence[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partition_indexes: Sequence[int] = ...,
    ) -> None: ...

class WritableTxnMarker(Value, metaclass=Group):
    producer_id: int
    producer_epoch: int
    transaction_result: bool
    topics: ArrayField[WritableTxnMarkerTopic]
    coordinator_epoch: int
    transaction_version: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        producer_epoch: int = ...,
        transaction_result: bool = ...,
        topics: Elements[WritableTxnMarkerTopic] = ...,
        coordinator_epoch: int = ...,
        transaction_version: int = ...,
    ) -> None: ...

class WriteTxnMarkersRequest(Message, metaclass=Api):
    markers: ArrayField[WritableTxnMarker]
    def __init__(
        self,
        *,
        markers: Elements[WritableTxnMarker] = ...,
    ) -> None: ...

class WritableTxnMarkerPartitionResult(Value, metaclass=Group):
    partition_index: int
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
    ) -> None: ...

class WritableTxnMarkerTopicResult(Value, metaclass=Group):
    name: str
    partitions: ArrayField[WritableTxnMarkerPartitionResult]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Elements[WritableTxnMarkerPartitionResult] = ...,
    ) -> None: ...

class WritableTxnMarkerResult(Value, metaclass=Group):
    producer_id: int
    topics: ArrayField[WritableTxnMarkerTopicResult]
    def __init__(
        self,
        *,
        producer_id: int = ...,
        topics: Elements[WritableTxnMarkerTopicResult] = ...,
    ) -> None: ...

class WriteTxnMarkersResponse(Message, metaclass=Api):
    markers: ArrayField[WritableTxnMarkerResult]
    def __init__(
        self,
        *,
        markers: Elements[WritableTxnMarkerResult] = ...,
    ) -> None: ...
