# Written by scripts/message-types from describe_client_quotas.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, NullableArrayField
from protocol.schema.lazy import Elements

class QuotaFilterComponent(Value, metaclass=Group):
    entity_type: str
    match_type: int
    match: str | None
    def __init__(
        self,
        *,
        entity_type: str = ...,
        match_type: int = ...,
        match: str | None = ...,
    ) -> None: ...

class DescribeClientQuotasRequest(Message, metaclass=Api):
    components: ArrayField[QuotaFilterComponent]
    strict: bool
    def __init__(
        self,
        *,
        components: Elements[QuotaFilterComponent] = ...,
        strict: bool = ...,
    ) -> None: ...

class QuotaEntityPart(Value, metaclass=Group):
    entity_type: str
    entity_name: str | None
    def __init__(
        self,
        *,
        entity_type: str = ...,
        entity_name: str | None = ...,
    ) -> None: ...

class QuotaValue(Value, metaclass=Group):
    key: str
    value: float
    def __init__(
        self,
        *,
        key: str = ...,
        value: float = ...,
    ) -> None: ...

class DescribedQuotas(Value, metaclass=Group):
    entity: ArrayField[QuotaEntityPart]
    values: ArrayField[QuotaValue]
    def __init__(
        self,
        *,
        entity: Elements[QuotaEntityPart] = ...,
        values: Elements[QuotaValue] = ...,
    ) -> None: ...

class DescribeClientQuotasResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: NullableArrayField[DescribedQuotas]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        entries: Elements[DescribedQuotas] | None = ...,
    ) -> None: ...
