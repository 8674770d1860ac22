"""The steps before the first request: dial, TLS, ApiVersions, and the login if there is one.

ApiVersions comes before the login, as in Kafka's clients, because the login depends on the
versions. Kafka 3.9 and this broker both serve ApiVersions v3, and brokers older than 2.4 are no
members.
"""

import contextlib
import struct
from collections.abc import Generator
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker.peers.connection import VersionRanges, common_versions
from broker.peers.frames import LARGEST
from broker.peers.peer import PeerError
from broker.peers.security import PeerSecurity
from broker.world.streams import receive_some, send_all
from broker.world.transport import SYSTEM_DEFAULT, Stream, Transport
from broker.world.workers import Workers
from config.listener import Listener
from config.sasl_settings import PLAIN, LoginSettings
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.framing import (
    SIZE_BYTES,
    build_request_header,
    parse_response_header,
    response_header_is_flexible,
)
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.registry import request_codec
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.schema import Message

if TYPE_CHECKING:
    from ssl import SSLContext

ResponseT = TypeVar("ResponseT", bound=Message)

_VERSIONS_VERSION: Final = 3
_OF_A_SESSION: Final = 0.85
"""After this part of its time a session is renewed, as in Java's clients."""
_SIZE: Final = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPeer:
    """A connection on which requests may be sent."""

    stream: Stream
    versions: VersionRanges
    session_s: float | None
    """How long it may be used; None if for ever."""


class Opener:
    """Opens connections to brokers."""

    def __init__(
        self, transport: Transport, workers: Workers, random: Random, security: PeerSecurity
    ) -> None:
        self._transport = transport
        self._workers = workers
        self._random = random
        self.security = security
        """It may be replaced, for the next connections."""

    async def open(self, endpoint: Listener, client_id: bytes) -> OpenedPeer:
        """Connect and log in, without a time limit: the caller cancels it after its own.

        Raises PeerError (without the peer's name), OSError, ProtocolError, and ValueError for wrong
        messages of TLS or SASL.
        """
        stream: Stream = await self._transport.dial(
            endpoint.host,
            endpoint.port,
            send_buffer=SYSTEM_DEFAULT,
            receive_buffer=SYSTEM_DEFAULT,
        )
        try:
            if endpoint.is_encrypted:
                stream = await self._encrypted(stream, endpoint.host)
            talk = _Talk(stream, client_id)
            request = ApiVersionsRequest(
                client_software_name="pykafkalog", client_software_version="1"
            )
            answer = await talk.ask(ApiVersionsResponse, _VERSIONS_VERSION, request)
            if answer.error_code:
                raise PeerError(f"ApiVersions: {ErrorCode(answer.error_code).name}")
            versions = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
            session_s = None
            if endpoint.protocol.startswith("SASL_"):
                if self.security.login is None:
                    raise PeerError(f"its listener {endpoint.name} asks who this broker is")
                session_s = await self._log_in(talk, versions, self.security.login)
        except BaseException:  # cancelled, too
            stream.close()
            raise
        return OpenedPeer(stream=stream, versions=versions, session_s=session_s)

    # ---- TLS

    async def _encrypted(self, below: Stream, host: str) -> Stream:
        from broker.world.tls_stream import TlsStream, scratch_memory  # with the first of its kind

        context: SSLContext = await self._workers.in_thread(self.security.context)
        stream = TlsStream(below, context, scratch_memory(), server_name=host)
        while True:
            done = await self._workers.in_thread(stream.advance)
            while not stream.flush():
                await below.wait_writable()
            if done is True:
                return stream
            if done is not False:
                raise PeerError(f"TLS: {done.certificate or done.reason}")
            while True:
                with contextlib.suppress(BlockingIOError):
                    if not stream.feed():
                        raise PeerError("it closed the connection during the TLS handshake")
                    break
                await below.wait_readable()

    # ---- SASL

    async def _log_in(
        self, talk: "_Talk", versions: VersionRanges, login: LoginSettings
    ) -> float | None:
        """Log in; return the seconds for which the session may be used, None if for ever."""
        shake = SaslHandshakeRequest(mechanism=login.mechanism)
        shaken = await talk.ask(SaslHandshakeResponse, 1, shake)
        if shaken.error_code:
            raise PeerError(
                f"SASL: it offers {', '.join(shaken.mechanisms)}, and not {login.mechanism}"
            )
        version = common_versions(versions)[ApiKey.SASL_AUTHENTICATE][1]
        conversation = self._conversation(login)
        message: bytes | None = next(conversation)
        lifetime_ms = 0
        while message is not None:
            request = SaslAuthenticateRequest(auth_bytes=message)
            answer = await talk.ask(SaslAuthenticateResponse, version, request)
            if answer.error_code:
                code = ErrorCode(answer.error_code)
                raise PeerError(f"SASL: {answer.error_message or code.text}")
            lifetime_ms = answer.session_lifetime_ms
            message = await self._workers.in_thread(_next, conversation, bytes(answer.auth_bytes))
        return lifetime_ms / 1000 * _OF_A_SESSION if lifetime_ms else None

    def _conversation(self, login: LoginSettings) -> Generator[bytes, bytes, None]:
        from protocol.sasl.conversations import plain, scram
        from protocol.sasl.scram import ScramMechanism

        user, password = login.user, login.password.value
        if login.mechanism == PLAIN:
            return plain(user, password)
        return scram(ScramMechanism(login.mechanism), user, password, self._random.getrandbits)


