"""Which broker configs may change while the broker runs, and what then holds. Pure.

A value comes from the first of these that sets it (S-CFG-2): what was set for this broker, what
was set for the whole cluster, `server.properties`, the default. `ConfigLayers` keeps them apart and
makes one `BrokerConfig` of them. Within a layer's reach synonyms count as one: `log.retention.ms`
set while running hides `log.retention.hours` of the file.

Of what Kafka lets change per broker only, `cordoned.log.dirs` and a listener's `max.connections`
change here as well; listeners, TLS and SASL do not: that would need sockets opened anew. Names that
the table does not know are taken, as Kafka takes them for plug-ins.
After Kafka's `DynamicBrokerConfig` and `DynamicThreadPool`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from config.broker_config import LISTENER_PREFIX, BrokerConfig
from config.broker_keys import BROKER_KEYS
from config.definition import ConfigError, ConfigKey, ConfigType, Importance, UpdateMode
from config.validators import at_least

_FAMILIES: Final = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
)
"""Broker keys that stand in for one another, the first that is set winning."""

_FAMILY_OF: Final = {names[0]: names for names in _FAMILIES}

OF_ONE_BROKER: Final = frozenset(("cordoned.log.dirs",))
"""What may change while the broker runs, for one broker and not for all."""

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
        effective=False,
    )
    for name, doc in (
        (
            "leader.replication.throttled.rate",
            "Bytes per second for throttled replicas, as leader.",
        ),
        ("follower.replication.throttled.rate", "The same, as follower."),
        ("replica.alter.log.dirs.io.max.bytes.per.second", "For moves between directories."),
    )
}
"""Keys that no file has: tools set them for the time of a move (Kafka's `QuotaConfig`)."""


def broker_synonyms(name: str) -> tuple[str, ...]:
    """All names of the setting that `name` is the first name of; itself alone otherwise."""
    return _FAMILY_OF.get(name, (name,))


def may_change(key: ConfigKey) -> bool:
    """Whether the key may be set while the broker runs."""
    return key.dynamic is UpdateMode.CLUSTER_WIDE or key.name in OF_ONE_BROKER


def check_changeable(props: Mapping[str, str], *, for_cluster: bool = False) -> None:
    """Raises ConfigError for keys that are read-only and for values that are not of their type.

    `for_cluster`: set for all brokers, where what belongs to one is refused.
    """
    own = [name for name in props if _is_of_one_broker(name)] if for_cluster else []
    if own:
        raise ConfigError(f"Cannot update these configs at default cluster level: {', '.join(own)}")
    fixed = [name for name in props if not _changeable(name)]
    if fixed:
        raise ConfigError(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    for name, text in props.items():
        key = BROKER_KEYS.get(name) or DYNAMIC_ONLY.get(name)
        if key is not None:
            key.parse(text)


def _changeable(name: str) -> bool:
    if name.startswith(LISTENER_PREFIX):
        return _is_of_one_broker(name)
    key = BROKER_KEYS.get(name)
    return key is None or may_change(key)


def _is_of_one_broker(name: str) -> bool:
    return name in OF_ONE_BROKER or (
        name.startswith(LISTENER_PREFIX)
        and name[len(LISTENER_PREFIX) :].partition(".")[2] == "max.connections"
    )


def check_thread_counts(old: BrokerConfig, new: BrokerConfig) -> None:
    """Pools grow and shrink by at most a factor of two at a time. Raises ConfigError."""
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
    """As Kafka's `LogCleaner.validateReconfiguration`, which nobody asks where there is none."""
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
    """What was set where; the texts of properties."""

    file: Mapping[str, str]
    """`server.properties` with its `--override`s."""
    cluster: Mapping[str, str] = field(default_factory=dict)
    """While running, for all brokers (DYNAMIC_DEFAULT_BROKER_CONFIG)."""
    broker: Mapping[str, str] = field(default_factory=dict)
    """While running, for this broker (DYNAMIC_BROKER_CONFIG)."""

    def with_broker(self, props: Mapping[str, str]) -> "ConfigLayers":
        """The same with other configs of this broker."""
        return replace(self, broker=props)

    def with_cluster(self, props: Mapping[str, str]) -> "ConfigLayers":
        """The same with other configs of the cluster."""
        return replace(self, cluster=props)

    def merged(self) -> dict[str, str]:
        """What holds: each layer over the one below, synonyms hidden."""
        props = dict(self.file)
        for layer in (self.cluster, self.broker):
            for name in layer:
                for synonym in _hidden_by(name):
                    props.pop(synonym, None)
            props.update(layer)
        return props

    def config(self, broker_id: int) -> BrokerConfig:
        """The configuration that holds. Raises ConfigError."""
        return BrokerConfig.parse(self.merged()).with_broker_id(broker_id)


def _hidden_by(name: str) -> Iterable[str]:
    return next((family for family in _FAMILIES if name in family), (name,))
