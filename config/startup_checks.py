"""Rules between keys, with the messages of Kafka's `KafkaConfig.validateValues`.

Besides Kafka's rules there are refusals of this broker's own: a value that asks for a protection
that this broker does not have must stop the start, not be ignored. They are checked
before the rules about listeners: a refused value may break those too, and their message would
mislead.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from config.definition import ConfigError
from config.listener import Listener

_MEGABYTE = 1024 * 1024

AUTHORIZERS: Final = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
"""Kafka's own classes; the authorizer of this broker does what they do."""

_KAFKAS: Final = "org.apache.kafka.common.security."
JAVA_CLASSES: Final = {
    "principal.builder.class": (
        _KAFKAS + "authenticator.DefaultKafkaPrincipalBuilder",
        "clients would have other principals than access rules are written for",
    ),
    "ssl.engine.factory.class": (
        _KAFKAS + "ssl.DefaultSslEngineFactory",
        "TLS would be what the other ssl.… keys say",
    ),
    "security.providers": (None, "clients would be let in, and data encrypted, without them"),
    "client.quota.callback.class": (None, "clients would be limited by other quotas"),
    "create.topic.policy.class.name": (None, "topics would be made that it refuses"),
    "alter.config.policy.class.name": (None, "configs would be changed to what it refuses"),
}
"""Keys that name Java classes which decide who is let in, what is encrypted, what is limited or
what may be made: to Kafka's own class, which this broker stands in for, and what follows without
another one."""
_OF_LISTENERS: Final = ("principal.builder.class", "ssl.engine.factory.class")
"""Those of them that Kafka reads with a listener's prefix, too (its `ChannelBuilders`)."""

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
REPLICA_SELECTORS: Final = (RACK_AWARE, "org.apache.kafka.common.replica.LeaderSelector")
"""Kafka's own classes. The second sends everybody to the leader, as no class does."""

