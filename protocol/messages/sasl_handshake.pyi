# Written by scripts/message-types from sasl_handshake.py.

from protocol.schema import Api, Message
from protocol.schema.fields import ArrayField
from protocol.schema.lazy import Elements

class SaslHandshakeRequest(Message, metaclass=Api):
    mechanism: str
    def __init__(
        self,
        *,
        mechanism: str = ...,
    ) -> None: ...

class SaslHandshakeResponse(Message, metaclass=Api):
    error_code: int
    mechanisms: ArrayField[str]
    def __init__(
        self,
        *,
        error_code: int = ...,
        mechanisms: Elements[str] = ...,
    ) -> None: ...
