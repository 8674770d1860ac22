"""A client that authenticates, on raw frames, in the loop of a whole broker."""

import struct
from collections.abc import Iterator
from typing import Any, Final

from broker.world.streams import receive_some, send_all
from broker.world.transport import Stream
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from protocol.messages.metadata import MetadataRequest
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.sasl.plain import build_plain
from protocol.sasl.scram import ScramMechanism, salted_password
from tests.support.memory_client import HOST, receive_frame
from tests.support.memory_transport import MemoryTransport
from tests.support.sasl import scram_messages
from tests.support.whole_broker import WholeBroker
from tests.support.wire_client import read_response, request_frame

PORT: Final = 9093
JAAS: Final = "org.apache.kafka.common.security.{}LoginModule required"
USERS: Final = 'user_alice="alice-secret" user_bob="bob-secret";'
SETTINGS: Final = {
    "listeners": f"PLAINTEXT://{HOST}:9092,SASL://{HOST}:{PORT}",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": f"{JAAS.format('plain.Plain')} {USERS}",
    "delegation.token.secret.key": "secret",
}
"""For `whole_broker(**SETTINGS)`: every mechanism but tokens, beside a PLAINTEXT listener."""


class SaslClient:
    """One connection to the SASL listener."""

    def __init__(self, broker: WholeBroker, *, host: str = "10.0.0.1", port: int = PORT) -> None:
        self._transport = MemoryTransport(broker.network)
        self.stream: Stream = self._transport.connect(HOST, port, from_host=host)
        self._correlation_id = 0

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        await send_all(self.stream, data)

    async def send_raw(self, message: bytes) -> None:
        """Send a frame without header."""
        await self.send(struct.pack(">i", len(message)) + message)

    def frame(self, key: int, version: int, request: Any = None) -> bytes:
        """A request as it is sent."""
        self._correlation_id += 1
        return request_frame(key, version, request, correlation_id=self._correlation_id)

    async def call(self, key: int, version: int, request: Any = None) -> Any:
        """Send a request; return its response. Raises ConnectionError if there is none."""
        await self.send(self.frame(key, version, request))
        return await self.response(key, version)

    async def response(self, key: int, version: int) -> Any:
        """Return the response to the request that was sent last."""
        echoed, response = read_response(key, version, await self.receive())
        assert echoed == self._correlation_id
        return response

    async def receive(self) -> bytes:
        """Return the next frame."""
        return await receive_frame(self.stream)

    async def is_closed(self) -> bool:
        """Wait for what comes next: whether the broker closes the connection."""
        try:
            return await receive_some(self.stream, memoryview(bytearray(1))) == 0
        except ConnectionError:
            return True

    def close(self) -> None:
        """Hang up."""
        self.stream.close()

    # ---- SASL

    async def shake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        """SaslHandshake."""
        request = SaslHandshakeRequest(mechanism=mechanism)
        return await self.call(ApiKey.SASL_HANDSHAKE, version, request)

    async def say(self, message: bytes, version: int = 2) -> Any:
        """SaslAuthenticate."""
        request = SaslAuthenticateRequest(auth_bytes=message)
        return await self.call(ApiKey.SASL_AUTHENTICATE, version, request)

    async def log_in(
        self, user: str = "alice", password: str = "alice-secret", version: int = 2
    ) -> Any:
        """PLAIN to its end; return the last answer."""
        shaken = await self.shake()
        assert shaken.error_code == ErrorCode.NONE
        return await self.say(build_plain(user, password), version)

    async def scram(
        self,
        user: str,
        password: str,
        mechanism: ScramMechanism = ScramMechanism.SHA_256,
        *,
        by_token: bool = False,
    ) -> Any:
        """SCRAM to its end; return the last answer."""
        shaken = await self.shake(mechanism.value)
        assert shaken.error_code == ErrorCode.NONE
        client = scram_messages(mechanism, user, password, by_token=by_token)
        answer = await self.say(next(client))
        if answer.error_code == ErrorCode.NONE:
            answer = await self.say(_sent(client, bytes(answer.auth_bytes)))
            if answer.error_code == ErrorCode.NONE:
                _ended(client, bytes(answer.auth_bytes))
        return answer

    async def is_served(self) -> bool:
        """Whether Metadata is answered."""
        request = MetadataRequest(topics=[])
        try:
            answer = await self.call(ApiKey.METADATA, 12, request)
        except ConnectionError:
            return False
        return bool(answer.brokers)


def _sent(client: Iterator[bytes], answer: bytes) -> bytes:
    message: bytes = client.send(answer)  # type: ignore[attr-defined]
    return message


def _ended(client: Iterator[bytes], answer: bytes) -> None:
    try:
        _sent(client, answer)
    except StopIteration:
        return
    raise AssertionError("the client has more to say")


def upsertion(
    user: str,
    password: str,
    mechanism: ScramMechanism = ScramMechanism.SHA_256,
    iterations: int = 4096,
) -> AlterUserScramCredentialsRequest:
    """A request that sets a user's password."""
    salt = b"salt-of-" + user.encode()
    return AlterUserScramCredentialsRequest(
        deletions=[],
        upsertions=[
            ScramCredentialUpsertion(
                name=user,
                mechanism=mechanism.wire_id,
                iterations=iterations,
                salt=salt,
                salted_password=salted_password(mechanism, password, salt, iterations),
            )
        ],
    )
