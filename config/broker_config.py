"""A broker's configuration: frozen, typed, checked.

Attributes are the keys with dots as underscores. The class declares those that the broker reads
(keys with `effective=True`); a test checks that both sets are equal. Some have a resolved value:

* `log_retention_ms`, `log_roll_ms`, `log_roll_jitter_ms`, `log_flush_interval_ms`: milliseconds,
  from whichever unit was set; a retention of -1 keeps for ever;
* `log_dirs`: never empty; `cordoned_log_dirs`: a subset of it;
* `broker_id` and `node_id`: equal, -1 if the id must be generated;
* `super_users`: the principals;
* `listeners`, `advertised_listeners`: parsed. The second is empty if the operator did not set it:
  then the broker advertises to each client the address that it connected to.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from config.broker_keys import BROKER_KEYS
from config.definition import ConfigError, ConfigKey, Password
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
    super_users,
)
from config.startup_checks import JAVA_CLASSES, Endpoints, check_values

if TYPE_CHECKING:
    from config.sasl_settings import SaslSettings

LISTENER_PREFIX = "listener.name."
LIMITS_OF_A_LISTENER: Final = ("max.connections", "max.connection.creation.rate")
"""Keys that limit the connections of one listener if they have its prefix."""

_NOT_FOR_ADOPTION: Final = frozenset(
    {
        *("zookeeper.connect", "authorizer.class.name", "remote.log.storage.system.enable"),
        "replica.selector.class",
        *("listeners", "advertised.listeners", "listener.security.protocol.map"),
        *("inter.broker.listener.name", "security.inter.broker.protocol"),
        *("controller.listener.names", "control.plane.listener.name"),
        *JAVA_CLASSES,
    }
)
"""Keys whose values in Kafka's file may stop a start of this broker; adoption ignores them then."""

_NOT_HERE: Final = (
    "with it the broker is a member of a cluster, whose metadata are in ZooKeeper and not in its"
    " log directories. To start it stand-alone, with what they hold, take the line out"
)


