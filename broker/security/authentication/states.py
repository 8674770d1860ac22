"""The states of a connection's authentication, and the events that lead from one to another.

After Kafka's `SaslServerAuthenticator.SaslState`, without its states for Kerberos clients of Kafka
0.9. An event that is not in the table of a state is a bug.
"""

from enum import Enum
from typing import Final

from protocol.api_keys import ApiKey


class SaslState(Enum):
    """The states, by what may come next."""

    FIRST = "ApiVersions or SaslHandshake"
    HANDSHAKE = "SaslHandshake, as ApiVersions was answered"
    TOKENS = "messages of the mechanism, in SaslAuthenticate"
    RAW_TOKENS = "messages of the mechanism, in frames without header"
    OTHER_MECHANISM = "nothing: a re-authentication chose another mechanism"
    COMPLETE = "any request"
    FAILED = "nothing: the connection ends"


class Event(Enum):
    """The events."""

    VERSIONS = "ApiVersions was answered"
    HANDSHAKE = "a mechanism was chosen by SaslHandshake v1"
    RAW_HANDSHAKE = "a mechanism was chosen by SaslHandshake v0"
    OTHER_HANDSHAKE = "another mechanism than before was chosen"
    CHALLENGE = "the client has more to say"
    PROOF = "the client has proved who it is"
    FAILURE = "it has not, or sent something else"


_EXCHANGE: Final = {Event.PROOF: SaslState.COMPLETE, Event.FAILURE: SaslState.FAILED}
_CHOICE: Final = {
    Event.HANDSHAKE: SaslState.TOKENS,
    Event.RAW_HANDSHAKE: SaslState.RAW_TOKENS,
    Event.FAILURE: SaslState.FAILED,
}

TRANSITIONS: Final[dict[SaslState, dict[Event, SaslState]]] = {
    SaslState.FIRST: {Event.VERSIONS: SaslState.HANDSHAKE, **_CHOICE},
    SaslState.HANDSHAKE: _CHOICE,
    SaslState.TOKENS: {Event.CHALLENGE: SaslState.TOKENS, **_EXCHANGE},
    SaslState.RAW_TOKENS: {Event.CHALLENGE: SaslState.RAW_TOKENS, **_EXCHANGE},
    SaslState.OTHER_MECHANISM: {Event.FAILURE: SaslState.FAILED},
    SaslState.COMPLETE: {Event.OTHER_HANDSHAKE: SaslState.OTHER_MECHANISM, **_CHOICE},
    SaslState.FAILED: {},
}

ANSWERED: Final[dict[SaslState, frozenset[int]]] = {
    SaslState.FIRST: frozenset((ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE)),
    SaslState.HANDSHAKE: frozenset((ApiKey.SASL_HANDSHAKE,)),
    SaslState.TOKENS: frozenset(
        (ApiKey.SASL_AUTHENTICATE, ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS)
    ),
    SaslState.RAW_TOKENS: frozenset(),
    SaslState.OTHER_MECHANISM: frozenset(),
    SaslState.FAILED: frozenset(),
}
"""The APIs whose requests are answered, perhaps with a refusal, in each state but COMPLETE, in
which all are. Other requests are not even parsed."""

RAW: Final = frozenset((SaslState.RAW_TOKENS, SaslState.OTHER_MECHANISM))
"""The states in which a frame is not read as a request with a header."""