_OF_3_9: Final = re.compile(r"3\.9(-IV0|\..*)?")
"""`MetadataVersion.fromVersionString` reads these as 3.9."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


class Endpoints(NamedTuple):
    """Listeners, parsed and resolved."""

    listeners: tuple[Listener, ...]
    advertised: tuple[Listener, ...]
    inter_broker: str


def check_values(values: dict[str, Any], endpoints: Endpoints, props: Mapping[str, str]) -> None:
    """Check all rules. Raises ConfigError for the first violation.

    `values` have units resolved; `props` are the texts that the operator set.
    """
    _check_id(values)
    _check_log(values)
    _check_replication(values)
    _check_supported(values)
    _check_java_classes(values, endpoints, props)
    _check_listeners(values, endpoints)
    _check_connections(values, endpoints)


def _check_id(values: dict[str, Any]) -> None:
    if values["broker.id.generation.enable"]:
        _require(
            -1 <= values["broker.id"] <= values["reserved.broker.max.id"],
            "broker.id must be greater than or equal to -1 and not greater than "
            "reserved.broker.max.id",
        )
    else:
        _require(values["broker.id"] >= 0, "broker.id must be greater than or equal to 0")


def _check_log(values: dict[str, Any]) -> None:
    _require(values["log.roll.ms"] >= 1, "log.roll.ms must be greater than or equal to 1")
    _require(
        values["log.roll.jitter.ms"] >= 0, "log.roll.jitter.ms must be greater than or equal to 0"
    )
    _require(
        values["log.retention.ms"] >= 1 or values["log.retention.ms"] == -1,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    )
    threads = values["log.cleaner.threads"]
    _require(
        not threads or values["log.cleaner.dedupe.buffer.size"] // threads > _MEGABYTE,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )
    lags = values["log.cleaner.min.compaction.lag.ms"], values["log.cleaner.max.compaction.lag.ms"]
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


def _check_listeners(values: dict[str, Any], endpoints: Endpoints) -> None:
    _require(
        bool(endpoints.listeners),
        "Every listener is a controller's (controller.listener.names): this is the file of a KRaft "
        "controller. This broker needs none; give it a broker's server.properties.",
    )
    names = [listener.name for listener in endpoints.listeners]
    advertised = [listener.name for listener in endpoints.advertised] or names
    _require(
        bool(advertised),
        "There must be at least one broker advertised listener. Perhaps all listeners appear in "
        "controller.listener.names?",
    )
    _require(
        endpoints.inter_broker in advertised,
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The "
        f"valid options based on currently configured listeners are {','.join(advertised)}, and "
        f"not {endpoints.inter_broker}",
    )
    _require(
        set(advertised) <= set(names),
        "advertised.listeners listener names must be equal to or a subset of the ones defined in "
        f"listeners. Found {','.join(advertised)}. The valid options based on the current "
        f"configuration are {','.join(names)}",
    )
    _require(
        all(listener.host != "0.0.0.0" for listener in endpoints.advertised),
        "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP "
        "address.",
    )


def _check_connections(values: dict[str, Any], endpoints: Endpoints) -> None:
    _require(
        values["queued.max.request.bytes"] <= 0
        or values["queued.max.request.bytes"] >= values["socket.request.max.bytes"],
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    _require(
        values["max.connections.per.ip"] != 0 or bool(values["max.connections.per.ip.overrides"]),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
        "property is set.",
    )
    delay, idle = (
        values["connection.failed.authentication.delay.ms"],
        values["connections.max.idle.ms"],
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
            control.upper() in {listener.name for listener in endpoints.listeners},
            "control.plane.listener.name must be a listener name defined in advertised.listeners.",
        )
        _require(
            control.upper() != endpoints.inter_broker,
            "control.plane.listener.name, when defined, should have a different value from the "
            f"inter broker listener name. Currently they both have the value {control}",
        )


def _check_supported(values: dict[str, Any]) -> None:
    if values["remote.log.storage.system.enable"]:
        raise ConfigError.invalid(
            "remote.log.storage.system.enable", True, "this broker has no tiered storage"
        )
    if values["zookeeper.connect"]:
        _check_zookeeper(values)
    _check_authorizer(values)
    _check_replica_selector(values)


def _check_zookeeper(values: dict[str, Any]) -> None:
    from config.zookeeper_connect import parse_connect  # most brokers do not need it

    connect = values["zookeeper.connect"]
    try:
        parse_connect(connect)
    except ValueError as error:
        raise ConfigError.invalid("zookeeper.connect", connect, str(error)) from None
    if values["process.roles"]:
        raise ConfigError.invalid(
            "zookeeper.connect",
            connect,
            "process.roles is of a KRaft cluster, zookeeper.connect of one on ZooKeeper; take one "
            "of them out",
        )
    for name, why in (
        ("zookeeper.set.acl", "this broker leaves ZooKeeper's nodes open to every client of it"),
        (
            "zookeeper.metadata.migration.enable",
            "this broker has no part in a migration to KRaft. End the migration, or go back to "
            "ZooKeeper alone, with brokers of Kafka, and then take the line out",
        ),
        ("zookeeper.ssl.crl.enable", "this broker looks at no revocation lists"),
        ("zookeeper.ssl.ocsp.enable", "this broker asks for no revocation by OCSP"),
    ):
        if values[name]:
            raise ConfigError.invalid(name, True, why)
    version = values["inter.broker.protocol.version"]
    if version is not None and not _OF_3_9.fullmatch(version):
        raise ConfigError.invalid(
            "inter.broker.protocol.version",
            version,
            "this broker speaks the protocol of 3.9 with the others of its cluster. Bring them to "
            "it, as Kafka's notes on upgrades say, and then take the line out",
        )


def _check_authorizer(values: dict[str, Any]) -> None:
    name = values["authorizer.class.name"]
    if name and name not in AUTHORIZERS:
        raise ConfigError.invalid(
            "authorizer.class.name",
            name,
            "this broker runs no Java classes. Its own authorizer goes by the names of Kafka's: "
            + " or ".join(AUTHORIZERS),
        )


def _check_java_classes(
    values: dict[str, Any], endpoints: Endpoints, props: Mapping[str, str]
) -> None:
    for name in JAVA_CLASSES:
        _check_java_class(name, name, values[name])
    for listener in endpoints.listeners:
        for name in _OF_LISTENERS:
            full = f"listener.name.{listener.name.lower()}.{name}"
            if full in props:
                _check_java_class(name, full, props[full].strip())


def _check_java_class(name: str, full: str, value: str | None) -> None:
    kafkas, instead = JAVA_CLASSES[name]
    if value not in (None, "", kafkas):
        raise ConfigError.invalid(
            full,
            value,
            f"this broker runs no Java classes, and without this one {instead}; take the line out"
            " if that will do",
        )


def _check_replica_selector(values: dict[str, Any]) -> None:
    name = values["replica.selector.class"]
    if name and name not in REPLICA_SELECTORS:
        raise ConfigError.invalid(
            "replica.selector.class",
            name,
            f"this broker runs no Java classes. It has Kafka's {RACK_AWARE}; take that, or take "
            "the line out, and consumers read from leaders",
        )
