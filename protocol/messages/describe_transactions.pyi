# Written by scripts/message-types from describe_transactions.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class DescribeTransactionsRequest(Message, metaclass=Api):
    transactional_ids: ArrayField[str]
    def __init__(
        self,
        *,
        transactional_ids: Elements[str] = ...,
    ) -> None: ...

class TopicData(Value, metaclass=Group):
    topic: str
    partitions: Sequence[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: Sequence[int] = ...,
    ) -> None: ...

class TransactionState(Value, metaclass=Group):
    error_code: int
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: int
    transaction_start_time_ms: int
    producer_id: int
    producer_epoch: int
    topics: ArrayField[TopicData]
    def __init__(
        self,
        *,
        error_code: int = ...,
        transactional_id: str = ...,
        transaction_state: str = ...,
        transaction_timeout_ms: int = ...,
        transaction_start_time_ms: int = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        topics: Elements[TopicData] = ...,
    ) -> None: ...

class DescribeTransactionsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    transaction_states: ArrayField[TransactionState]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        transaction_states: Elements[TransactionState] = ...,
    ) -> None: ...
