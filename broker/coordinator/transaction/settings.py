"""The transaction coordinator's configuration, counters and statistics."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.coordinator.runtime.loading import LoadStatistics
from broker.coordinator.transaction.markers import MarkerStatistics
from broker.coordinator.transaction.records import FLEXIBLE_VALUE_VERSION
from broker.coordinator.transaction.state import TransactionState

if TYPE_CHECKING:
    from config.broker_config import BrokerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """The coordinator's part of the broker's configuration. Times are milliseconds."""

    partition_count: int = 50
    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000
    load_buffer_bytes: int = 5_242_880
    verify_partitions: bool = True
    """Whether Produce and TxnOffsetCommit verify a partition before its first write (KIP-890)."""
    retry_ms: int = 20
    """How long a Produce that adds partitions waits at most until it tries again, for a busy id."""
    retry_max_ms: int = 100
    """How long it tries in all."""
    value_version: int = FLEXIBLE_VALUE_VERSION
    """The version of new records: 0 in a cluster, where Kafka 3.9 reads them and no feature is
    finalized."""

    @classmethod
    def from_config(cls, config: "BrokerConfig") -> "TransactionSettings":
        """From the keys transaction.* and transactional.id.expiration.ms."""
        return cls(
            partition_count=config.transaction_state_log_num_partitions,
            max_timeout_ms=config.transaction_max_timeout_ms,
            id_expiration_ms=config.transactional_id_expiration_ms,
            abort_timed_out_interval_ms=(
                config.transaction_abort_timed_out_transaction_cleanup_interval_ms
            ),
            remove_expired_interval_ms=(
                config.transaction_remove_expired_transaction_cleanup_interval_ms
            ),
            load_buffer_bytes=config.transaction_state_log_load_buffer_size,
            verify_partitions=config.transaction_partition_verification_enable,
            retry_ms=config.add_partitions_to_txn_retry_backoff_ms,
            retry_max_ms=config.add_partitions_to_txn_retry_backoff_max_ms,
            value_version=0 if config.values["zookeeper.connect"] else FLEXIBLE_VALUE_VERSION,
        )


@dataclass(slots=True)
class TransactionCounters:
    """Counters since the start."""

    changes: Counter[TransactionState] = field(default_factory=Counter)
    """Durable changes, by the new state."""
    failed_changes: int = 0
    timed_out: int = 0
    expired_ids: int = 0
    verifications: int = 0
    """Partitions verified before their first write in a transaction (KIP-890)."""
    failed_verifications: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionStatistics:
    """Numbers for metrics and tests."""

    transactional_ids: dict[str, int]
    """By state."""
    counters: TransactionCounters
    """The coordinator's own, which go on counting."""
    markers: MarkerStatistics
    loading: LoadStatistics
