"""The TLS of listeners: the context of each, and the principals of its clients.

    TlsListener     of one listener: context, cipher suites, rules; replaced as a whole
    TlsListeners    all of them, and their handshakes

A change of a listener's stores makes a new `TlsListener`, which is checked whole before the change
is accepted (S-TLS-5, decision 92); open connections keep their context. Stores are read again at
each change of this broker's configs, so altering a location to itself takes up a renewed file, as
in Kafka. Imported with the first listener that speaks TLS.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cryptography import x509

from broker.network.handshake_refusals import HandshakeRefusal
from broker.network.handshakes import (
    HandshakeBounds,
    Handshakes,
    HandshakeStatistics,
    Unacceptable,
)
from broker.request import ConnectionInfo
from broker.world.tls_stream import TlsStream, scratch_memory
from broker.world.transport import Stream
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from config.listener import Listener
from storage.clock import Clock
from storage.waits import call
from tls.contexts import ServerContext, server_context
from tls.names import alternative_names, distinguished_name
from tls.principals import NoRule, PrincipalRules
from tls.problems import TlsProblem
from tls.settings import NONE, KeyStoreSettings, ServerSettings, TrustStoreSettings
from tls.store_files import read_store_file

logger = logging.getLogger(__name__)

_SASL: Final = "SASL_SSL"
_USER: Final = "User:"
_MOST_NAMES: Final = 1000
"""Certificates whose principals are remembered."""


class TlsListener:
    """The TLS of one listener. See `broker.network.handshakes.Judge`."""

    __slots__ = ("_names", "_rules", "_scratch", "basis", "served")

    def __init__(self, basis: "Basis", served: ServerContext, scratch: memoryview) -> None:
        self.basis: Final = basis
        """The values that it was made of."""
        self.served: Final = served
        self._scratch = scratch
        self._rules = PrincipalRules(basis.rules)
        self._names: dict[bytes, str] = {}
        """Principals by certificate."""

    def secure(self, stream: Stream) -> TlsStream:
        """Speak TLS with a client that was accepted."""
        return TlsStream(stream, self.served.context, self._scratch)

    def principal(self, stream: TlsStream) -> str | None:
        """The client's principal by its certificate; None if the client has shown none.

        On a SASL listener it is None, because SASL finds the principal. Raises Unacceptable.
        """
        tls = stream.tls
        if self.served.suites.of_1_3 is not None:
            suite = tls.cipher()
            if suite is not None and not self.served.suites.admits(tls.version(), suite[0]):
                raise Unacceptable(HandshakeRefusal.SUITE, suite[0])
        if not self.served.asks_clients or self.basis.protocol == _SASL:
            return None
        certificate = tls.getpeercert(binary_form=True)
        if certificate is None:
            return None
        known = self._names.get(certificate)
        if known is None:
            known = self._named(certificate)
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            self._names[certificate] = known
        return known

    def _named(self, certificate: bytes) -> str:
        try:
            name = distinguished_name(x509.load_der_x509_certificate(certificate))
            return _USER + self._rules.name(name)
        except ValueError as error:  # OpenSSL is less strict
            raise Unacceptable(HandshakeRefusal.CERTIFICATE, str(error)) from None
        except NoRule as error:
            raise Unacceptable(HandshakeRefusal.NAME, str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The values that a `TlsListener` is made of; from equal ones no new listener is made."""

    protocol: str
    settings: ServerSettings
    rules: str
    files: Mapping[str, bytes]
    """Contents of the stores, by path."""