def _next(conversation: Generator[bytes, bytes, None], answer: bytes) -> bytes | None:
    """The next message; None after the last. Call it in a thread, because it hashes for
    milliseconds.

    Raises PeerError if the answer is malformed, or if its sender does not know the password.
    """
    from protocol.sasl import MalformedMessage
    from protocol.sasl.conversations import LoginError

    try:
        return conversation.send(answer)
    except StopIteration:
        return None
    except (MalformedMessage, LoginError) as error:
        raise PeerError(f"SASL: {error}") from None


class _Talk:
    """Requests one after the other, before the connection has tasks of its own."""

    def __init__(self, stream: Stream, client_id: bytes) -> None:
        self._stream = stream
        self._client_id = client_id
        self._correlation_id = 0

    async def ask(self, response: type[ResponseT], version: int, request: Message) -> ResponseT:
        """Send a request and return the response. Raises OSError, ProtocolError, PeerError."""
        key = response.key
        assert key is not None
        header = build_request_header(key, version, self._correlation_id, self._client_id)
        body = request_codec(key, version).build(request)
        await send_all(self._stream, _SIZE.pack(len(header) + len(body)) + header + body)
        frame = await self._frame()
        correlation_id, offset = parse_response_header(
            frame, 0, len(frame), flexible=response_header_is_flexible(key, version)
        )
        if correlation_id != self._correlation_id:
            raise PeerError("an answer to another request")
        self._correlation_id += 1
        if key == ApiKey.API_VERSIONS and frame[offset : offset + 2] == _UNSUPPORTED:
            raise PeerError(f"it does not serve ApiVersions v{version}: older than Kafka 2.4")
        return response.codec(version).parse(frame[offset:])

    async def _frame(self) -> bytes:
        (size,) = _SIZE.unpack(await self._exactly(SIZE_BYTES))
        if not SIZE_BYTES <= size <= LARGEST:
            raise PeerError(f"an answer of {size} bytes: is this a Kafka broker's port?")
        return await self._exactly(size)

    async def _exactly(self, size: int) -> bytes:
        data: Any = bytearray(size)
        view, have = memoryview(data), 0
        while have < size:
            some = await receive_some(self._stream, view[have:])
            if not some:
                raise PeerError("it closed the connection")
            have += some
        return bytes(data)


_UNSUPPORTED: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
