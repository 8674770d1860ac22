"""`ssl.SSLContext`s from settings, for a listener and for a client.

The contexts do two things that Java does, and OpenSSL does not do by itself:

* A certificate in the trust store is believed whatever its kind (X509_V_FLAG_PARTIAL_CHAIN).
* The store's intermediate certificates are sent after the leaf.

TLS 1.2 and 1.3 are served, and nothing older. OpenSSL refuses a client that offers TLS 1.2 though
it knows 1.3, if the client marks that (TLS_FALLBACK_SCSV) or if somebody between took 1.3 out (the
mark in the server's random). Renegotiation and compression are off.
"""

import ssl
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import Certificate

from tls.problems import TlsProblem
from tls.secret_file import secret_file
from tls.settings import (
    NONE,
    REFUSED_PROTOCOLS,
    REQUESTED,
    REQUIRED,
    SERVED_PROTOCOLS,
    TLS_1_2,
    TLS_1_3,
    ClientSettings,
    ServerSettings,
)
from tls.stores import KeyStore, Read, load_key_store, load_trust_store
from tls.suites import Suites, chosen_suites

_VERSIONS: Final = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    NONE: ssl.CERT_NONE,
    REQUESTED: ssl.CERT_OPTIONAL,
    REQUIRED: ssl.CERT_REQUIRED,
}
TICKETS: Final = 1
"""Sessions that a client is given to resume, per connection: a Java client uses one."""


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The context of a listener's new connections."""

    context: ssl.SSLContext
    keys: KeyStore
    suites: Suites
    asks_clients: bool
    """Whether the broker requests a certificate of clients."""


def server_context(settings: ServerSettings, read: Read, now_ms: int) -> ServerContext:
    """Load the stores and make the context. Raises TlsProblem.

    It reads files and computes for milliseconds: not for the event loop.
    """
    keys = load_key_store(settings.keys, read)
    _check_validity(keys, now_ms)
    suites = chosen_suites(settings.suites, served(settings.protocols))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context, suites)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = TICKETS
    _use(context, keys)
    asks = settings.client_auth != NONE
    if asks:
        trusted = load_trust_store(settings.trust, read)
        if not trusted:
            raise TlsProblem(
                f"ssl.client.auth={settings.client_auth} needs the certificates that clients are"
                " believed by: set ssl.truststore.location, or ssl.truststore.certificates"
            )
        _trust(context, trusted)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    return ServerContext(context, keys, suites, asks)


def client_context(settings: ClientSettings, read: Read) -> ssl.SSLContext:
    """Make a client's context; without a trust store it believes the machine's.

    Raises TlsProblem.
    """
    suites = chosen_suites(settings.suites, served(settings.protocols))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _restrict(context, suites)
    context.check_hostname = settings.check_names
    trusted = load_trust_store(settings.trust, read)
    if trusted:
        _trust(context, trusted)
    else:
        context.load_default_certs()
    if settings.keys.is_set:
        _use(context, load_key_store(settings.keys, read))
    return context


def served(protocols: tuple[str, ...]) -> tuple[str, ...]:
    """The protocols of `ssl.enabled.protocols` that are served. Raises TlsProblem if none is."""
    unknown = [p for p in protocols if p not in SERVED_PROTOCOLS and p not in REFUSED_PROTOCOLS]
    left = tuple(protocol for protocol in SERVED_PROTOCOLS if protocol in protocols)
    if unknown or not left:
        raise TlsProblem(
            f"ssl.enabled.protocols={','.join(protocols)}: served are"
            f" {' and '.join(SERVED_PROTOCOLS)}, and nothing older"
        )
    return left


def _restrict(context: ssl.SSLContext, suites: Suites) -> None:
    versions = [_VERSIONS[protocol] for protocol in suites.protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    # The end of a connection without close_notify then raises an error, unlike an orderly end.
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    context.options |= ssl.OP_NO_COMPRESSION
    if suites.ciphers is not None:
        try:
            context.set_ciphers(suites.ciphers)
        except ssl.SSLError:
            raise TlsProblem(
                f"ssl.cipher.suites: {ssl.OPENSSL_VERSION} has none of {suites.ciphers}"
            ) from None


def _use(context: ssl.SSLContext, keys: KeyStore) -> None:
    """Have the context show these certificates."""
    pem = keys.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem += b"".join(certificate.public_bytes(Encoding.PEM) for certificate in keys.chain)
    try:
        with secret_file(pem) as path:
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        raise TlsProblem(
            f"the certificate or its key cannot be used: {reason}. RSA keys need 2048 bits,"
            " signatures SHA-256"
        ) from None


def _trust(context: ssl.SSLContext, trusted: tuple[Certificate, ...]) -> None:
    der = b"".join(one.public_bytes(Encoding.DER) for one in trusted)
    context.load_verify_locations(cadata=der)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def _check_validity(keys: KeyStore, now_ms: int) -> None:
    leaf = keys.leaf
    if leaf.not_valid_after_utc.timestamp() * 1000 < now_ms:
        raise TlsProblem(
            f"the certificate of {leaf.subject.rfc4514_string()} expired on"
            f" {leaf.not_valid_after_utc:%Y-%m-%d %H:%M} UTC: no client would accept it. Renew it"
        )
    if leaf.not_valid_before_utc.timestamp() * 1000 > now_ms:
        raise TlsProblem(
            f"the certificate of {leaf.subject.rfc4514_string()} is valid from"
            f" {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on. Is this machine's clock right?"
        )