class TlsListeners:
    """The TLS of one broker. Event loop only."""

    def __init__(
        self,
        clock: Clock,
        bounds: HandshakeBounds,
        read: Callable[[str], bytes] = read_store_file,
    ) -> None:
        """Use `load` before anything else. `read` is called in threads."""
        self._clock = clock
        self._read = read
        self._scratch = scratch_memory()
        self._by_name: dict[str, TlsListener] = {}
        self._handshakes = Handshakes(clock, bounds)

    # ---- the TLS of each listener

    async def load(self, config: BrokerConfig) -> None:
        """Read all stores. Raises ConfigError."""
        (await self.prepare(config))()

    async def prepare(self, config: BrokerConfig) -> Callable[[], None]:
        """Make the TLS of another configuration; return the call that makes new connections use it.

        Raises ConfigError if it cannot be used, or if a certificate is not for the names of the one
        that it replaces.
        """
        prepared: dict[str, TlsListener] = {}
        for listener in config.listeners:
            if listener.is_encrypted:
                prepared[listener.name] = await self._prepared(config, listener)

        def install() -> None:
            for name, new in prepared.items():
                old = self._by_name.get(name)
                if old is not None and old is not new:
                    logger.info(
                        "Listener %s serves new connections with the certificate of %s, valid until"
                        " %s",
                        name,
                        distinguished_name(new.served.keys.leaf),
                        f"{new.served.keys.leaf.not_valid_after_utc:%Y-%m-%d %H:%M} UTC",
                    )
            self._by_name = prepared

        return install

    async def reload(self, config: BrokerConfig) -> None:
        """Read the stores again and use them; if they cannot be used, log a warning."""
        try:
            (await self.prepare(config))()
        except ConfigError as error:
            logger.warning("Listeners go on with the stores that they have: %s", error)

    async def _prepared(self, config: BrokerConfig, listener: Listener) -> TlsListener:
        before = self._by_name.get(listener.name)
        settings = tls_settings(config, listener)
        rules = config.of_listener(listener.name, "ssl.principal.mapping.rules")
        now_ms = self._clock.wall_ms()

        def make() -> TlsListener:
            files: dict[str, bytes] = {}

            def read(path: str) -> bytes:
                files[path] = self._read(path)
                return files[path]

            served = server_context(settings, read, now_ms)
            basis = Basis(protocol=listener.protocol, settings=settings, rules=rules, files=files)
            if before is not None and before.basis == basis:
                return before
            return TlsListener(basis, served, self._scratch)

        try:
            made = await call(make)
            if before is not None:
                _check_same_owner(config, before.served, made.served)
        except TlsProblem as problem:
            raise ConfigError(f"Listener {listener}: {problem}") from None
        return made

    # ---- connections

    def secure(self, listener_name: str, stream: Stream) -> TlsStream | None:
        """Speak TLS with a client, if its listener does."""
        listener = self._by_name.get(listener_name)
        return None if listener is None else listener.secure(stream)

    async def open(
        self, stream: Any, info: ConnectionInfo, give_up: Callable[[], object]
    ) -> str | None:
        """Shake hands on a stream of `secure`; return the client's principal, None if unknown.

        `give_up` ends the connection. Raises OSError if it fails.
        """
        judge = self._by_name[info.listener_name]
        return await self._handshakes.shake(stream, info, judge, give_up)

    async def run(self) -> None:
        """Look after handshakes until ended."""
        await self._handshakes.run()

    def statistics(self) -> HandshakeStatistics:
        """A snapshot."""
        return self._handshakes.statistics()


def tls_settings(config: BrokerConfig, listener: Listener) -> ServerSettings:
    """The settings of a listener's TLS in the configuration.

    A SASL listener requests certificates of clients only if `ssl.client.auth` is set with the
    listener's own prefix (S-TLS-4).
    """

    def value(key: str) -> Any:
        found = config.of_listener(listener.name, key)
        return getattr(found, "value", found)  # a password

    auth = value("ssl.client.auth")
    if listener.protocol == _SASL:
        auth = config.for_listener(listener.name, "ssl.client.auth") or NONE
    return ServerSettings(
        keys=KeyStoreSettings(
            type=value("ssl.keystore.type"),
            location=value("ssl.keystore.location"),
            password=value("ssl.keystore.password"),
            key_password=value("ssl.key.password"),
            key=value("ssl.keystore.key"),
            chain=value("ssl.keystore.certificate.chain"),
        ),
        trust=TrustStoreSettings(
            type=value("ssl.truststore.type"),
            location=value("ssl.truststore.location"),
            password=value("ssl.truststore.password"),
            certificates=value("ssl.truststore.certificates"),
        ),
        client_auth=auth,
        protocols=value("ssl.enabled.protocols"),
        suites=value("ssl.cipher.suites"),
    )


def _check_same_owner(config: BrokerConfig, old: ServerContext, new: ServerContext) -> None:
    """Raise TlsProblem if a new certificate is for another name (Kafka's `CertificateEntries`)."""
    before, after = old.keys.leaf, new.keys.leaf
    names = distinguished_name(before), distinguished_name(after)
    if names[0] != names[1] and not config.ssl_allow_dn_changes:
        raise TlsProblem(
            f"Keystore DistinguishedName does not match: existing={names[0]}, new={names[1]}."
            " ssl.allow.dn.changes=true in server.properties allows it"
        )
    if not alternative_names(before) <= alternative_names(after) and (
        not config.ssl_allow_san_changes
    ):
        raise TlsProblem(
            "Keystore SubjectAltNames do not match: existing="
            f"{sorted(alternative_names(before))}, new={sorted(alternative_names(after))}."
            " ssl.allow.san.changes=true in server.properties allows it"
        )
