"""JKS stores, by the purejks package (`jks`), an extra: keytool has made PKCS12 since Java 9.

A store with several private keys gives the first by alias, as Java's key manager of a broker does.
"""

from typing import Any

from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509 import Certificate, load_der_x509_certificate

from tls.problems import TlsProblem


def key_and_chain(
    content: bytes, password: str, key_password: str | None, where: str
) -> tuple[PrivateKeyTypes, tuple[Certificate, ...]]:
    """Return the private key and its certificates. Raises TlsProblem."""
    store = _loaded(content, password, where, "ssl.keystore.password")
    if not store.private_keys:
        raise TlsProblem(f"{where} holds no private key: is it a trust store?")
    alias = min(store.private_keys)
    entry = store.private_keys[alias]
    try:
        entry.decrypt(password if key_password is None else key_password)
        key = load_der_private_key(entry.pkey_pkcs8, None)
        chain = tuple(load_der_x509_certificate(der) for _, der in entry.cert_chain)
    except Exception:  # noqa: BLE001 - its decryption fails in many ways on a wrong password
        raise TlsProblem(
            f"{where}: the private key {alias} cannot be decrypted: ssl.key.password is wrong"
        ) from None
    return key, chain


def trusted(content: bytes, password: str | None, where: str) -> tuple[Certificate, ...]:
    """Return the certificates that stand by themselves. Raises TlsProblem."""
    if password is None:
        raise TlsProblem(
            f"{where}: a JKS store is read with its password: set ssl.truststore.password"
        )
    store = _loaded(content, password, where, "ssl.truststore.password")
    try:
        return tuple(load_der_x509_certificate(store.certs[a].cert) for a in sorted(store.certs))
    except ValueError as error:
        raise TlsProblem(f"{where}: a certificate cannot be read ({error})") from None


def _loaded(content: bytes, password: str, where: str, key: str) -> Any:
    try:
        import jks
    except ImportError:
        raise TlsProblem(
            f"{where} is of type JKS: pip install 'pykafkalog[jks]' reads it, or convert it with"
            " keytool -importkeystore -deststoretype PKCS12"
        ) from None
    try:
        return jks.KeyStore.loads(content, password, try_decrypt_keys=False)
    except jks.util.KeystoreSignatureException:
        raise TlsProblem(
            f"{where} cannot be opened: {key} is wrong, or the file is damaged"
        ) from None
    except Exception as error:  # noqa: BLE001 - its parser fails in many ways on damaged files
        raise TlsProblem(f"{where} cannot be read as JKS: {error}") from None
