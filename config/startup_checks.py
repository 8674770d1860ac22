"""Rules between keys, checked once at start; worded as Kafka's `KafkaConfig.validateValues`.

After Kafka's own rules come the refusals of this broker: a value that asks for protection or for
a cluster that is not there must stop the start, not be ignored.
"""

from typing import TYPE_CHECKING, Any

from config.definition import ConfigError

if TYPE_CHECKING:
    from config.broker_config import BrokerConfig

_MEGABYTE = 1024 * 1024


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def check_values(config: "BrokerConfig", values: dict[str, Any]) -> None:
    """Raises ConfigError for the first rule that is broken."""
    _check_id(config)
    _check_log(config, values)
    _check_replication(values)
    _check_listeners(config)
    _check_connections(config, values)
    _check_supported(config, values)


def _check_id(config: "BrokerConfig") -> None:
    if config.broker_id_generation_enable:
        _require(
            -1 <= config.broker_id <= config.reserved_broker_max_id,
            "broker.id must be greater than or equal to -1 and not greater than "
            "reserved.broker.max.id",
        )
    else:
        _require(config.broker_id >= 0, "broker.id must be greater than or equal to 0")


def _check_log(config: "BrokerConfig", values: dict[str, Any]) -> None:
    _require(config.log_roll_ms >= 1, "log.roll.ms must be greater than or equal to 1")
    _require(
        config.log_roll_jitter_ms >= 0, "log.roll.jitter.ms must be greater than or equal to 0"
    )
    _require(
        config.log_retention_ms >= 1 or config.log_retention_ms == -1,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    )
    threads = values["log.cleaner.threads"]
    _require(
        not threads or values["log.cleaner.dedupe.buffer.size"] // threads > _MEGABYTE,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )
    lags = values["log.cleaner.min.compaction.lag.ms"], config.log_cleaner_max_compaction_lag_ms
    _require(
        lags[0] <= lags[1],
        f"conflict topic config setting min.compaction.lag.ms ({lags[0]}) > "
        f"max.compaction.lag.ms ({lags[1]})",
    )


def _check_replication(values: dict[str, Any]) -> None:
    wait = values["replica.fetch.wait.max.ms"]
    _require(
        wait <= values["replica.socket.timeout.ms"],
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent "
        "unnecessary socket timeouts",
    )
    _require(
        wait <= values["replica.lag.time.max.ms"],
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms "
        "to prevent frequent changes in ISR",
    )
    acks = values["offsets.commit.required.acks"]
    _require(
        -1 <= acks <= values["offsets.topic.replication.factor"],
        "offsets.commit.required.acks must be greater or equal -1 and less or equal to "
        "offsets.topic.replication.factor",
    )


def _check_listeners(config: "BrokerConfig") -> None:
    names = [listener.name for listener in config.listeners]
    advertised = [listener.name for listener in config.advertised_listeners] or names
    _require(
        bool(advertised),
        "There must be at least one broker advertised listener. Perhaps all listeners appear in "
        "controller.listener.names?",
    )
    _require(
        config.inter_broker_listener in advertised,
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The "
        f"valid options based on currently configured listeners are {','.join(advertised)}",
    )
    _require(
        set(advertised) <= set(names),
        "advertised.listeners listener names must be equal to or a subset of the ones defined in "
        f"listeners. Found {','.join(advertised)}. The valid options based on the current "
        f"configuration are {','.join(names)}",
    )
    _require(
        all(listener.host != "0.0.0.0" for listener in config.advertised_listeners),
        "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP "
        "address.",
    )


def _check_connections(config: "BrokerConfig", values: dict[str, Any]) -> None:
    _require(
        values["queued.max.request.bytes"] <= 0
        or values["queued.max.request.bytes"] >= config.socket_request_max_bytes,
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    _require(
        config.max_connections_per_ip != 0 or bool(config.max_connections_per_ip_overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
        "property is set.",
    )
    delay, idle = (
        values["connection.failed.authentication.delay.ms"],
        config.connections_max_idle_ms,
    )
    _require(
        idle < 0 or delay < idle,
        f"connection.failed.authentication.delay.ms={delay} should always be less than "
        f"connections.max.idle.ms={idle} to prevent failed authentication responses from timing "
        "out",
    )
    control = values["control.plane.listener.name"]
    if control is not None:
        _require(
            control.upper() in {listener.name for listener in config.listeners},
            "control.plane.listener.name must be a listener name defined in advertised.listeners.",
        )
        _require(
            control.upper() != config.inter_broker_listener,
            "control.plane.listener.name, when defined, should have a different value from the "
            f"inter broker listener name. Currently they both have the value {control}",
        )


def _check_supported(config: "BrokerConfig", values: dict[str, Any]) -> None:
    for name, why in (
        ("zookeeper.connect", "this broker cannot join a cluster yet; leave it out to run alone"),
        ("authorizer.class.name", "this broker has no authorizer yet and would let everyone in"),
        ("remote.log.storage.system.enable", "this broker has no tiered storage"),
    ):
        if values[name]:
            raise ConfigError.invalid(name, values[name], why)
    for listener in config.listeners:
        _require(
            listener.protocol == "PLAINTEXT",
            f"Listener {listener} needs {listener.protocol}, and this broker can open PLAINTEXT "
            "listeners only so far",
        )
