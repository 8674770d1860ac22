"""Why a handshake failed, for the log: OpenSSL's reasons as kinds that an operator can act on."""

import enum
from typing import Final

from broker.world.tls_stream import TlsFailure


class HandshakeRefusal(enum.Enum):
    """Kinds of failed handshakes; each has a `LoggingLimit` of its own."""

    NO_TLS = "it does not speak TLS"
    VERSION = "it offers no version of TLS that is enabled (ssl.enabled.protocols)"
    DOWNGRADE = "it, or somebody between, offers less than both sides know"
    SUITE = "it has no cipher suite in common (ssl.cipher.suites)"
    NO_CERTIFICATE = "it shows no certificate (ssl.client.auth=required)"
    CERTIFICATE = "its certificate is not accepted"
    DISTRUST = "it does not accept the broker's certificate"
    NAME = "its certificate's name is nobody here (ssl.principal.mapping.rules)"
    CLOSED = "it closed the connection during the handshake"
    SLOW = "it took too long"
    CROWD = "it kept others waiting"
    TOO_MUCH = "it sent too much"
    OTHER = "it sent what is no handshake"


_BY_REASON: Final = {
    "UNSUPPORTED_PROTOCOL": HandshakeRefusal.VERSION,
    "VERSION_TOO_LOW": HandshakeRefusal.VERSION,
    "TLSV1_ALERT_PROTOCOL_VERSION": HandshakeRefusal.VERSION,
    "NO_PROTOCOLS_AVAILABLE": HandshakeRefusal.VERSION,
    "INAPPROPRIATE_FALLBACK": HandshakeRefusal.DOWNGRADE,
    "TLSV1_ALERT_INAPPROPRIATE_FALLBACK": HandshakeRefusal.DOWNGRADE,
    "NO_SHARED_CIPHER": HandshakeRefusal.SUITE,
    "NO_SHARED_SIGNATURE_ALGORITHMS": HandshakeRefusal.SUITE,
    "NO_SHARED_GROUPS": HandshakeRefusal.SUITE,
    "NO_SUITABLE_KEY_SHARE": HandshakeRefusal.SUITE,
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": HandshakeRefusal.NO_CERTIFICATE,
    "CERTIFICATE_VERIFY_FAILED": HandshakeRefusal.CERTIFICATE,
    "WRONG_VERSION_NUMBER": HandshakeRefusal.OTHER,
    "HTTP_REQUEST": HandshakeRefusal.NO_TLS,
}
_OF_THE_CLIENT: Final = ("UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_EXPIRED", "UNKNOWN")
"""The names, behind `ALERT_`, of the alerts of a client that does not accept our certificate."""


def refusal_of(failure: TlsFailure) -> tuple[HandshakeRefusal, str]:
    """Return the kind, and details to add, which may be empty."""
    reason = failure.reason
    found = _BY_REASON.get(reason)
    if failure.certificate:
        return HandshakeRefusal.CERTIFICATE, failure.certificate
    if found is not None:
        return found, ""
    alert = reason.partition("_ALERT_")[2]
    if any(name in alert for name in _OF_THE_CLIENT):
        return HandshakeRefusal.DISTRUST, _readable(alert)
    if alert == "HANDSHAKE_FAILURE":
        return HandshakeRefusal.SUITE, ""
    return HandshakeRefusal.OTHER, _readable(reason)


def _readable(reason: str) -> str:
    return reason.lower().replace("_", " ")
