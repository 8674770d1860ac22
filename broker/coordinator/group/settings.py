"""The group coordinator's part of the broker's configuration."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.coordinator.group.classic.limits import GroupLimits
from broker.coordinator.group.data.serde import OFFSET_VALUE_OF_3_9, WRITTEN_OFFSET_VALUE
from protocol.records.compression import CompressionType

if TYPE_CHECKING:
    from config.broker_config import BrokerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Times are milliseconds, sizes bytes."""

    limits: GroupLimits = field(default_factory=GroupLimits)
    partition_count: int = 50
    retention_ms: int = 10_080 * 60_000
    retention_check_interval_ms: int = 600_000
    metadata_max_length: int = 4_096
    load_buffer_bytes: int = 5_242_880
    compression: CompressionType = CompressionType.NONE
    offset_version: int = WRITTEN_OFFSET_VALUE
    """The version of new offset records: in a cluster the one that Kafka 3.9 writes."""

    @classmethod
    def from_config(cls, config: "BrokerConfig") -> "GroupSettings":
        """From the keys group.*, offsets.* and offset.metadata.max.bytes."""
        return cls(
            limits=GroupLimits(
                min_session_timeout_ms=config.group_min_session_timeout_ms,
                max_session_timeout_ms=config.group_max_session_timeout_ms,
                initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
                max_size=config.group_max_size,
            ),
            partition_count=config.offsets_topic_num_partitions,
            retention_ms=config.offsets_retention_minutes * 60_000,
            retention_check_interval_ms=config.offsets_retention_check_interval_ms,
            metadata_max_length=config.offset_metadata_max_bytes,
            load_buffer_bytes=config.offsets_load_buffer_size,
            compression=CompressionType(config.offsets_topic_compression_codec),
            offset_version=(
                OFFSET_VALUE_OF_3_9 if config.values["zookeeper.connect"] else WRITTEN_OFFSET_VALUE
            ),
        )
