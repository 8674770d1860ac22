"""One topic's configuration as its logs use it: frozen, typed.

`TopicConfig()` has Kafka's defaults. `from_broker` takes the broker's value for each config that
the topic does not set (S-CFG-2). Names and rules are in `topic_keys`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from config.broker_config import BrokerConfig
from config.definition import ConfigError, ConfigKey
from config.key_building import LONG_MAX, MOST_DECOMPRESSED
from config.topic_keys import TOPIC_KEYS


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """The configuration of one topic's logs. Sizes are bytes, times milliseconds."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86400000
    file_delete_delay_ms: int = 60000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    max_compaction_lag_ms: int = LONG_MAX
    max_decompressed_message_bytes: int = MOST_DECOMPRESSED
    max_message_bytes: int = 1048588
    message_downconversion_enable: bool = True
    message_timestamp_after_max_ms: int = 3600000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604800000
    segment_bytes: int = 1073741824
    segment_index_bytes: int = 10485760
    segment_jitter_ms: int = 0
    segment_ms: int = 604800000
    unclean_leader_election_enable: bool = False

    @property
    def compact(self) -> bool:
        """Whether the cleaner removes old records of a key."""
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Whether retention removes old segments, by age, size and log start offset."""
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """Whether records get the broker's time instead of the producer's."""
        return self.message_timestamp_type == "LogAppendTime"

    @staticmethod
    def from_broker(broker: BrokerConfig, overrides: Mapping[str, str]) -> "TopicConfig":
        """Lay a topic's own configs over the broker's values.

        Topics that set nothing share one value. Raises ConfigError for an unknown name, a bad
        value, or values that contradict each other.
        """
        return _merged(broker, overrides) if overrides else _defaults(broker)


@lru_cache(maxsize=1)
def _defaults(broker: BrokerConfig) -> TopicConfig:
    return _merged(broker, {})


def _merged(broker: BrokerConfig, overrides: Mapping[str, str]) -> TopicConfig:
    fields = {attribute: getattr(broker, synonym) for attribute, synonym in _BROKER_ATTRIBUTES}
    for name, text in overrides.items():
        key = topic_key(name)
        fields[key.attribute] = key.parse(text)
    _apply_timestamp_difference(fields, overrides)
    fields["cleanup_policy"] = frozenset(fields["cleanup_policy"])
    result = TopicConfig(**{name: value for name, value in fields.items() if name in _FIELDS})
    _check_together(result, fields)
    return result


_FIELDS = frozenset(TopicConfig.__dataclass_fields__)
_BROKER_ATTRIBUTES = tuple(
    (key.attribute, key.synonyms[0].replace(".", "_"))
    for key in TOPIC_KEYS
    if key.synonyms and key.attribute in _FIELDS
)


def topic_key(name: str) -> ConfigKey:
    """Return the key called `name`. Raises ConfigError if there is none (S-CFG-4)."""
    key = TOPIC_KEYS.get(name)
    if key is None:
        raise ConfigError(f"Unknown topic config name: {name}")
    return key


def _apply_timestamp_difference(fields: dict[str, Any], overrides: Mapping[str, str]) -> None:
    """Apply Kafka 3.6's rule: the old name sets each of the two new ones that is not set."""
    if "message.timestamp.difference.max.ms" not in overrides:
        return
    for side in ("before", "after"):
        if f"message.timestamp.{side}.max.ms" not in overrides:
            fields[f"message_timestamp_{side}_max_ms"] = fields[
                "message_timestamp_difference_max_ms"
            ]


def _check_together(config: TopicConfig, fields: dict[str, Any]) -> None:
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({config.min_compaction_lag_ms})"
            f" > max.compaction.lag.ms ({config.max_compaction_lag_ms})"
        )
    if fields.get("remote_storage_enable"):
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage."
        )
