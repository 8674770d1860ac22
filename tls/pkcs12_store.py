"""PKCS12 stores, by the cryptography package. The types of Java's keytool are among those it reads.

A store with several private keys gives one of them: a store of a broker holds one.
"""

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12KeyAndCertificates,
    load_pkcs12,
)
from cryptography.x509 import Certificate

from tls.problems import TlsProblem


def key_and_chain(
    content: bytes, password: str, key_password: str | None, where: str
) -> tuple[PrivateKeyTypes, tuple[Certificate, ...]]:
    """Return the private key and all certificates, its own first. Raises TlsProblem.

    PKCS12 has one password; another `key_password` is Java's mistake as well.
    """
    if key_password is not None and key_password != password:
        raise TlsProblem(
            f"{where}: a PKCS12 store has one password: ssl.key.password must be that of"
            " ssl.keystore.password, or not be set"
        )
    store = _loaded(content, password, where, "ssl.keystore.password")
    if store.key is None or store.cert is None:
        raise TlsProblem(f"{where} holds no private key: is it a trust store?")
    others = tuple(entry.certificate for entry in store.additional_certs)
    return store.key, (store.cert.certificate, *others)


def trusted(content: bytes, password: str | None, where: str) -> tuple[Certificate, ...]:
    """Return the certificates that stand by themselves. Raises TlsProblem."""
    store = _loaded(content, password, where, "ssl.truststore.password")
    return tuple(entry.certificate for entry in store.additional_certs)


def _loaded(content: bytes, password: str | None, where: str, key: str) -> PKCS12KeyAndCertificates:
    try:
        return load_pkcs12(content, None if password is None else password.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        if password is None:
            raise TlsProblem(f"{where}: it is encrypted: set {key}") from None
        raise TlsProblem(
            f"{where} cannot be opened: {key} is wrong, or the file is damaged"
            f" ({str(error).rstrip('.')})"
        ) from None
