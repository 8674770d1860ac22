"""Certificates of the tests, valid now: one authority, brokers and clients that it signed."""

import functools
import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tls.authority import Authority, Identity

DAY_S: Final = 86_400.0
BEGIN_S: Final = 0.0
"""Certificates are valid now, and in every virtual time."""
HOSTS: Final = ("localhost", "127.0.0.1", "memory")


def authority(name: str = "test CA") -> Authority:
    """An authority; each name is another one."""
    return _authority(name)


@functools.cache
def _authority(name: str) -> Authority:
    return Authority.new(BEGIN_S, (time.time() - BEGIN_S) / DAY_S + 30, name)


def broker_identity(name: str = "test CA") -> Identity:
    """A broker's certificate of that authority, and its key."""
    return _broker_identity(name)


@functools.cache
def _broker_identity(name: str) -> Identity:
    return authority(name).server(HOSTS)


def client_identity(who: str = "alice", name: str = "test CA") -> Identity:
    """A client's certificate of that authority, and its key."""
    return _client_identity(who, name)


@functools.cache
def _client_identity(who: str, name: str) -> Identity:
    return authority(name).client(who)


def expired(name: str = "test CA") -> Authority:
    """The same authority, whose certificates have expired."""
    return Authority(authority(name).identity, time.time() - 10 * DAY_S, 1)


def ca_pem(name: str = "test CA") -> str:
    """The authority's certificate."""
    return authority(name).identity.certificate_pem().decode()


def write_files(directory: Path, name: str = "test CA") -> dict[str, str]:
    """Write ca.pem, broker.pem, client.pem; return their paths by these names without the end."""
    contents = {
        "ca": authority(name).identity.certificate_pem(),
        "broker": broker_identity(name).pem(),
        "client": client_identity(name=name).pem(),
    }
    for file, content in contents.items():
        (directory / f"{file}.pem").write_bytes(content)
    return {file: str(directory / f"{file}.pem") for file in contents}


def listener_settings(prefix: str = "", **more: str) -> dict[str, str]:
    """Settings of a broker's SSL listeners, inline; `more` with `_` for a dot."""
    own = broker_identity()
    return {
        f"{prefix}ssl.keystore.type": "PEM",
        f"{prefix}ssl.keystore.key": one_line(own.key_pem()),
        f"{prefix}ssl.keystore.certificate.chain": one_line(own.certificate_pem()),
        f"{prefix}ssl.truststore.type": "PEM",
        f"{prefix}ssl.truststore.certificates": one_line(ca_pem().encode()),
        **{f"{prefix}{key.replace('_', '.')}": value for key, value in more.items()},
    }


def one_line(pem: bytes) -> str:
    """PEM as it stands in one line of a properties file."""
    return pem.decode().replace("\n", " ")


def write_rsa(path: Path, bits: int = 2048) -> None:
    """Write a broker's certificate with a key of RSA."""
    key = rsa.generate_private_key(65537, bits)
    own, ca = broker_identity().certificate, authority().identity
    names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    certificate = (
        x509.CertificateBuilder()
        .subject_name(own.subject)
        .issuer_name(ca.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(own.not_valid_before_utc)
        .not_valid_after(own.not_valid_after_utc)
        .add_extension(names, critical=False)
        .sign(ca.key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(pem + certificate.public_bytes(Encoding.PEM))


def shaken(
    of_server: ssl.SSLContext, of_client: ssl.SSLContext, host: str = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends after the handshake. Raises the first error of either."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        of_client.wrap_bio(down, up, server_hostname=host),
        of_server.wrap_bio(up, down, server_side=True),
    )
    for _ in range(6):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    ends[1].getpeercert()  # raises if the handshake is not over
    return ends[1], ends[0]
