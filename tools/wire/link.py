"""One connection to one broker; each request goes in the newest version that both sides know."""

import socket
import struct
from typing import Final, TypeVar

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, ProtocolError
from protocol.framing import response_header_is_flexible
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.registry import request_codec, spec
from protocol.schema import Message
from tools.errors import CommandError

Address = tuple[str, int]
"""Host and port."""

CLIENT_ID: Final = b"pykafkalog"
TIMEOUT_S: Final = 15.0
MAX_ANSWER: Final = 100_000_000
"""Bytes of the longest answer, as librdkafka's `receive.message.max.bytes`."""
ResponseT = TypeVar("ResponseT", bound=Message)

_CORRELATION: Final = struct.Struct(">i")
_OLDEST: Final = 0
"""Every broker serves this version of ApiVersions, and answers an unknown newer one in it."""


class Link:
    """A connection that asks the broker for its API versions first. Methods raise CommandError."""

    def __init__(self, address: Address, timeout_s: float = TIMEOUT_S) -> None:
        self.address: Final = address
        self._correlation = 0
        try:
            self._socket: Final = socket.create_connection(address, timeout_s)
        except OSError as error:
            raise self._failure(error.strerror or str(error)) from None
        self._file: Final = self._socket.makefile("rb")
        try:
            self.api_versions: Final = self._ask_versions()
        except CommandError:
            self.close()
            raise
        self.versions: Final = {
            api.api_key: (api.min_version, api.max_version) for api in self.api_versions.api_keys
        }
        """(oldest, newest) version of every API that the broker serves."""

    def call(self, request: Message, response: type[ResponseT], *, least: int = 0) -> ResponseT:
        """Send a request; return the response. `least`: the lowest version that has its fields."""
        assert response.key is not None
        key = ApiKey(response.key)
        declared = spec(key)
        oldest, newest = self.versions.get(key, (0, -1))
        version = min(newest, declared.max_version)
        if version < max(oldest, declared.min_version, least):
            name = declared.message + (f" version {least}" if newest >= 0 else "")
            raise CommandError(f"the broker at {self} does not serve {name}")
        return self._exchange(response, version, request)

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def _ask_versions(self) -> ApiVersionsResponse:
        request = ApiVersionsRequest(client_software_name="pykafkalog", client_software_version="0")
        newest = spec(ApiKey.API_VERSIONS).max_version
        answer = self._exchange(ApiVersionsResponse, newest, request, or_oldest=True)
        if answer.error_code != ErrorCode.UNSUPPORTED_VERSION:
            return answer
        ranges = {api.api_key: api.max_version for api in answer.api_keys}
        served = min(newest, ranges.get(ApiKey.API_VERSIONS, _OLDEST))
        return self._exchange(ApiVersionsResponse, served, request)

    def _exchange(
        self, response: type[ResponseT], version: int, request: Message, *, or_oldest: bool = False
    ) -> ResponseT:
        key = response.key
        assert key is not None
        self._correlation += 1
        header = struct.pack(">hhih", key, version, self._correlation, len(CLIENT_ID)) + CLIENT_ID
        if spec(key).flexible(version):
            header += b"\0"
        try:
            body: bytes = request_codec(key, version).build(request)
        except ProtocolError as error:
            raise CommandError(f"{spec(key).message}: {error}") from None
        try:
            self._socket.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
            frame = self._frame()
        except TimeoutError:
            raise self._failure(f"no answer within {self._socket.gettimeout():.0f} s") from None
        except OSError as error:
            raise self._failure(error.strerror or str(error)) from None
        start = 5 if response_header_is_flexible(key, version) else 4
        if or_oldest and frame[4:6] == struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION):
            version = _OLDEST
        try:
            return response.codec(version).parse(frame[start:])
        except ProtocolError as error:
            raise self._failure(f"an answer that is none ({error})") from None

    def _frame(self) -> bytes:
        """Read the answer to the request that was sent last."""
        (size,) = struct.unpack(">i", self._exactly(4))
        if not _CORRELATION.size <= size <= MAX_ANSWER:
            raise self._failure(f"an answer of {size} bytes. Is this a Kafka broker's port?")
        frame = self._exactly(size)
        if _CORRELATION.unpack_from(frame) != (self._correlation,):
            raise self._failure("an answer to another request")
        return frame

    def _exactly(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        if len(data) < size:
            raise self._failure("it closed the connection. Is it still running?")
        return data

    def _failure(self, reason: str) -> CommandError:
        return CommandError(f"the broker at {self}: {reason}")

    def __str__(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"
