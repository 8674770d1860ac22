"""One connection to a listener that authenticates; its answers can be compared.

They are shown without times and without things that a broker draws: nonces, salts, ids of tokens.
"""

import base64
import socket
import struct
from collections.abc import Callable
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.sasl import MalformedMessage
from protocol.sasl.scram import ScramMechanism, salted_password
from protocol.sasl.scram_messages import build_client_final, build_client_first, parse_server_first
from protocol.schema.values import Value
from tests.support.wire_client import read_response, request_frame

PATIENCE_S: Final = 3.0
NONCE: Final = "abcdef"
Seen = Any
"""An answer in tuples, or `closed`, `silent`."""

_OF_THE_MOMENT: Final = frozenset(
    ("throttle_time_ms", "token_id", "hmac", "issue_timestamp_ms", "issue_timestamp")
)
_MOMENTS: Final = frozenset(
    ("expiry_timestamp_ms", "max_timestamp_ms", "expiry_timestamp", "max_timestamp")
)
_UNORDERED: Final = frozenset(("mechanisms", "results", "tokens", "credential_infos"))


class Probe:
    """A client that says anything."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._socket.settimeout(PATIENCE_S)
        self._correlation_id = 0
        self._last = (ApiKey.API_VERSIONS, 0)
        self.answer: Any = None
        """The last one, as it came."""

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def bytes(self, data: bytes) -> Seen:
        """Send bytes; return the answer."""
        try:
            self._socket.sendall(data)
        except ConnectionError:
            return "closed"
        return self.receive()

    def raw(self, message: bytes) -> Seen:
        """Send a frame without header; return the next frame."""
        try:
            self._socket.sendall(struct.pack(">i", len(message)) + message)
        except ConnectionError:
            return "closed"
        frame = self._frame()
        return frame if isinstance(frame, str) else _of_mechanism(frame)

    def call(self, key: ApiKey, version: int, request: Any = None) -> Seen:
        """Send a request; return its answer."""
        self._correlation_id += 1
        self._last = (key, version)
        return self.bytes(request_frame(key, version, request, correlation_id=self._correlation_id))

    def shake(self, mechanism: str = "PLAIN", version: int = 1) -> Seen:
        """SaslHandshake."""
        return self.call(ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism=mechanism))

    def say(self, message: bytes, version: int = 1) -> Seen:
        """SaslAuthenticate."""
        request = SaslAuthenticateRequest(auth_bytes=message)
        return self.call(ApiKey.SASL_AUTHENTICATE, version, request)

    def receive(self) -> Seen:
        """The next answer to the last request."""
        frame = self._frame()
        if isinstance(frame, str):
            return frame
        self.answer = read_response(*self._last, frame)[1]
        return shown(self.answer)

    def scram(
        self,
        user: str,
        password: str,
        mechanism: str = "SCRAM-SHA-256",
        *,
        by_token: bool = False,
        change: Callable[[bytes], bytes] = lambda message: message,
    ) -> list[Seen]:
        """Log in by SCRAM; return the answer of each step."""
        first = build_client_first(user, NONCE, by_token=by_token)
        seen = [self.shake(mechanism), self.say(first.data)]
        if isinstance(seen[1], str) or self.answer.error_code:
            return seen
        try:
            server = parse_server_first(bytes(self.answer.auth_bytes), first)
        except MalformedMessage as error:
            return [*seen, str(error)]
        known = ScramMechanism(mechanism)
        salted = salted_password(known, password, server.salt, server.iterations)
        final, _ = build_client_final(known, first, server, salted)
        return [*seen, self.say(change(final))]

    def _frame(self) -> Any:
        received = b""
        try:
            while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
                piece = self._socket.recv(65536)
                if not piece:
                    return "closed"
                received += piece
        except TimeoutError:
            return "silent"
        except ConnectionError:
            return "closed"
        return received[4:]


def shown(value: Any, name: str = "") -> Seen:
    """Return an answer without the values of the moment."""
    if isinstance(value, Value):
        fields = {key: getattr(value, key, None) for key in value._defaults}
        issued = fields.get("issue_timestamp_ms", fields.get("issue_timestamp"))
        return tuple(
            (key, _since(inside, issued) if key in _MOMENTS else shown(inside, key))
            for key, inside in fields.items()
            if key not in _OF_THE_MOMENT
        )
    if isinstance(value, list | tuple):
        items = [shown(one) for one in value]
        return tuple(sorted(items, key=repr) if name in _UNORDERED else items)
    if name == "auth_bytes":
        return _of_mechanism(bytes(value))
    if isinstance(value, bytes | memoryview):
        return bytes(value)
    return value


def _since(moment: int, issued: int | None) -> int | str:
    if issued is None:
        return "some time" if moment > 0 else moment
    return moment - issued


def _of_mechanism(message: bytes) -> Seen:
    """Return a message of the server; SCRAM's first one without the drawn parts."""
    parts = message.split(b",")
    if len(parts) == 3 and parts[0].startswith(b"r="):
        nonce, salt, iterations = parts
        begins = nonce.startswith(b"r=" + NONCE.encode()) and len(nonce) > 20
        return begins, len(base64.b64decode(salt[2:])) > 2, iterations
    if message.startswith(b"v="):
        return b"v=", len(message)
    return message
