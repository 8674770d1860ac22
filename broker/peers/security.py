"""How this broker proves who it is to other brokers, and checks who they are.

`PeerSecurity` uses the settings of the listener between brokers: its stores (a broker shows others
the certificate that it shows its clients, and trusts the certificates that it trusts in clients),
whether names are checked (`ssl.endpoint.identification.algorithm`), and the login of
`sasl.mechanism.inter.broker.protocol`. Stores are read for each connection, so a renewed
certificate needs no restart. After Kafka's `ChannelBuilders.clientChannelBuilder` with
`JaasContext.Type.SERVER`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from config.broker_config import BrokerConfig
from config.sasl_settings import LoginSettings, login_settings

if TYPE_CHECKING:
    from ssl import SSLContext

_NAMES: Final = "ssl.endpoint.identification.algorithm"


class PeerSecurity:
    """TLS and login for connections to the listener of one name."""

    def __init__(self, config: BrokerConfig, read: Callable[[str], bytes] | None = None) -> None:
        """`read` reads a store, in threads. Raises ConfigError if the login is not configured."""
        self._config: Final = config
        self._read: Final = read
        named = (one for one in config.listeners if one.name == config.inter_broker_listener)
        listener = next(named, None)
        self.login: Final[LoginSettings | None] = (
            login_settings(listener, config.values, config.originals)
            if listener is not None and listener.protocol.startswith("SASL_")
            else None
        )

    def context(self) -> "SSLContext":
        """Make the context of a client. Reads files: not for the event loop. Raises TlsProblem."""
        from tls.contexts import client_context  # with the first connection that is encrypted
        from tls.settings import ClientSettings, KeyStoreSettings, TrustStoreSettings
        from tls.store_files import read_store_file

        return client_context(
            ClientSettings(
                keys=KeyStoreSettings(
                    type=self._value("ssl.keystore.type"),
                    location=self._value("ssl.keystore.location"),
                    password=self._value("ssl.keystore.password"),
                    key_password=self._value("ssl.key.password"),
                    key=self._value("ssl.keystore.key"),
                    chain=self._value("ssl.keystore.certificate.chain"),
                ),
                trust=TrustStoreSettings(
                    type=self._value("ssl.truststore.type"),
                    location=self._value("ssl.truststore.location"),
                    password=self._value("ssl.truststore.password"),
                    certificates=self._value("ssl.truststore.certificates"),
                ),
                check_names=bool(self._value(_NAMES)),
                protocols=self._value("ssl.enabled.protocols"),
                suites=self._value("ssl.cipher.suites"),
            ),
            self._read or read_store_file,
        )

    def _value(self, key: str) -> Any:
        found = self._config.of_listener(self._config.inter_broker_listener, key)
        return getattr(found, "value", found)  # a password
