"""Certificates for trying TLS: an authority of one's own, and what it signs.

Keys are P-256, which every client knows and which cost a tenth of RSA's. Nothing of it is for
keeping: the authority's key lies beside the certificates.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

ORGANIZATION: Final = "pykafkalog trial"
_CLOCKS_DIFFER: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def certificate_pem(self) -> bytes:
        """Return the certificate as PEM."""
        return self.certificate.public_bytes(Encoding.PEM)

    def key_pem(self) -> bytes:
        """Return the private key as PEM, as Java reads it (PKCS#8)."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def pem(self) -> bytes:
        """Return both, the key first."""
        return self.key_pem() + self.certificate_pem()


class Authority:
    """Signs certificates, which are valid for `days` from `now` on, in seconds since 1970."""

    def __init__(self, identity: Identity, now: float, days: float) -> None:
        """Use `new` or `read`."""
        self.identity: Final = identity
        self._lifetime: Final = _lifetime(now, days)

    @classmethod
    def new(cls, now: float, days: float, name: str = "pykafkalog trial CA") -> "Authority":
        """Make one with a key of its own."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            _builder(subject, subject, key, _lifetime(now, days))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(identifier, critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(Identity(certificate, key), now, days)

    @classmethod
    def read(cls, certificate: bytes, key: bytes, now: float, days: float) -> "Authority":
        """Read one that was made before, from PEM. Raises ValueError if it is none."""
        loaded = load_pem_private_key(key, None)
        own = x509.load_pem_x509_certificate(certificate)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey) or (
            loaded.public_key() != own.public_key()
        ):
            raise ValueError("the key is not that of the certificate")
        return cls(Identity(own, loaded), now, days)

    def server(self, hosts: Sequence[str]) -> Identity:
        """Make a broker's identity: its alternative names are these host names and addresses."""
        names = [_alternative_name(host) for host in hosts]
        # Also as a client: brokers of one cluster reach each other so.
        purposes = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
        return self._identity(hosts[0], purposes, x509.SubjectAlternativeName(names))

    def client(self, name: str) -> Identity:
        """Make a client's identity: its principal is `User:CN=<name>,O=pykafkalog trial`."""
        return self._identity(name, (ExtendedKeyUsageOID.CLIENT_AUTH,), None)

    def _identity(
        self,
        name: str,
        purposes: Sequence[ObjectIdentifier],
        alternatives: x509.SubjectAlternativeName | None,
    ) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        own = self.identity
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(own.key.public_key())
        builder = (
            _builder(_name(name), own.certificate.subject, key, self._lifetime)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(authority, critical=False)
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        return Identity(builder.sign(own.key, hashes.SHA256()), key)


def hosts_of(pem: bytes) -> list[str]:
    """Return the host names and addresses of a certificate in PEM. Raises ValueError."""
    extensions = x509.load_pem_x509_certificate(pem).extensions
    try:
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in names]


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _lifetime(now: float, days: float) -> tuple[datetime, datetime]:
    begin = datetime.fromtimestamp(now, UTC)
    return begin - _CLOCKS_DIFFER, begin + timedelta(days=days)


def _name(common: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common),
        ]
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    lifetime: tuple[datetime, datetime],
) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=lifetime[0],
        not_valid_after=lifetime[1],
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
