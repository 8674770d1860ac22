# Written by scripts/message-types from sasl_authenticate.py.

from protocol.schema import Api, Message
from protocol.schema.fields import Blob

class SaslAuthenticateRequest(Message, metaclass=Api):
    auth_bytes: Blob
    def __init__(
        self,
        *,
        auth_bytes: Blob = ...,
    ) -> None: ...

class SaslAuthenticateResponse(Message, metaclass=Api):
    error_code: int
    error_message: str | None
    auth_bytes: Blob
    session_lifetime_ms: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        auth_bytes: Blob = ...,
        session_lifetime_ms: int = ...,
    ) -> None: ...
