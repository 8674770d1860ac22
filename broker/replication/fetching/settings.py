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
    """Of one answer; a first batch that is larger comes whole."""
    partition_max_bytes: int = 1 << 20
    """Of one partition in it."""
    backoff_s: float = 1.0
    """Rest of a partition, or of all of a leader that is not reached, after an error."""
    timeout_s: float = 30.0
    """How long an answer may take."""

    @classmethod
    def from_config(cls, config: "BrokerConfig") -> "FetchingSettings":
        """Return those of a broker's configuration."""
        return cls(
            fetchers=config.num_replica_fetchers,
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            partition_max_bytes=config.replica_fetch_max_bytes,
            backoff_s=config.replica_fetch_backoff_ms / 1000,
            timeout_s=config.replica_socket_timeout_ms / 1000,
        )
