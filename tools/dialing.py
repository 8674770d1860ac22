"""How commands connect by themselves: plain, or with TLS, as the client's settings say.

`dialer(settings)` gives a function from an address to a connected socket. It reads librdkafka's
names, which `tools.client_properties` has made of Kafka's. SASL begins on the socket
(`tools.login`).
"""

import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from config.listener import resolvable
from tools.client_properties import ENCRYPTED, protocol_of
from tools.errors import CommandError

if TYPE_CHECKING:
    import ssl

Address = tuple[str, int]
"""Host and port."""
Dial = Callable[[Address, float], socket.socket]
"""Connects within so many seconds, and waits as long for answers. Raises OSError."""


def dialer(settings: Mapping[str, Any]) -> Dial:
    """Return how to connect. Raises CommandError if that cannot be done."""
    if protocol_of(settings) not in ENCRYPTED:
        return dial_plainly
    context = client_context_of(settings)

    def dial(address: Address, timeout_s: float) -> socket.socket:
        plain = dial_plainly(address, timeout_s)
        try:
            return context.wrap_socket(plain, server_hostname=address[0])
        except BaseException:
            plain.close()
            raise

    return dial


def dial_plainly(address: Address, timeout_s: float) -> socket.socket:
    """Connect without more."""
    return socket.create_connection((resolvable(address[0]), address[1]), timeout_s)


def client_context_of(settings: Mapping[str, Any]) -> "ssl.SSLContext":
    """Make the context of librdkafka's settings. Raises CommandError."""
    import ssl

    from tls.contexts import client_context
    from tls.problems import TlsProblem
    from tls.settings import PEM, ClientSettings, KeyStoreSettings, TrustStoreSettings
    from tls.store_files import read_store_file

    key, chain = _text(settings, "ssl.key"), _text(settings, "ssl.certificate")
    keys = KeyStoreSettings()
    if key is not None or chain is not None:
        password = settings.get("ssl.key.password")
        keys = KeyStoreSettings(type=PEM, key=key, chain=chain, key_password=password)
    checks = str(settings.get("enable.ssl.certificate.verification", "true")).lower() == "true"
    names = str(settings.get("ssl.endpoint.identification.algorithm", "https")).lower() != "none"
    trust = TrustStoreSettings(type=PEM, certificates=_text(settings, "ssl.ca"))
    try:
        context = client_context(
            ClientSettings(keys=keys, trust=trust, check_names=checks and names), read_store_file
        )
    except TlsProblem as problem:
        raise CommandError(str(problem)) from None
    if not checks:
        context.verify_mode = ssl.CERT_NONE
    return context


def _text(settings: Mapping[str, Any], name: str) -> str | None:
    """The PEM of a setting, or of the file that another one names. Raises CommandError."""
    if f"{name}.pem" in settings:
        return str(settings[f"{name}.pem"])
    path = settings.get(f"{name}.location")
    if path is None:
        return None
    try:
        return Path(str(path)).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise CommandError(f"cannot read {name}.location={path}: {reason}") from None


def reason_of(error: OSError) -> str:
    """Why connecting failed, in words: a TLS failure with what to do about it."""
    verify = getattr(error, "verify_message", None)
    if verify:
        return (
            f"its certificate is not accepted: {verify}. ssl.ca.location, or"
            " ssl.truststore.location, names the authority"
        )
    reason = getattr(error, "reason", None)
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return "it does not speak TLS: security.protocol=PLAINTEXT, or another port"
    if reason and "CERTIFICATE_REQUIRED" in reason:
        return "it wants a certificate of the client: ssl.certificate.location and ssl.key.location"
    return error.strerror or str(error)
