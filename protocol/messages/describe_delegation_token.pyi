# Written by scripts/message-types from describe_delegation_token.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, Blob, NullableArrayField
from protocol.schema.lazy import Elements

class DescribeDelegationTokenOwner(Value, metaclass=Group):
    principal_type: str
    principal_name: str
    def __init__(
        self,
        *,
        principal_type: str = ...,
        principal_name: str = ...,
    ) -> None: ...

class DescribeDelegationTokenRequest(Message, metaclass=Api):
    owners: NullableArrayField[DescribeDelegationTokenOwner]
    def __init__(
        self,
        *,
        owners: Elements[DescribeDelegationTokenOwner] | None = ...,
    ) -> None: ...

class DescribedDelegationTokenRenewer(Value, metaclass=Group):
    principal_type: str
    principal_name: str
    def __init__(
        self,
        *,
        principal_type: str = ...,
        principal_name: str = ...,
    ) -> None: ...

class DescribedDelegationToken(Value, metaclass=Group):
    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int
    token_id: str
    hmac: Blob
    renewers: ArrayField[DescribedDelegationTokenRenewer]
    def __init__(
        self,
        *,
        principal_type: str = ...,
        principal_name: str = ...,
        token_requester_principal_type: str = ...,
        token_requester_principal_name: str = ...,
        issue_timestamp: int = ...,
        expiry_timestamp: int = ...,
        max_timestamp: int = ...,
        token_id: str = ...,
        hmac: Blob = ...,
        renewers: Elements[DescribedDelegationTokenRenewer] = ...,
    ) -> None: ...

class DescribeDelegationTokenResponse(Message, metaclass=Api):
    error_code: int
    tokens: ArrayField[DescribedDelegationToken]
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        tokens: Elements[DescribedDelegationToken] = ...,
        throttle_time_ms: int = ...,
    ) -> None: ...
