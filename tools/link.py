"""One connection to one broker; each request goes in the newest version that both sides know.

It is plain or TLS (`tools.dialing`), and SASL says who this is (`tools.login`).
"""

import struct
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, ProtocolError
from protocol.framing import response_header_is_flexible
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.registry import request_codec, spec
from protocol.sasl.conversations import LoginError
from protocol.schema import Message
from tools.dialing import Address, Dial, dial_plainly, dialer, reason_of
from tools.errors import CommandError, LoginRefused
from tools.login.session import Login, login_of

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

    def __init__(
        self,
        address: Address,
        dial: Dial = dial_plainly,
        login: Login | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """`dial` connects (`tools.dialing.dialer`); then `login` says who this is."""
        self.address: Final = address
        self._login: Final = login
        self._login_again: float | None = None
        """When, in monotonic seconds; None: never."""
        self._correlation = 0
        try:
            self._socket: Final = dial(address, timeout_s)
        except OSError as error:
            raise self._failure(reason_of(error)) from None
        self._file: Final = self._socket.makefile("rb")
        try:
            self.api_versions: Final = self._ask_versions()
            self.versions: Final = {
                api.api_key: (api.min_version, api.max_version)
                for api in self.api_versions.api_keys
            }
            """(oldest, newest) version of every API that the broker serves."""
            if login is not None:
                self._log_in(login)
        except CommandError:
            self.close()
            raise

    def call(self, request: Message, response: type[ResponseT], *, least: int = 0) -> ResponseT:
        """Send a request; return the response. `least`: the lowest version that has its fields."""
        if self._login_again is not None and time.monotonic() >= self._login_again:
            assert self._login is not None
            self._log_in(self._login)
        return self._ask(request, response, least=least)

    def _log_in(self, login: Login) -> None:
        try:
            again_s = login.perform(self._ask)
        except LoginError as error:
            raise LoginRefused(f"the broker at {self}: {error}") from None
        self._login_again = None if again_s is None else time.monotonic() + again_s

    def _ask(self, request: Message, response: type[ResponseT], *, least: int = 0) -> ResponseT:
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
            raise self._failure(reason_of(error)) from None
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
            raise self._failure("it closed the connection")
        return data

    def _failure(self, reason: str) -> CommandError:
        return CommandError(f"the broker at {self}: {reason}")

    def __str__(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"


def linker(settings: Mapping[str, Any]) -> Callable[[Address], Link]:
    """Return how to link to a broker, as the client's settings say. Raises CommandError."""
    dial, login = dialer(settings), login_of(settings)
    return lambda address: Link(address, dial, login)
