"""The settings of fetchers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from config.broker_config import BrokerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchingSettings:
    """Bytes, and seconds unless a name says otherwise."""

    fetchers: int = 1
    """Connections to each leader."""
    max_wait_ms: int = 500
    """How long the leader may wait for data."""
    min_bytes: int = 1
    max_bytes: int = 10 << 20
    """The most bytes of one answer; a first batch that is larger comes whole."""
    partition_max_bytes: int = 1 << 20
    """The most bytes of one partition in an answer."""
    backoff_s: float = 1.0
    """The rest of a partition after an error, or of all partitions if the leader is not reached."""
    timeout_s: float = 30.0
    """How long an answer may take."""

    @classmethod
    def from_config(cls, config: "BrokerConfig") -> "FetchingSettings":
        """Return the settings of a broker's configuration."""
        return cls(
            fetchers=config.num_replica_fetchers,
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            partition_max_bytes=config.replica_fetch_max_bytes,
            backoff_s=config.replica_fetch_backoff_ms / 1000,
            timeout_s=config.replica_socket_timeout_ms / 1000,
        )