class BrokerConfig:
    """A broker's configuration; made by `parse`, immutable."""

    if TYPE_CHECKING:
        add_partitions_to_txn_retry_backoff_max_ms: int
        add_partitions_to_txn_retry_backoff_ms: int
        advertised_host_name: str | None
        advertised_listeners: tuple[Listener, ...]
        advertised_port: int | None
        allow_everyone_if_no_acl_found: bool
        authorizer_class_name: str
        auto_create_topics_enable: bool
        auto_leader_rebalance_enable: bool
        background_threads: int
        broker_id: int
        broker_id_generation_enable: bool
        broker_rack: str | None
        compression_gzip_level: int
        compression_lz4_level: int
        compression_type: str
        compression_zstd_level: int
        connection_failed_authentication_delay_ms: int
        connections_max_idle_ms: int
        connections_max_reauth_ms: int
        controlled_shutdown_enable: bool
        controlled_shutdown_max_retries: int
        controlled_shutdown_retry_backoff_ms: int
        controller_listener_names: tuple[str, ...]
        controller_quota_window_num: int
        controller_quota_window_size_seconds: int
        controller_socket_timeout_ms: int
        cordoned_log_dirs: tuple[str, ...]
        default_replication_factor: int
        delegation_token_expiry_check_interval_ms: int
        delegation_token_expiry_time_ms: int
        delegation_token_master_key: Password | None
        delegation_token_max_lifetime_ms: int
        delegation_token_secret_key: Password | None
        delete_topic_enable: bool
        fetch_max_bytes: int
        group_initial_rebalance_delay_ms: int
        group_max_session_timeout_ms: int
        group_max_size: int
        group_min_session_timeout_ms: int
        host_name: str
        incomplete_request_max_bytes: int
        inter_broker_listener_name: str | None
        leader_imbalance_check_interval_seconds: int
        leader_imbalance_per_broker_percentage: int
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
        max_connection_creation_rate: int
        max_connections: int
        max_connections_per_ip: int
        max_connections_per_ip_overrides: str
        max_decompressed_message_bytes: int
        max_incremental_fetch_session_cache_slots: int
        max_request_partition_size_limit: int
        max_unauthenticated_connections: int
        max_unauthenticated_connections_per_ip: int
        message_max_bytes: int
        metadata_log_dir: str | None
        metrics_http_listener: str
        min_insync_replicas: int
        node_id: int
        num_io_threads: int
        num_partitions: int
        num_recovery_threads_per_data_dir: int
        num_replica_fetchers: int
        offset_metadata_max_bytes: int
        offsets_commit_timeout_ms: int
        offsets_load_buffer_size: int
        offsets_retention_check_interval_ms: int
        offsets_retention_minutes: int
        offsets_topic_compression_codec: int
        offsets_topic_num_partitions: int
        offsets_topic_replication_factor: int
        offsets_topic_segment_bytes: int
        password_encoder_cipher_algorithm: str
        password_encoder_iterations: int
        password_encoder_key_length: int
        password_encoder_keyfactory_algorithm: str | None
        password_encoder_old_secret: Password | None
        password_encoder_secret: Password | None
        port: int
        producer_id_expiration_check_interval_ms: int
        producer_id_expiration_ms: int
        queued_max_request_bytes: int
        quota_window_num: int
        quota_window_size_seconds: int
        replica_fetch_backoff_ms: int
        replica_fetch_max_bytes: int
        replica_fetch_min_bytes: int
        replica_fetch_response_max_bytes: int
        replica_fetch_wait_max_ms: int
        replica_high_watermark_checkpoint_interval_ms: int
        replica_lag_time_max_ms: int
        replica_selector_class: str | None
        replica_socket_timeout_ms: int
        replication_quota_window_num: int
        replication_quota_window_size_seconds: int
        request_timeout_ms: int
        reserved_broker_max_id: int
        sasl_authentication_timeout_ms: int
        sasl_enabled_mechanisms: tuple[str, ...]
        sasl_jaas_config: Password | None
        sasl_mechanism_inter_broker_protocol: str
        sasl_oauthbearer_allow_unverified_audience: bool
        sasl_oauthbearer_allow_unverified_issuer: bool
        sasl_oauthbearer_clock_skew_seconds: int
        sasl_oauthbearer_expected_audience: tuple[str, ...]
        sasl_oauthbearer_expected_issuer: str | None
        sasl_oauthbearer_jwks_endpoint_refresh_ms: int
        sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int
        sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int
        sasl_oauthbearer_jwks_endpoint_url: str | None
        sasl_oauthbearer_jwt_validator_class: str
        sasl_oauthbearer_scope_claim_name: str
        sasl_oauthbearer_sub_claim_name: str
        sasl_server_callback_handler_class: str | None
        sasl_server_max_receive_size: int
        security_inter_broker_protocol: str
        socket_connection_setup_timeout_max_ms: int
        socket_connection_setup_timeout_ms: int
        socket_listen_backlog_size: int
        socket_receive_buffer_bytes: int
        socket_request_max_bytes: int
        socket_send_buffer_bytes: int
        ssl_allow_dn_changes: bool
        ssl_allow_san_changes: bool
        ssl_cipher_suites: tuple[str, ...]
        ssl_client_auth: str
        ssl_enabled_protocols: tuple[str, ...]
        ssl_endpoint_identification_algorithm: str
        ssl_handshake_max_ms: int
        ssl_key_password: Password | None
        ssl_keystore_certificate_chain: Password | None
        ssl_keystore_key: Password | None
        ssl_keystore_location: str | None
        ssl_keystore_password: Password | None
        ssl_keystore_type: str
        ssl_principal_mapping_rules: str
        ssl_truststore_certificates: Password | None
        ssl_truststore_location: str | None
        ssl_truststore_password: Password | None
        ssl_truststore_type: str
        super_users: frozenset[str]
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
        unclean_leader_election_enable: bool
        zookeeper_connect: str | None
        zookeeper_connection_timeout_ms: int | None
        zookeeper_max_in_flight_requests: int
        zookeeper_session_timeout_ms: int
        zookeeper_ssl_cipher_suites: tuple[str, ...] | None
        zookeeper_ssl_client_enable: bool
        zookeeper_ssl_enabled_protocols: tuple[str, ...] | None
        zookeeper_ssl_endpoint_identification_algorithm: str
        zookeeper_ssl_keystore_location: str | None
        zookeeper_ssl_keystore_password: Password | None
        zookeeper_ssl_keystore_type: str | None
        zookeeper_ssl_protocol: str
        zookeeper_ssl_truststore_location: str | None
        zookeeper_ssl_truststore_password: Password | None
        zookeeper_ssl_truststore_type: str | None

    originals: Mapping[str, str]
    """The texts that the operator set, by key."""
    unknown: tuple[str, ...]
    """Names that the operator set and the table does not have: warned of at start (S-CFG-1)."""
    values: Mapping[str, Any]
    """Every key's value by its name, as parsed or defaulted, before units are resolved."""
    inter_broker_listener: str
    """The name of the listener for traffic between brokers."""
    ip_connection_limits: Mapping[str, int]
    """`max.connections.per.ip.overrides`, parsed: by host, or by address once that was found."""

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
            name for name in props if name not in BROKER_KEYS and listener_key(name) is None
        )
        fields["log_dirs"] = log_directories(values)
        fields["cordoned_log_dirs"] = cordoned_directories(values, fields["log_dirs"])
        fields["listeners"], fields["advertised_listeners"] = listener_endpoints(values, props)
        fields["inter_broker_listener"] = inter_broker_listener_name(values, props)
        fields["super_users"] = super_users(values["super.users"])
        fields["ip_connection_limits"] = ip_overrides(values["max.connections.per.ip.overrides"])
        for name, text in props.items():
            of_listener = listener_key(name)
            if of_listener is not None:
                of_listener.parse(text)
        fields["_sasl"] = _sasl(config.listeners, values, props)
        check_values(
            values,
            Endpoints(config.listeners, config.advertised_listeners, config.inter_broker_listener),
            props,
        )
        return config

    @property
    def is_in_memory(self) -> bool:
        """Whether the log directories are memory of this process, which ends with it."""
        return self.log_dirs[0].startswith(IN_MEMORY)

    @property
    def sasl(self) -> "Mapping[str, SaslSettings]":
        """The SASL settings of the listeners that authenticate by SASL, by listener name."""
        settings: Mapping[str, SaslSettings] = self.__dict__["_sasl"]
        return settings

    def with_broker_id(self, broker_id: int) -> "BrokerConfig":
        """Return a copy with the id that was found or generated (S-START-6)."""
        values = {**self.values, "broker.id": broker_id, "node.id": broker_id}
        return self._with(broker_id=broker_id, node_id=broker_id, values=values)

    def with_ip_connection_limits(self, limits: Mapping[str, int]) -> "BrokerConfig":
        """Return a copy with the limits of hosts by their addresses."""
        return self._with(ip_connection_limits=limits)

    def _with(self, **fields: object) -> "BrokerConfig":
        config = BrokerConfig()
        config.__dict__.update(self.__dict__, **fields)
        return config

    def for_listener(self, listener_name: str, key_name: str) -> Any:
        """The value of `listener.name.<name>.<key>`; None if it is not set (S-CFG-6).

        Listener names in keys are in lower case. Raises ConfigError for a bad value.
        """
        text = self.originals.get(f"{LISTENER_PREFIX}{listener_name.lower()}.{key_name}")
        return None if text is None else BROKER_KEYS[key_name].parse(text)

    def of_listener(self, listener_name: str, key_name: str) -> Any:
        """The value that holds for a listener: its own, else that of the key (S-CFG-6)."""
        own = self.for_listener(listener_name, key_name)
        return self.values[key_name] if own is None else own

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a BrokerConfig does not change: {name}")

    def __repr__(self) -> str:
        return f"BrokerConfig(broker_id={self.broker_id}, log_dirs={self.log_dirs})"


