"""Java's names of cipher suites, which are IANA's, and OpenSSL's.

Those of TLS 1.2 are chosen by a list. Those of TLS 1.3 cannot be before Python 3.15: OpenSSL takes
the first of its own order that the client offers. So a listener whose list names some of them
checks after the handshake what was taken (`Suites.admits`), and a list that would shut out every
client is refused.
"""

from dataclasses import dataclass
from typing import Final

from tls.problems import TlsProblem
from tls.settings import TLS_1_2, TLS_1_3

OF_TLS_1_3: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)
"""The suites of TLS 1.3, in OpenSSL's order of preference; OpenSSL's names are the same."""

OF_TLS_1_2: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA256": "AES256-SHA256",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
}
"""Java's name to OpenSSL's, of what both Java 17 and OpenSSL 3 serve by default, with a certificate
of RSA or an elliptic curve and without parameters for Diffie-Hellman."""


@dataclass(frozen=True, slots=True)
class Suites:
    """The suites that `ssl.cipher.suites` admits."""

    protocols: tuple[str, ...]
    """The enabled versions of TLS for which the list has a suite."""
    ciphers: str | None
    """The suites of TLS 1.2 in OpenSSL's form; None: its own choice."""
    of_1_3: frozenset[str] | None
    """The suites of TLS 1.3 that are admitted; None: all."""

    def admits(self, version: str | None, suite: str) -> bool:
        """Whether a connection of this version with this suite may be used."""
        return version != TLS_1_3 or self.of_1_3 is None or suite in self.of_1_3


def chosen_suites(names: tuple[str, ...], protocols: tuple[str, ...]) -> Suites:
    """Look up Java's names. Raises TlsProblem for one that is not known, and if none is left."""
    names = tuple(filter(None, names))
    if not names:
        return Suites(protocols, None, None)
    unknown = [name for name in names if name not in OF_TLS_1_2 and name not in OF_TLS_1_3]
    if unknown:
        raise TlsProblem(
            f"ssl.cipher.suites: {', '.join(unknown)} is not served here. Names are Java's, such as"
            f" {OF_TLS_1_3[0]} or {next(iter(OF_TLS_1_2))}"
        )
    old = [OF_TLS_1_2[name] for name in names if name in OF_TLS_1_2]
    new = frozenset(name for name in names if name in OF_TLS_1_3)
    possible = {TLS_1_2: bool(old), TLS_1_3: bool(new)}
    left = tuple(protocol for protocol in protocols if possible[protocol])
    if not left:
        raise TlsProblem(
            f"ssl.cipher.suites has no suite for any of ssl.enabled.protocols={','.join(protocols)}"
        )
    if TLS_1_3 in left and OF_TLS_1_3[0] not in new:
        raise TlsProblem(
            f"ssl.cipher.suites: of TLS 1.3 this broker's TLS library takes {OF_TLS_1_3[0]} first,"
            " whatever the list says: name it too, or leave TLSv1.3 out of ssl.enabled.protocols"
        )
    return Suites(left, ":".join(old) or None, new or None)
