"""TLS settings: Kafka's `ssl.*` keys of one listener, or of a client, as frozen values.

Passwords are plain text here, and `repr` does not show them.
"""

from dataclasses import dataclass, field
from typing import Final

PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
JKS: Final = "JKS"
STORE_TYPES: Final = (PEM, PKCS12, JKS)

TLS_1_2: Final = "TLSv1.2"
TLS_1_3: Final = "TLSv1.3"
SERVED_PROTOCOLS: Final = (TLS_1_2, TLS_1_3)
REFUSED_PROTOCOLS: Final = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
"""Java knows them, and no longer serves them either (`jdk.tls.disabledAlgorithms`)."""

NONE: Final = "none"
REQUESTED: Final = "requested"
REQUIRED: Final = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStoreSettings:
    """`ssl.keystore.*` and `ssl.key.password`: whose certificate this is."""

    type: str = JKS
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    """`ssl.keystore.key`: the private key itself."""
    chain: str | None = None
    """`ssl.keystore.certificate.chain`: the certificates themselves, the leaf first."""

    @property
    def is_set(self) -> bool:
        """Whether any of it was set."""
        return not (self.location is self.password is self.key is self.chain is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustStoreSettings:
    """`ssl.truststore.*`: whose certificates are believed."""

    type: str = JKS
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    certificates: str | None = None
    """`ssl.truststore.certificates`: the certificates themselves."""

    @property
    def is_set(self) -> bool:
        """Whether any of it was set."""
        return not (self.location is self.password is self.certificates is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """All of a listener's."""

    keys: KeyStoreSettings
    trust: TrustStoreSettings
    client_auth: str = NONE
    protocols: tuple[str, ...] = SERVED_PROTOCOLS
    suites: tuple[str, ...] = ()
    """Java's names; empty means the library's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """All of a client's."""

    keys: KeyStoreSettings
    trust: TrustStoreSettings
    check_names: bool = True
    """Whether the broker's certificate must be for the name that was connected to."""
    protocols: tuple[str, ...] = SERVED_PROTOCOLS
    suites: tuple[str, ...] = ()