def listener_key(name: str) -> ConfigKey | None:
    """The key of `listener.name.<name>[.<SASL mechanism>].<key>`; None if it is not known."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    key_name = name[len(LISTENER_PREFIX) :].partition(".")[2]
    return BROKER_KEYS.get(key_name) or BROKER_KEYS.get(key_name.partition(".")[2])


def _key_name(name: str) -> str:
    """The name of a property's key: without the prefix of a listener."""
    key = listener_key(name)
    return name if key is None else key.name


def _sasl(
    listeners: tuple[Listener, ...], values: Mapping[str, Any], props: Mapping[str, str]
) -> "dict[str, SaslSettings]":
    named = [listener for listener in listeners if listener.protocol.startswith("SASL_")]
    if not named:
        return {}
    from config.sasl_settings import sasl_settings  # most brokers do not need it

    return {listener.name: sasl_settings(listener, values, props) for listener in named}


def load_broker_config(path: str, overrides: Mapping[str, str] | None = None) -> BrokerConfig:
    """Read `server.properties` and apply `--override`s, which win (S-START-1).

    Raises ConfigError, also if the file cannot be read.
    """
    return BrokerConfig.parse(_properties(path, overrides))


def load_for_adoption(
    path: str, overrides: Mapping[str, str], *, in_cluster: bool = False
) -> tuple[BrokerConfig, str | None]:
    """Read a `server.properties` of Kafka; return (config, why a start would refuse it, or None).

    Adoption opens no listener and joins no cluster, so values of those keys that a start would
    refuse are ignored, and so is `zookeeper.connect`: a start with it would not see what was
    adopted. `in_cluster`: it is kept, for who changes the tree that it names and no directory.
    Raises ConfigError for a bad value of any other key.
    """
    props = _properties(path, overrides)
    try:
        config = BrokerConfig.parse(props)
        if config.zookeeper_connect and not in_cluster:
            raise ConfigError.invalid("zookeeper.connect", config.zookeeper_connect, _NOT_HERE)
        return config, None
    except ConfigError as error:
        left_out = _NOT_FOR_ADOPTION - {"zookeeper.connect"} if in_cluster else _NOT_FOR_ADOPTION
        usable = {name: text for name, text in props.items() if _key_name(name) not in left_out}
        if len(usable) == len(props):
            raise
        return BrokerConfig.parse(usable), error.message


def _properties(path: str, overrides: Mapping[str, str] | None) -> dict[str, str]:
    from config.properties import load_properties

    try:
        text = Path(path).read_text("iso-8859-1")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"Cannot read the configuration file {path}: {reason}."
            " Name the broker's server.properties"
        ) from None
    return {**load_properties(text), **(overrides or {})}
