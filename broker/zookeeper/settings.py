"""The settings of the configuration about ZooKeeper."""

from dataclasses import dataclass

from broker.zookeeper.encryption import EncryptionSettings
from config.broker_config import BrokerConfig
from config.zookeeper_connect import ZooKeeperAddress, parse_connect


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSettings:
    """The address of ZooKeeper, the timeouts, and TLS."""

    address: ZooKeeperAddress
    session_timeout_s: float = 18.0
    """Silence after which ZooKeeper ends the session; ZooKeeper may choose another time."""
    connection_timeout_s: float = 18.0
    """The longest wait for the first connection."""
    most_in_flight: int = 10
    """Requests that are under way at once."""
    encryption: EncryptionSettings | None = None
    """The settings of TLS; None without TLS."""

    @classmethod
    def of(cls, config: BrokerConfig) -> "ZooKeeperSettings":
        """Take them from the configuration, whose `zookeeper.connect` is set and was checked."""
        assert config.zookeeper_connect is not None
        session_s = config.zookeeper_session_timeout_ms / 1000
        connection_ms = config.zookeeper_connection_timeout_ms
        return cls(
            address=parse_connect(config.zookeeper_connect),
            session_timeout_s=session_s,
            connection_timeout_s=session_s if connection_ms is None else connection_ms / 1000,
            most_in_flight=config.zookeeper_max_in_flight_requests,
            encryption=(
                EncryptionSettings.of(config) if config.zookeeper_ssl_client_enable else None
            ),
        )
