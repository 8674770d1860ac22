"""Logs in over a connection: SaslHandshake, then SaslAuthenticate to the end of the exchange."""

import time
from collections.abc import Mapping
from random import SystemRandom
from typing import Any, Final, Protocol, TypeVar

from protocol.errors import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.sasl import MalformedMessage
from protocol.sasl.conversations import Conversation, LoginError, bearer, plain, scram
from protocol.sasl.oauthbearer import parse_refusal
from protocol.sasl.scram import ScramMechanism
from protocol.schema import Message
from tools.client_properties import mechanism_of, protocol_of
from tools.errors import CommandError, LoginRefused
from tools.login.tokens import token_of

ResponseT = TypeVar("ResponseT", bound=Message)

OWN: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""Mechanisms that commands have for the requests that they send themselves."""
_OF_A_SESSION: Final = 0.85
"""After this part of a session's time it is renewed, as Java's clients do."""


class Ask(Protocol):
    """Sends a request and returns the response, in version `least` at least."""

    def __call__(self, request: Message, response: type[ResponseT], *, least: int = 0) -> ResponseT:
        """Raises CommandError."""
        ...


class Login:
    """The identity of a command: its mechanism and credentials."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Raises CommandError if the settings do not suffice."""
        self._settings: Final = settings
        self._mechanism: Final = mechanism_of(settings)
        if self._mechanism not in OWN:
            named = "sasl.mechanism" in settings or "sasl.mechanisms" in settings
            raise CommandError(
                f"this cannot be asked with sasl.mechanism={self._mechanism}"
                f"{'' if named else ', which holds where none is set'}: only with {', '.join(OWN)}"
            )
        if self._mechanism != "OAUTHBEARER":
            self._credential("sasl.username")
            self._credential("sasl.password")

    def perform(self, ask: Ask) -> float | None:
        """Log in; return after how many seconds to do so again, None for never.

        Raises LoginError if the broker refuses, and CommandError.
        """
        shake = SaslHandshakeRequest(mechanism=self._mechanism)
        shaken = ask(shake, SaslHandshakeResponse, least=1)
        if shaken.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise LoginError(
                f"it offers {', '.join(shaken.mechanisms)}, and not {self._mechanism}"
                " (sasl.mechanism)"
            )
        if shaken.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise LoginError("it asks nobody who they are here: security.protocol without SASL_")
        if shaken.error_code:
            raise LoginError(ErrorCode(shaken.error_code).text)
        lifetime_ms = 0
        conversation = self._conversation()
        message: bytes | None = next(conversation)
        while message is not None:
            answer = ask(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse)
            if answer.error_code:
                raise LoginError(_told(answer))
            lifetime_ms = answer.session_lifetime_ms
            message = _next(conversation, bytes(answer.auth_bytes))
        return lifetime_ms / 1000 * _OF_A_SESSION if lifetime_ms else None

    def _conversation(self) -> Conversation:
        if self._mechanism == "OAUTHBEARER":
            try:
                return bearer(*token_of(self._settings, time.time()))
            except CommandError as error:
                raise LoginRefused(str(error)) from None
        user, password = self._credential("sasl.username"), self._credential("sasl.password")
        if self._mechanism == "PLAIN":
            return plain(user, password)
        return scram(ScramMechanism(self._mechanism), user, password, SystemRandom().getrandbits)

    def _credential(self, name: str) -> str:
        value = str(self._settings.get(name, ""))
        if not value:
            raise CommandError(
                f"{self._mechanism} needs {name}, or sasl.jaas.config with both credentials"
            )
        return value


def login_of(settings: Mapping[str, Any]) -> Login | None:
    """The login that the settings want; None without SASL. Raises CommandError."""
    return Login(settings) if protocol_of(settings).startswith("sasl_") else None


def _told(answer: SaslAuthenticateResponse) -> str:
    """The reason of the broker's refusal; the refusal of a token comes as OAUTHBEARER's JSON."""
    text = answer.error_message or ErrorCode(answer.error_code).text
    status = parse_refusal(text.encode())
    return f"it does not accept the token: {status}" if status else text


def _next(conversation: Conversation, answer: bytes) -> bytes | None:
    """The client's next message; None at the end of the exchange."""
    try:
        return conversation.send(answer)
    except StopIteration:
        return None
    except MalformedMessage as error:
        raise LoginError(f"an answer that is none ({error})") from None
