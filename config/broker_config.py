"""A broker's configuration: frozen, typed, checked.

Attributes are the keys with dots as underscores. The class declares those that the broker reads
(keys with `effective=True`); a test checks that both sets are equal. Some have a resolved value:

* `log_retention_ms`, `log_roll_ms`, `log_roll_jitter_ms`, `log_flush_interval_ms`: milliseconds,
  from whichever unit was set; a retention of -1 keeps for ever;
* `log_dirs`: never empty; `cordoned_log_dirs`: a subset of it;
* `broker_id` and `node_id`: equal, -1 if the id must be generated;
* `listeners`, `advertised_listeners`: parsed. The second is empty if the operator did not set it:
  then the broker advertises to each client the address that it connected to.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from config.broker_keys import BROKER_KEYS
from config.definition import ConfigError, ConfigKey
from config.listener import Listener
from config.resolution import (
    IN_MEMORY,
    cordoned_directories,
    inter_broker_listener_name,
    ip_overrides,
    listener_endpoints,
    log_directories,
    resolve_broker_id,
    resolve_times,
)
from config.startup_checks import Endpoints, check_values

LISTENER_PREFIX = "listener.name."

_NOT_FOR_ADOPTION: Final = frozenset(
    {
        *("zookeeper.connect", "authorizer.class.name", "remote.log.storage.system.enable"),
        *("listeners", "advertised.listeners", "listener.security.protocol.map"),
        *("inter.broker.listener.name", "security.inter.broker.protocol"),
        *("controller.listener.names", "control.plane.listener.name"),
    }
)
"""Keys whose values in Kafka's file may stop a start of this broker; adoption ignores them then."""


class BrokerConfig:
    """A broker's configuration; made by `parse`, immutable."""

    if TYPE_CHECKING:
        advertised_host_name: str | None
        advertised_listeners: tuple[Listener, ...]
        advertised_port: int | None
        auto_create_topics_enable: bool
        background_threads: int
        broker_id: int
        broker_id_generation_enable: bool
        broker_rack: str | None
        compression_gzip_level: int
        compression_lz4_level: int
        compression_type: str
        compression_zstd_level: int
        connections_max_idle_ms: int
        controller_listener_names: tuple[str, ...]
        cordoned_log_dirs: tuple[str, ...]
        default_replication_factor: int
        delete_topic_enable: bool
        fetch_max_bytes: int
        group_initial_rebalance_delay_ms: int
        group_max_session_timeout_ms: int
        group_max_size: int
        group_min_session_timeout_ms: int
        host_name: str
        incomplete_request_max_bytes: int
        inter_broker_listener_name: str | None
        listener_security_protocol_map: str
        listeners: tuple[Listener, ...]
        log_cleaner_backoff_ms: int
        log_cleaner_dedupe_buffer_size: int
        log_cleaner_delete_retention_ms: int
        log_cleaner_enable: bool
        log_cleaner_io_buffer_load_factor: float
        log_cleaner_io_buffer_size: int
        log_cleaner_io_max_bytes_per_second: float
        log_cleaner_max_compaction_lag_ms: int
        log_cleaner_min_cleanable_ratio: float
        log_cleaner_min_compaction_lag_ms: int
        log_cleaner_threads: int
        log_cleanup_policy: tuple[str, ...]
        log_dir: tuple[str, ...]
        log_dirs: tuple[str, ...]
        log_flush_interval_messages: int
        log_flush_interval_ms: int
        log_flush_offset_checkpoint_interval_ms: int
        log_flush_scheduler_interval_ms: int
        log_flush_start_offset_checkpoint_interval_ms: int
        log_index_interval_bytes: int
        log_index_size_max_bytes: int
        log_initial_task_delay_ms: int
        log_message_downconversion_enable: bool
        log_message_timestamp_after_max_ms: int
        log_message_timestamp_before_max_ms: int
        log_message_timestamp_difference_max_ms: int
        log_message_timestamp_type: str
        log_preallocate: bool
        log_retention_bytes: int
        log_retention_check_interval_ms: int
        log_retention_hours: int
        log_retention_minutes: int | None
        log_retention_ms: int
        log_roll_hours: int
        log_roll_jitter_hours: int
        log_roll_jitter_ms: int
        log_roll_ms: int
        log_segment_bytes: int
        log_segment_delete_delay_ms: int
        max_connections: int
        max_connections_per_ip: int
        max_connections_per_ip_overrides: str
        max_incremental_fetch_session_cache_slots: int
        max_decompressed_message_bytes: int
        message_max_bytes: int
        metadata_log_dir: str | None
        metrics_http_listener: str
        min_insync_replicas: int
        node_id: int
        num_io_threads: int
        num_partitions: int
        num_recovery_threads_per_data_dir: int
        offset_metadata_max_bytes: int
        offsets_commit_timeout_ms: int
        offsets_load_buffer_size: int
        offsets_retention_check_interval_ms: int
        offsets_retention_minutes: int
        offsets_topic_compression_codec: int
        offsets_topic_num_partitions: int
        offsets_topic_replication_factor: int
        offsets_topic_segment_bytes: int
        port: int
        producer_id_expiration_check_interval_ms: int
        producer_id_expiration_ms: int
        queued_max_request_bytes: int
        queued_max_requests: int
        replica_high_watermark_checkpoint_interval_ms: int
        request_timeout_ms: int
        reserved_broker_max_id: int
        security_inter_broker_protocol: str
        socket_listen_backlog_size: int
        socket_receive_buffer_bytes: int
        socket_request_max_bytes: int
        socket_send_buffer_bytes: int
        transaction_abort_timed_out_transaction_cleanup_interval_ms: int
        transaction_max_timeout_ms: int
        transaction_partition_verification_enable: bool
        transaction_remove_expired_transaction_cleanup_interval_ms: int
        transaction_state_log_load_buffer_size: int
        transaction_state_log_min_isr: int
        transaction_state_log_num_partitions: int
        transaction_state_log_replication_factor: int
        transaction_state_log_segment_bytes: int
        transactional_id_expiration_ms: int

    originals: Mapping[str, str]
    """The texts that the operator set, by key."""
    unknown: tuple[str, ...]
    """Names that the operator set and the table does not have: warned of at start (S-CFG-1)."""
    values: Mapping[str, Any]
    """Every key's value by its name, as parsed or defaulted, before units are resolved."""
    inter_broker_listener: str
    """The name of the listener for traffic between brokers."""
    ip_connection_limits: Mapping[str, int]
    """`max.connections.per.ip.overrides`, parsed."""

    @classmethod
    def parse(cls, props: Mapping[str, str]) -> "BrokerConfig":
        """Make it from the strings of a properties file. Raises ConfigError with one clear line."""
        values = BROKER_KEYS.parse(props)
        config = cls()
        fields = config.__dict__
        fields["values"] = values.copy()
        resolve_broker_id(values, props)
        resolve_times(values, props)
        for name, value in values.items():
            fields[name.replace(".", "_")] = value
        fields["originals"] = dict(props)
        fields["unknown"] = tuple(
            name for name in props if name not in BROKER_KEYS and _listener_key(name) is None
        )
        fields["log_dirs"] = log_directories(values)
        fields["cordoned_log_dirs"] = cordoned_directories(values, fields["log_dirs"])
        fields["listeners"], fields["advertised_listeners"] = listener_endpoints(values, props)
        fields["inter_broker_listener"] = inter_broker_listener_name(values, props)
        fields["ip_connection_limits"] = ip_overrides(values["max.connections.per.ip.overrides"])
        for name, text in props.items():
            of_listener = _listener_key(name)
            if of_listener is not None:
                of_listener.parse(text)
        check_values(
            values,
            Endpoints(config.listeners, config.advertised_listeners, config.inter_broker_listener),
        )
        return config

    @property
    def is_in_memory(self) -> bool:
        """Whether the log directories are memory of this process, which ends with it."""
        return self.log_dirs[0].startswith(IN_MEMORY)

    def with_broker_id(self, broker_id: int) -> "BrokerConfig":
        """Return a copy with the id that was found or generated (S-START-6)."""
        config = BrokerConfig()
        values = {**self.values, "broker.id": broker_id, "node.id": broker_id}
        config.__dict__.update(self.__dict__, broker_id=broker_id, node_id=broker_id, values=values)
        return config

    def for_listener(self, listener_name: str, key_name: str) -> Any:
        """The value of `listener.name.<name>.<key>`; None if it is not set (S-CFG-6).

        Listener names in keys are in lower case. Raises ConfigError for a bad value.
        """
        text = self.originals.get(f"{LISTENER_PREFIX}{listener_name.lower()}.{key_name}")
        return None if text is None else BROKER_KEYS[key_name].parse(text)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a BrokerConfig does not change: {name}")

    def __repr__(self) -> str:
        return f"BrokerConfig(broker_id={self.broker_id}, log_dirs={self.log_dirs})"


