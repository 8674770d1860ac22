"""A client that authenticates, on raw frames, in the loop of a whole broker."""

import struct
from collections.abc import Iterator
from typing import Any, Final

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
from tests.support.fake_handlers import AsyncClient
from tests.support.memory_client import HOST
from tests.support.memory_transport import MemoryTransport
from tests.support.sasl import scram_messages
from tests.support.whole_broker import WholeBroker
from tests.support.wire_client import request_frame

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


class SaslClient(AsyncClient):
    """One connection to the SASL listener."""

    receive = AsyncClient.receive_frame
    is_closed = AsyncClient.closed_by_peer

    def __init__(self, broker: WholeBroker, *, host: str = "10.0.0.1", port: int = PORT) -> None:
        super().__init__(MemoryTransport(broker.network).connect(HOST, port, from_host=host))

    async def send_raw(self, message: bytes) -> None:
        """Send a frame without header."""
        await self.send(struct.pack(">i", len(message)) + message)

    def frame(self, key: int, version: int, request: Any = None) -> bytes:
        """Return a request as it is sent."""
        return request_frame(key, version, request)

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
