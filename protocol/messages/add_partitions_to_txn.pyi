# Written by scripts/message-types from add_partitions_to_txn.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class AddPartitionsToTxnTopic(Value, metaclass=Group):
    name: str
    partitions: Sequence[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: Sequence[int] = ...,
    ) -> None: ...

class AddPartitionsToTxnTransaction(Value, metaclass=Group):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    topics: ArrayField[AddPartitionsToTxnTopic]
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        verify_only: bool = ...,
        topics: Elements[AddPartitionsToTxnTopic] = ...,
    ) -> None: ...

class AddPartitionsToTxnRequest(Message, metaclass=Api):
    transactions: ArrayField[AddPartitionsToTxnTransaction]
    v3_and_below_transactional_id: str
    v3_and_below_producer_id: int
    v3_and_below_producer_epoch: int
    v3_and_below_topics: ArrayField[AddPartitionsToTxnTopic]
    def __init__(
        self,
        *,
        transactions: Elements[AddPartitionsToTxnTransaction] = ...,
        v3_and_below_transactional_id: str = ...,
        v3_and_below_producer_id: int = ...,
        v3_and_below_producer_epoch: int = ...,
        v3_and_below_topics: Elements[AddPartitionsToTxnTopic] = ...,
    ) -> None: ...

class AddPartitionsToTxnPartitionResult(Value, metaclass=Group):
    partition_index: int
    partition_error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        partition_error_code: int = ...,
    ) -> None: ...

class AddPartitionsToTxnTopicResult(Value, metaclass=Group):
    name: str
    results_by_partition: ArrayField[AddPartitionsToTxnPartitionResult]
    def __init__(
        self,
        *,
        name: str = ...,
        results_by_partition: Elements[AddPartitionsToTxnPartitionResult] = ...,
    ) -> None: ...

class AddPartitionsToTxnResult(Value, metaclass=Group):
    transactional_id: str
    topic_results: ArrayField[AddPartitionsToTxnTopicResult]
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        topic_results: Elements[AddPartitionsToTxnTopicResult] = ...,
    ) -> None: ...

class AddPartitionsToTxnResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    results_by_transaction: ArrayField[AddPartitionsToTxnResult]
    results_by_topic_v3_and_below: ArrayField[AddPartitionsToTxnTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        results_by_transaction: Elements[AddPartitionsToTxnResult] = ...,
        results_by_topic_v3_and_below: Elements[AddPartitionsToTxnTopicResult] = ...,
    ) -> None: ...
