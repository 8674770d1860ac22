"""Which broker configs may change while the broker runs, and which value then applies. Pure.

A value comes from the first of these that sets it (S-CFG-2): the dynamic config of this broker, the
dynamic config of the cluster, `server.properties`, the default. `ConfigLayers` keeps the layers
apart and makes one `BrokerConfig` of them. Synonyms count as one setting across layers: a dynamic
`log.retention.ms` hides `log.retention.hours` of the file.

Some keys that Kafka lets change only per broker may change here too: `cordoned.log.dirs`, a
listener's limits of connections, and its key and trust stores (S-TLS-5). The keys of listeners, the
other keys of TLS, and those of SASL may not, because their change would need new sockets. Names
that the table does not have are accepted, as Kafka accepts them for plug-ins.
After Kafka's `DynamicBrokerConfig` and `DynamicThreadPool`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from config.broker_config import (
    LIMITS_OF_A_LISTENER,
    LISTENER_PREFIX,
    BrokerConfig,
    listener_key,
)
from config.broker_keys import BROKER_KEYS
from config.definition import ConfigError, ConfigKey, ConfigType, Importance, UpdateMode
from config.security_keys import STORE_KEYS
from config.validators import at_least

_FAMILIES: Final = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
)
"""Synonyms among broker keys; the first that is set wins."""

_FAMILY_OF: Final = {names[0]: names for names in _FAMILIES}

OF_ONE_BROKER: Final = frozenset(("cordoned.log.dirs",))
"""Keys that may change while the broker runs, but only for one broker."""

_OF_LISTENERS: Final = frozenset((*LIMITS_OF_A_LISTENER, *STORE_KEYS))
"""Keys that may change with a listener's prefix."""

THREAD_COUNTS: Final = ("num.io.threads", "num.recovery.threads.per.data.dir", "background.threads")

DYNAMIC_ONLY: Final = {
    name: ConfigKey(
        name=name,
        type=ConfigType.LONG,
        default=2**63 - 1,
        importance=Importance.MEDIUM,
        doc=doc,
        validator=at_least(0),
        dynamic=UpdateMode.CLUSTER_WIDE,
        effective=effective,
    )
    for name, effective, doc in (
        (
            "leader.replication.throttled.rate",
            True,
            "Bytes per second for throttled replicas, as leader.",
        ),
        ("follower.replication.throttled.rate", True, "The same, as follower."),
        ("replica.alter.log.dirs.io.max.bytes.per.second", False, "For moves between directories."),
    )
}
"""Keys that only a dynamic config has: tools set them during a move (Kafka's `QuotaConfig`)."""


def broker_synonyms(name: str) -> tuple[str, ...]:
    """All synonyms of a setting, by the first of them; for any other name that name alone."""
    return _FAMILY_OF.get(name, (name,))


def may_change(key: ConfigKey) -> bool:
    """Whether the key may be set while the broker runs."""
    return key.dynamic is UpdateMode.CLUSTER_WIDE or key.name in OF_ONE_BROKER


def check_changeable(props: Mapping[str, str], *, for_cluster: bool = False) -> None:
    """Check a dynamic config. Raises ConfigError for read-only keys and for bad values.

    With `for_cluster`, for the config of all brokers, keys of a single broker are refused too.
    """
    own = [name for name in props if is_of_one_broker(name)] if for_cluster else []
    if own:
        raise ConfigError(f"Cannot update these configs at default cluster level: {', '.join(own)}")
    stores = [name for name in props if name in STORE_KEYS]
    if stores:
        raise ConfigError(
            "These security configs can be dynamically updated only per-listener using the listener"
            f" prefix: [{', '.join(stores)}]"
        )
    fixed = [name for name in props if not _changeable(name)]
    if fixed:
        raise ConfigError(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    for name, text in props.items():
        key = BROKER_KEYS.get(name) or DYNAMIC_ONLY.get(name) or listener_key(name)
        if key is not None:
            key.parse(text)


def _changeable(name: str) -> bool:
    if name.startswith(LISTENER_PREFIX):
        return is_of_one_broker(name)
    key = BROKER_KEYS.get(name)
    return key is None or may_change(key)


def is_of_one_broker(name: str) -> bool:
    """Whether the key may be set while the broker runs, but only for one broker."""
    return name in OF_ONE_BROKER or of_listener(name) in _OF_LISTENERS


def is_password(name: str) -> bool:
    """Whether the key may be set while the broker runs, and its value is a secret."""
    key = listener_key(name)
    return key is not None and key.sensitive and is_of_one_broker(name)


def of_listener(name: str) -> str | None:
    """Return the key of `listener.name.<listener>.<key>`; None for any other name."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    return name[len(LISTENER_PREFIX) :].partition(".")[2]


def stores_of(props: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that are about key and trust stores of listeners."""
    return {name: text for name, text in props.items() if of_listener(name) in STORE_KEYS}


def check_thread_counts(old: BrokerConfig, new: BrokerConfig) -> None:
    """Raise ConfigError if a pool would grow or shrink by more than a factor of two."""
    _check_cleaner_threads(old, new)
    for name in THREAD_COUNTS:
        before, after = old.values[name], new.values[name]
        if after == before:
            continue
        text = f"Dynamic thread count update validation failed for {name}={after}"
        if after < before // 2:
            raise ConfigError(f"{text}, value should be at least half the current value {before}")
        if after > before * 2:
            raise ConfigError(
                f"{text}, value should not be greater than double the current value {before}"
            )


def _check_cleaner_threads(old: BrokerConfig, new: BrokerConfig) -> None:
    """Kafka's `LogCleaner.validateReconfiguration`, which a disabled cleaner does not run."""
    before, after = old.log_cleaner_threads, new.log_cleaner_threads
    if not old.log_cleaner_enable or before == after:
        return
    if after < 1:
        raise ConfigError("Log cleaner threads should be at least 1")
    if after < before // 2:
        raise ConfigError(
            f"Log cleaner threads cannot be reduced to less than half the current value {before}"
        )
    if after > before * 2:
        raise ConfigError(
            "Log cleaner threads cannot be increased to more than double the current value "
            f"{before}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigLayers:
    """The texts of properties, by the layer that sets them."""

    file: Mapping[str, str]
    """`server.properties` with its `--override`s."""
    cluster: Mapping[str, str] = field(default_factory=dict)
    """The dynamic config of all brokers (DYNAMIC_DEFAULT_BROKER_CONFIG)."""
    broker: Mapping[str, str] = field(default_factory=dict)
    """The dynamic config of this broker (DYNAMIC_BROKER_CONFIG)."""

    def with_broker(self, props: Mapping[str, str]) -> "ConfigLayers":
        """Return a copy with another dynamic config of this broker."""
        return replace(self, broker=props)

    def with_cluster(self, props: Mapping[str, str]) -> "ConfigLayers":
        """Return a copy with another dynamic config of the cluster."""
        return replace(self, cluster=props)

    def merged(self) -> dict[str, str]:
        """Return the properties that apply: each layer replaces keys and synonyms below it."""
        props = dict(self.file)
        for layer in (self.cluster, self.broker):
            for name in layer:
                for synonym in _hidden_by(name):
                    props.pop(synonym, None)
            props.update(layer)
        return props

    def config(self, broker_id: int) -> BrokerConfig:
        """Return the configuration that applies. Raises ConfigError."""
        return BrokerConfig.parse(self.merged()).with_broker_id(broker_id)


def _hidden_by(name: str) -> Iterable[str]:
    return next((family for family in _FAMILIES if name in family), (name,))
