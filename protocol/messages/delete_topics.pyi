# Written by scripts/message-types from delete_topics.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class DeleteTopicState(Value, metaclass=Group):
    name: str | None
    topic_id: bytes
    def __init__(
        self,
        *,
        name: str | None = ...,
        topic_id: bytes = ...,
    ) -> None: ...

class DeleteTopicsRequest(Message, metaclass=Api):
    topics: ArrayField[DeleteTopicState]
    topic_names: ArrayField[str]
    timeout_ms: int
    def __init__(
        self,
        *,
        topics: Elements[DeleteTopicState] = ...,
        topic_names: Elements[str] = ...,
        timeout_ms: int = ...,
    ) -> None: ...

class DeletableTopicResult(Value, metaclass=Group):
    name: str | None
    topic_id: bytes
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        name: str | None = ...,
        topic_id: bytes = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class DeleteTopicsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    responses: ArrayField[DeletableTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        responses: Elements[DeletableTopicResult] = ...,
    ) -> None: ...
