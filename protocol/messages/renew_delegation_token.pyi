# Written by scripts/message-types from renew_delegation_token.py.

from protocol.schema import Api, Message
from protocol.schema.fields import Blob

class RenewDelegationTokenRequest(Message, metaclass=Api):
    hmac: Blob
    renew_period_ms: int
    def __init__(
        self,
        *,
        hmac: Blob = ...,
        renew_period_ms: int = ...,
    ) -> None: ...

class RenewDelegationTokenResponse(Message, metaclass=Api):
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