def _listener_key(name: str) -> ConfigKey | None:
    """The key of `listener.name.<name>[.<SASL mechanism>].<key>`; None if it is not known."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    key_name = name[len(LISTENER_PREFIX) :].partition(".")[2]
    return BROKER_KEYS.get(key_name) or BROKER_KEYS.get(key_name.partition(".")[2])


def _read_file(path: str) -> bytes:
    return Path(path).read_bytes()


def load_broker_config(
    path: str,
    overrides: Mapping[str, str] | None = None,
    read_bytes: Callable[[str], bytes] = _read_file,
) -> BrokerConfig:
    """Read `server.properties` and apply `--override`s, which win (S-START-1).

    Raises ConfigError, also if the file cannot be read.
    """
    return BrokerConfig.parse(_properties(path, overrides, read_bytes))


def load_for_adoption(
    path: str,
    overrides: Mapping[str, str] | None = None,
    read_bytes: Callable[[str], bytes] = _read_file,
) -> tuple[BrokerConfig, str | None]:
    """Read a `server.properties` of Kafka; return (config, why a start would refuse it, or None).

    Adoption opens no listener and joins no cluster, so values of those keys that a start would
    refuse are ignored. Raises ConfigError for a bad value of any other key.
    """
    props = _properties(path, overrides, read_bytes)
    try:
        return BrokerConfig.parse(props), None
    except ConfigError as error:
        usable = {name: text for name, text in props.items() if name not in _NOT_FOR_ADOPTION}
        if len(usable) == len(props):
            raise
        return BrokerConfig.parse(usable), error.message


def _properties(
    path: str, overrides: Mapping[str, str] | None, read_bytes: Callable[[str], bytes]
) -> dict[str, str]:
    from config.properties import load_properties

    try:
        text = read_bytes(path).decode("iso-8859-1")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"Cannot read the configuration file {path}: {reason}."
            " Name the broker's server.properties"
        ) from None
    return {**load_properties(text), **(overrides or {})}
