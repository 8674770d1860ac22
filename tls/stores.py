"""Key stores and trust stores: PEM, PKCS12 and JKS, in a file or inline.

The rules of which keys go together, and their messages, are those of Kafka's
`DefaultSslEngineFactory.createKeystore` and `createTruststore`. The content of a store decides how
it is read, as in Java: a file of type JKS that is PKCS12, as keytool has made them since Java 9, is
read as PKCS12, and the other way round.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509 import Certificate

from tls.pem import certificates_of, private_key_of
from tls.problems import TlsProblem
from tls.settings import JKS, PEM, PKCS12, STORE_TYPES, KeyStoreSettings, TrustStoreSettings

Read = Callable[[str], bytes]
"""Reads a file whole; raises OSError."""

_PEM_MARK: Final = b"-----BEGIN "
_JKS_MARKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_DER_SEQUENCE: Final = b"\x30"


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A private key, and the certificates that say whose it is, the leaf first."""

    key: PrivateKeyTypes
    chain: tuple[Certificate, ...]

    @property
    def leaf(self) -> Certificate:
        """The certificate of the key."""
        return self.chain[0]


def load_key_store(settings: KeyStoreSettings, read: Read) -> KeyStore:
    """Return the key and its certificates. Raises TlsProblem."""
    _check_type("ssl.keystore.type", settings.type)
    if settings.key is not None or settings.chain is not None:
        return _inline_key_store(settings)
    if settings.location is None:
        if settings.password is not None:
            raise TlsProblem("SSL key store is not specified, but key store password is specified.")
        raise TlsProblem(
            "there is no certificate: set ssl.keystore.location, or ssl.keystore.key and"
            " ssl.keystore.certificate.chain. `pykafkalog certificates DIRECTORY` makes some to try"
        )
    content = _read(read, "ssl.keystore.location", settings.location)
    kind = _kind(content, "ssl.keystore", settings.location, settings.type)
    if kind == PEM:
        if settings.password is not None:
            raise TlsProblem(
                "SSL key store password cannot be specified with PEM format, only key password"
                " may be specified."
            )
        text = _text(content, "ssl.keystore.location", settings.location)
        where = f"ssl.keystore.location={settings.location}"
        return _matched(
            private_key_of(text, settings.key_password, where), certificates_of(text, where), where
        )
    if settings.password is None:
        raise TlsProblem("SSL key store is specified, but key store password is not specified.")
    where = f"ssl.keystore.location={settings.location}"
    if kind == PKCS12:
        from tls.pkcs12_store import key_and_chain
    else:
        from tls.jks_store import key_and_chain
    key, chain = key_and_chain(content, settings.password, settings.key_password, where)
    return _matched(key, chain, where)


def load_trust_store(settings: TrustStoreSettings, read: Read) -> tuple[Certificate, ...]:
    """Return the certificates that are believed; none if none are set. Raises TlsProblem."""
    _check_type("ssl.truststore.type", settings.type)
    if settings.certificates is not None:
        _check_inline_trust(settings)
        return certificates_of(settings.certificates, "ssl.truststore.certificates")
    if settings.location is None:
        if settings.password is not None:
            raise TlsProblem(
                "SSL trust store is not specified, but trust store password is specified."
            )
        return ()
    where = f"ssl.truststore.location={settings.location}"
    content = _read(read, "ssl.truststore.location", settings.location)
    kind = _kind(content, "ssl.truststore", settings.location, settings.type)
    if kind == PEM:
        if settings.password is not None:
            raise TlsProblem("SSL trust store password cannot be specified for PEM format.")
        text = _text(content, "ssl.truststore.location", settings.location)
        return certificates_of(text, where)
    if kind == PKCS12:
        from tls.pkcs12_store import trusted
    else:
        from tls.jks_store import trusted
    found = trusted(content, settings.password, where)
    if not found:
        raise TlsProblem(f"{where} holds no trusted certificate: name the store with the CA's")
    return found


def _inline_key_store(settings: KeyStoreSettings) -> KeyStore:
    if settings.key is None:
        raise TlsProblem("SSL certificate chain is specified, but private key is not specified")
    if settings.type.upper() != PEM:
        raise TlsProblem(
            "SSL private key can be specified only for PEM, but key store type is"
            f" {settings.type}. Set ssl.keystore.type=PEM"
        )
    if settings.chain is None:
        raise TlsProblem("SSL private key is specified, but certificate chain is not specified.")
    if settings.location is not None:
        raise TlsProblem("Both SSL key store location and separate private key are specified.")
    if settings.password is not None:
        raise TlsProblem(
            "SSL key store password cannot be specified with PEM format, only key password may be"
            " specified."
        )
    key = private_key_of(settings.key, settings.key_password, "ssl.keystore.key")
    chain = certificates_of(settings.chain, "ssl.keystore.certificate.chain")
    return _matched(key, chain, "ssl.keystore.certificate.chain")


def _check_inline_trust(settings: TrustStoreSettings) -> None:
    if settings.type.upper() != PEM:
        raise TlsProblem(
            "SSL trust store certs can be specified only for PEM, but trust store type is"
            f" {settings.type}. Set ssl.truststore.type=PEM"
        )
    if settings.location is not None:
        raise TlsProblem(
            "Both SSL trust store location and separate trust certificates are specified."
        )
    if settings.password is not None:
        raise TlsProblem("SSL trust store password cannot be specified for PEM format.")


def _check_type(name: str, kind: str) -> None:
    if kind.upper() not in STORE_TYPES:
        raise TlsProblem(f"{name}={kind} is not known: it is one of {', '.join(STORE_TYPES)}")


def _read(read: Read, name: str, path: str) -> bytes:
    try:
        return read(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise TlsProblem(f"{name}={path} cannot be read: {reason}") from None


def _kind(content: bytes, prefix: str, path: str, named: str) -> str:
    """Return the type of a store; PEM must have been named, because PEM has no store password."""
    if content.startswith(_JKS_MARKS):
        found = JKS
    elif content.startswith(_DER_SEQUENCE):
        found = PKCS12
    elif _PEM_MARK in content:
        found = PEM
    else:
        raise TlsProblem(
            f"{prefix}.location={path} is no key store: neither PEM nor PKCS12 nor JKS"
        )
    if (found == PEM) != (named.upper() == PEM):
        raise TlsProblem(
            f"{prefix}.location={path} is of type {found}, not {named}: set {prefix}.type={found}"
        )
    return found


def _text(content: bytes, name: str, path: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise TlsProblem(f"{name}={path} is not text, as PEM is") from None


def _matched(key: PrivateKeyTypes, chain: tuple[Certificate, ...], where: str) -> KeyStore:
    """The store, its chain in order. Raises TlsProblem if key and certificate do not belong
    together."""
    wanted = key.public_key()
    for number, certificate in enumerate(chain):
        if certificate.public_key() == wanted:
            return KeyStore(key, tuple(_ordered(certificate, chain[:number] + chain[number + 1 :])))
    raise TlsProblem(
        f"{where}: the certificate is for another private key. Key and certificate must have been"
        " made together"
    )


def _ordered(leaf: Certificate, others: tuple[Certificate, ...]) -> Iterator[Certificate]:
    """Yield the leaf, then each one's issuer; what issued none of them is left out."""
    left = list(others)
    yield leaf
    while True:
        issuer = next((one for one in left if one.subject == leaf.issuer), None)
        if issuer is None:
            return
        left.remove(issuer)
        leaf = issuer
        yield leaf
