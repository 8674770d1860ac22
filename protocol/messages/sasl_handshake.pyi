# Written by scripts/message-types from sasl_handshake.py.

from protocol.schema import Api, Message
from protocol.schema.fields import ArrayField

class SaslHandshakeRequest(Message, metaclass=Api):
    mechanism: str = ...

class SaslHandshakeResponse(Message, metaclass=Api):
    error_code: int = ...
    mechanisms: ArrayField[str] = ...
