"""TLS to ZooKeeper: `zookeeper.ssl.*`, as the room `tls` has it.

The settings mean the same as in ZooKeeper's client: a store without a type is PEM if its name ends
in `.pem`, a password of a PEM key store is that of the key, and names of hosts are checked unless
`zookeeper.ssl.endpoint.identification.algorithm` is empty. Without
`zookeeper.ssl.enabled.protocols`, `zookeeper.ssl.protocol` is the only protocol.

Source: `org.apache.zookeeper.common.X509Util` (3.8), `org.apache.kafka.server.config.ZkConfigs`.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from broker.cluster.metadata_store import MetadataStoreError
from config.broker_config import BrokerConfig

if TYPE_CHECKING:
    from ssl import SSLContext

_PEM: Final = "PEM"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFile:
    """A key store or a trust store."""

    location: str | None = None
    password: str | None = field(default=None, repr=False)
    type: str | None = None

    @property
    def kind(self) -> str:
        """Its type, by its name if it was not set."""
        if self.type is not None:
            return self.type.upper()
        return _PEM if (self.location or "").endswith(".pem") else "JKS"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionSettings:
    """The settings by which this broker and ZooKeeper authenticate each other."""

    keys: StoreFile = StoreFile()
    trust: StoreFile = StoreFile()
    check_names: bool = True
    protocols: tuple[str, ...] = ("TLSv1.2",)
    suites: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: BrokerConfig) -> "EncryptionSettings":
        """Take them from the configuration."""
        return cls(
            keys=StoreFile(
                location=config.zookeeper_ssl_keystore_location,
                password=_plain(config.zookeeper_ssl_keystore_password),
                type=config.zookeeper_ssl_keystore_type,
            ),
            trust=StoreFile(
                location=config.zookeeper_ssl_truststore_location,
                password=_plain(config.zookeeper_ssl_truststore_password),
                type=config.zookeeper_ssl_truststore_type,
            ),
            check_names=config.zookeeper_ssl_endpoint_identification_algorithm.upper() == "HTTPS",
            protocols=config.zookeeper_ssl_enabled_protocols or (config.zookeeper_ssl_protocol,),
            suites=config.zookeeper_ssl_cipher_suites or (),
        )


def _plain(password: Any) -> str | None:
    return None if password is None else str(password.value)


def client_context_of(settings: EncryptionSettings) -> "SSLContext":
    """The context for connections to ZooKeeper. Reads files: not for the event loop.

    Raises MetadataStoreError, whose text is for the operator.
    """
    from tls.contexts import client_context
    from tls.problems import TlsProblem
    from tls.settings import ClientSettings, KeyStoreSettings, TrustStoreSettings
    from tls.store_files import read_store_file

    keys, trust = settings.keys, settings.trust
    is_pem = keys.kind == _PEM
    try:
        return client_context(
            ClientSettings(
                keys=KeyStoreSettings(
                    type=keys.kind,
                    location=keys.location,
                    password=None if is_pem else keys.password,
                    key_password=keys.password,
                ),
                trust=TrustStoreSettings(
                    type=trust.kind,
                    location=trust.location,
                    password=None if trust.kind == _PEM else trust.password,
                ),
                check_names=settings.check_names,
                protocols=settings.protocols,
                suites=settings.suites,
            ),
            read_store_file,
        )
    except TlsProblem as problem:
        raise MetadataStoreError("TLS to ZooKeeper (zookeeper.ssl.*)", str(problem)) from problem
