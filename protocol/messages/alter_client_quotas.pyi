# Written by scripts/message-types from alter_client_quotas.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class AlteredEntityPart(Value, metaclass=Group):
    entity_type: str
    entity_name: str | None
    def __init__(
        self,
        *,
        entity_type: str = ...,
        entity_name: str | None = ...,
    ) -> None: ...

class QuotaOperation(Value, metaclass=Group):
    key: str
    value: float
    remove: bool
    def __init__(
        self,
        *,
        key: str = ...,
        value: float = ...,
        remove: bool = ...,
    ) -> None: ...

class QuotaAlteration(Value, metaclass=Group):
    entity: ArrayField[AlteredEntityPart]
    ops: ArrayField[QuotaOperation]
    def __init__(
        self,
        *,
        entity: Elements[AlteredEntityPart] = ...,
        ops: Elements[QuotaOperation] = ...,
    ) -> None: ...

class AlterClientQuotasRequest(Message, metaclass=Api):
    entries: ArrayField[QuotaAlteration]
    validate_only: bool
    def __init__(
        self,
        *,
        entries: Elements[QuotaAlteration] = ...,
        validate_only: bool = ...,
    ) -> None: ...

class QuotaAlterationResult(Value, metaclass=Group):
    error_code: int
    error_message: str | None
    entity: ArrayField[AlteredEntityPart]
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        entity: Elements[AlteredEntityPart] = ...,
    ) -> None: ...

class AlterClientQuotasResponse(Message, metaclass=Api):
    throttle_time_ms: int
    entries: ArrayField[QuotaAlterationResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        entries: Elements[QuotaAlterationResult] = ...,
    ) -> None: ...
