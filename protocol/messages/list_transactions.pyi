# Written by scripts/message-types from list_transactions.py.

from collections.abc import Sequence

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class ListTransactionsRequest(Message, metaclass=Api):
    state_filters: ArrayField[str]
    producer_id_filters: Sequence[int]
    duration_filter: int
    transactional_id_pattern: str | None
    def __init__(
        self,
        *,
        state_filters: Elements[str] = ...,
        producer_id_filters: Sequence[int] = ...,
        duration_filter: int = ...,
        transactional_id_pattern: str | None = ...,
    ) -> None: ...

class TransactionState(Value, metaclass=Group):
    transactional_id: str
    producer_id: int
    transaction_state: str
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        producer_id: int = ...,
        transaction_state: str = ...,
    ) -> None: ...

class ListTransactionsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    unknown_state_filters: ArrayField[str]
    transaction_states: ArrayField[TransactionState]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        unknown_state_filters: Elements[str] = ...,
        transaction_states: Elements[TransactionState] = ...,
    ) -> None: ...
