"""Raw frames, for tests that must send exact bytes at an exact moment."""

import socket
import struct
from typing import Any

from protocol.framing import response_header_is_flexible
from protocol.messages.registry import request_codec, response_codec, spec

CLIENT_ID = "wire-client"


def request_frame(
    key: int,
    version: int,
    request: Any = None,
    *,
    correlation_id: int = 1,
    client_id: str | None = CLIENT_ID,
) -> bytes:
    """Return size, header and body of a request; without `request`, the API's default values."""
    declared = spec(key)
    pieces: list[bytes] = [struct.pack(">hhi", key, version, correlation_id)]
    if client_id is None:
        pieces.append(struct.pack(">h", -1))
    else:
        pieces.append(struct.pack(">h", len(client_id)) + client_id.encode())
    if declared.flexible(version):
        pieces.append(b"\0")
    if request is None:
        from protocol.messages.registry import request_api

        request = request_api(key)()
    pieces.append(request_codec(key, version).build(request))
    body = b"".join(pieces)
    return struct.pack(">i", len(body)) + body


def read_response(key: int, version: int, frame: bytes) -> tuple[int, Any]:
    """Return (correlation id, response) of a frame without its size."""
    (correlation_id,) = struct.unpack_from(">i", frame)
    start = 5 if response_header_is_flexible(key, version) else 4
    return correlation_id, response_codec(key, version).parse(frame[start:])


class WireClient:
    """A blocking client on a plain socket."""

    def __init__(
        self,
        port: int,
        host: str = "127.0.0.1",
        timeout_s: float = 10,
        *,
        client_id: str = CLIENT_ID,
    ) -> None:
        self.socket = socket.create_connection((host, port), timeout_s)
        self.client_id = client_id

    def send(self, data: bytes) -> None:
        """Send these bytes."""
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        """Return the next frame without its size. Raises ConnectionError if there is none."""
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def call(self, key: int, version: int, request: Any = None, correlation_id: int = 1) -> Any:
        """Send a request and return its response."""
        self.send(
            request_frame(
                key, version, request, correlation_id=correlation_id, client_id=self.client_id
            )
        )
        echoed, response = read_response(key, version, self.receive_frame())
        assert echoed == correlation_id
        return response

    def closed_by_peer(self, timeout_s: float = 10) -> bool:
        """Wait: return True if the broker closed the connection, False if it sent something."""
        self.socket.settimeout(timeout_s)
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def _receive_exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            piece = self.socket.recv(size - len(received))
            if not piece:
                raise ConnectionError(f"closed after {len(received)} of {size} bytes")
            received += piece
        return bytes(received)

    def __enter__(self) -> "WireClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
