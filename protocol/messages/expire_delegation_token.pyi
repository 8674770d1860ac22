# Written by scripts/message-types from expire_delegation_token.py.

from protocol.schema import Api, Message
from protocol.schema.fields import Blob

class ExpireDelegationTokenRequest(Message, metaclass=Api):
    hmac: Blob
    expiry_time_period_ms: int
    def __init__(
        self,
        *,
        hmac: Blob = ...,
        expiry_time_period_ms: int = ...,
    ) -> None: ...

class ExpireDelegationTokenResponse(Message, metaclass=Api):
    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        expiry_timestamp_ms: int = ...,
        throttle_time_ms: int = ...,
    ) -> None: ...
