"""What DescribeConfigs (and CreateTopics v5+) says of a config: value, source, synonyms.

A value comes from the first of these that sets it (S-CFG-2): the topic; the broker while it runs,
for itself or for the cluster (not supported yet, so never a source); `server.properties`; the
default. The synonyms of an entry list all that set it, in that order. Pure.
Sources: Kafka's `ConfigHelper`, `DescribeConfigsResponse.ConfigSource`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

from config.broker_config import BrokerConfig
from config.broker_keys import BROKER_KEYS
from config.definition import ConfigKey, ConfigType, format_value
from config.topic_config import TopicConfig
from config.topic_keys import TOPIC_KEYS


class ConfigSource(IntEnum):
    """Where a value comes from."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class Synonym(NamedTuple):
    """One place that sets the value, perhaps under another name."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One config of one resource."""

    name: str
    value: str | None
    """None for passwords and for what has no value."""
    source: ConfigSource
    synonyms: tuple[Synonym, ...]
    type: ConfigType | None
    """None: the key is not in the table, its type is not known."""
    read_only: bool
    sensitive: bool
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """For DescribeConfigs v0."""
        return self.source is ConfigSource.DEFAULT_CONFIG


_FAMILIES: Final = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
)
"""Broker keys that stand in for one another, the first that is set winning."""

_FAMILY_OF: Final = {names[0]: names for names in _FAMILIES}
_TIMESTAMP_LIMITS: Final = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")


def topic_entries(own: Mapping[str, str], broker: BrokerConfig) -> list[ConfigEntry]:
    """Every topic config, by name (S-CFG-3). `own` is what the topic sets itself.

    Raises ConfigError when `own` is not valid.
    """
    limits = TopicConfig.from_broker(broker, own)
    return [_topic_entry(key, own, broker, limits) for key in TOPIC_KEYS]


def _topic_entry(
    key: ConfigKey, own: Mapping[str, str], broker: BrokerConfig, limits: TopicConfig
) -> ConfigEntry:
    value: Any
    if key.name in own:
        value = key.parse(own[key.name])
    elif key.name in _TIMESTAMP_LIMITS:
        value = getattr(limits, key.attribute)
    elif key.synonyms:
        value = getattr(broker, key.synonyms[0].replace(".", "_"))
    else:
        value = key.default
    text = None if value is None else format_value(value)
    synonyms = _broker_synonyms(key.synonyms, broker) if key.synonyms else ()
    if key.name in own:
        synonyms = (Synonym(key.name, text, ConfigSource.TOPIC_CONFIG), *synonyms)
    return ConfigEntry(
        name=key.name,
        value=text,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        synonyms=synonyms,
        type=key.type,
        read_only=False,
        sensitive=key.sensitive,
        documentation=key.doc,
    )


def broker_entries(broker: BrokerConfig) -> list[ConfigEntry]:
    """Every broker config, and what the operator set beyond the table (S-CFG-3).

    All are read-only: this broker cannot change them while it runs. Keys that the table does not
    know may hold secrets of a plug-in, so their values are not shown.
    """
    entries = [_broker_entry(key, broker) for key in BROKER_KEYS]
    entries += [
        ConfigEntry(
            name=name,
            value=None,
            source=ConfigSource.STATIC_BROKER_CONFIG,
            synonyms=(Synonym(name, None, ConfigSource.STATIC_BROKER_CONFIG),),
            type=None,
            read_only=True,
            sensitive=True,
            documentation=None,
        )
        for name in broker.originals
        if name not in BROKER_KEYS
    ]
    return sorted(entries, key=lambda entry: entry.name)


def _broker_entry(key: ConfigKey, broker: BrokerConfig) -> ConfigEntry:
    value = broker.values[key.name]
    synonyms = _broker_synonyms(_FAMILY_OF.get(key.name, (key.name,)), broker)
    return ConfigEntry(
        name=key.name,
        value=None if value is None or key.sensitive else format_value(value),
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        synonyms=synonyms,
        type=key.type,
        read_only=True,
        sensitive=key.sensitive,
        documentation=key.doc if key.effective else f"{key.doc} (No effect in this broker yet.)",
    )


def _broker_synonyms(names: Iterable[str], broker: BrokerConfig) -> tuple[Synonym, ...]:
    """What `server.properties` sets of `names`, then what has a default."""
    keys = [BROKER_KEYS[name] for name in names]
    fixed = [
        Synonym(key.name, _shown(key, broker.values[key.name]), ConfigSource.STATIC_BROKER_CONFIG)
        for key in keys
        if key.name in broker.originals
    ]
    defaults = [
        Synonym(key.name, _shown(key, key.default), ConfigSource.DEFAULT_CONFIG)
        for key in keys
        if key.default is not None
    ]
    return (*fixed, *defaults)


def _shown(key: ConfigKey, value: Any) -> str | None:
    return None if value is None or key.sensitive else format_value(value)
