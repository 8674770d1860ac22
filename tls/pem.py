"""PEM as Kafka takes it: blocks between BEGIN and END lines, in a file or in one setting.

A setting is one line, whose breaks have become spaces or are missing; so a block's base64 is taken
by itself, whatever white space there is in it. Text around the blocks is ignored.
"""

import base64
import binascii
import re
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import Certificate, load_der_x509_certificate

from tls.problems import TlsProblem

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_OLD_HEADER: Final = "Proc-Type:"
"""Keys encrypted in OpenSSL's old way have header lines."""


def certificates_of(text: str, where: str) -> tuple[Certificate, ...]:
    """Return all certificates of a PEM text, in order. Raises TlsProblem if there is none."""
    found = []
    for label, body in _BLOCK.findall(text):
        if label.endswith("CERTIFICATE"):
            try:
                found.append(load_der_x509_certificate(_decoded(body)))
            except ValueError as error:
                raise TlsProblem(f"{where}: a certificate cannot be read ({error})") from None
    if not found:
        raise TlsProblem(f"{where}: no certificate is in it (BEGIN CERTIFICATE)")
    return tuple(found)


def private_key_of(text: str, password: str | None, where: str) -> PrivateKeyTypes:
    """Return the first private key of a PEM text. Raises TlsProblem."""
    for label, body in _BLOCK.findall(text):
        if not label.endswith("PRIVATE KEY"):
            continue
        encrypted = label.startswith("ENCRYPTED") or _OLD_HEADER in body
        if encrypted and password is None:
            raise TlsProblem(f"{where}: the private key is encrypted: set ssl.key.password")
        secret = password.encode() if encrypted and password is not None else None
        if _OLD_HEADER not in body:
            lines = base64.encodebytes(_decoded(body)).decode()
            body = f"\n{lines}"
        block = f"-----BEGIN {label}-----{body}-----END {label}-----\n".encode()
        try:
            return load_pem_private_key(block, secret)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            why = "ssl.key.password is wrong, or it is damaged" if encrypted else "it is damaged"
            raise TlsProblem(f"{where}: the private key cannot be read: {why}") from None
    raise TlsProblem(f"{where}: no private key is in it (BEGIN PRIVATE KEY)")


def _decoded(body: str) -> bytes:
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error:
        return b""  # no DER: whoever reads it says so
