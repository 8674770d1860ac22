"""A config in the answers of DescribeConfigs and CreateTopics v5+: value, source, synonyms.

A value comes from the first of these that sets it (S-CFG-2): the topic; this broker's dynamic
configs; the cluster's dynamic configs; `server.properties`; the default. The synonyms of an entry
list all places that set it, in that order. Pure.
Sources: Kafka's `ConfigHelper`, `DescribeConfigsResponse.ConfigSource`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, NamedTuple

from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from config.broker_config import listener_key
from config.broker_keys import BROKER_KEYS
from config.definition import NO_EFFECT, ConfigKey, ConfigType, format_value
from config.dynamic import (
    DYNAMIC_ONLY,
    ConfigLayers,
    broker_synonyms,
    is_of_one_broker,
    may_change,
)
from config.effects import without_effect
from config.topic_config import TopicConfig
from config.topic_keys import TOPIC_KEYS


class ConfigSource(IntEnum):
    """The source of a value."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6


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
    """None for passwords and for a config without a value."""
    source: ConfigSource
    synonyms: tuple[Synonym, ...]
    type: ConfigType | None
    """None if the key is not in the table: its type is unknown."""
    read_only: bool
    sensitive: bool
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """Whether the default is in force, which is all that DescribeConfigs v0 answers."""
        return self.source is ConfigSource.DEFAULT_CONFIG


_UNKNOWN: Final = f"Nothing in this broker reads a setting of this name. {NO_EFFECT}"

_TIMESTAMP_LIMITS: Final = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")


def topic_entries(own: Mapping[str, str], configs: DynamicBrokerConfig) -> list[ConfigEntry]:
    """Every topic config (S-CFG-3). `own` holds the configs that the topic sets itself.

    Raises ConfigError when `own` is not valid.
    """
    limits = TopicConfig.from_broker(configs.current, own)
    return [_topic_entry(key, own, configs, limits) for key in TOPIC_KEYS]


def _topic_entry(
    key: ConfigKey, own: Mapping[str, str], configs: DynamicBrokerConfig, limits: TopicConfig
) -> ConfigEntry:
    value: object
    if key.name in own:
        value = key.parse(own[key.name])
    elif key.name in _TIMESTAMP_LIMITS:
        value = getattr(limits, key.attribute)
    elif key.synonyms:
        value = getattr(configs.current, key.synonyms[0].replace(".", "_"))
    else:
        value = key.default
    text = None if value is None else format_value(value)
    synonyms = _broker_synonyms(key.synonyms, configs) if key.synonyms else ()
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
        documentation=key.documentation,
    )


def broker_entries(configs: DynamicBrokerConfig) -> list[ConfigEntry]:
    """Every config of this broker, and set keys that the table does not have (S-CFG-3), by name.

    A key that the table does not have may hold a secret of a plug-in, so its value is not shown.
    """
    entries = [_broker_entry(key, configs) for key in BROKER_KEYS]
    inert = _inert_names(configs)
    entries += [
        _unknown_entry(name, _set_texts(name, configs.layers), inert)
        for name in configs.current.originals
        if name not in BROKER_KEYS
    ]
    return sorted(entries, key=lambda entry: entry.name)


def cluster_entries(configs: DynamicBrokerConfig) -> list[ConfigEntry]:
    """The cluster's dynamic configs, and nothing else."""
    entries = []
    inert = _inert_names(configs)
    for name, text in sorted(configs.layers.cluster.items()):
        key = BROKER_KEYS.get(name)
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        if key is None:
            entries.append(_unknown_entry(name, [(text, source)], inert))
        else:
            shown = _shown(key, text)
            entries.append(_entry(key, shown, (Synonym(name, shown, source),)))
    return entries


def logger_entries(levels: Mapping[str, str]) -> list[ConfigEntry]:
    """An entry for each logger's level (KIP-412)."""
    return [
        ConfigEntry(
            name=name,
            value=level,
            source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
            synonyms=(),
            type=None,
            read_only=False,
            sensitive=False,
            documentation=None,
        )
        for name, level in levels.items()
    ]


def _inert_names(configs: DynamicBrokerConfig) -> frozenset[str]:
    """Names of set keys without effect. A listener's own limits have one, so they are left out."""
    return frozenset((*without_effect(configs.current), *configs.current.unknown))


def _unknown_entry(
    name: str, texts: Sequence[tuple[str, ConfigSource]], inert: Collection[str]
) -> ConfigEntry:
    key = DYNAMIC_ONLY.get(name)
    if key is not None:
        return _entry(key, texts[0][0], tuple(Synonym(name, *text) for text in texts))
    key = listener_key(name)
    if key is not None:
        return _entry(
            replace(key, name=name, effective=key.effective and name not in inert),
            _shown(key, texts[0][0]),
            tuple(Synonym(name, _shown(key, text), source) for text, source in texts),
            read_only=not is_of_one_broker(name),
        )
    return ConfigEntry(
        name=name,
        value=None,
        source=texts[0][1],
        synonyms=tuple(Synonym(name, None, source) for _, source in texts),
        type=None,
        read_only=True,
        sensitive=True,
        documentation=_UNKNOWN if name in inert else None,
    )


def _broker_entry(key: ConfigKey, configs: DynamicBrokerConfig) -> ConfigEntry:
    synonyms = _broker_synonyms(broker_synonyms(key.name), configs)
    return _entry(key, _shown(key, configs.current.values[key.name]), synonyms)


def _entry(
    key: ConfigKey,
    value: str | None,
    synonyms: tuple[Synonym, ...],
    *,
    read_only: bool | None = None,
) -> ConfigEntry:
    return ConfigEntry(
        name=key.name,
        value=value,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        synonyms=synonyms,
        type=key.type,
        read_only=not may_change(key) if read_only is None else read_only,
        sensitive=key.sensitive,
        documentation=key.documentation,
    )


def _set_texts(name: str, layers: ConfigLayers) -> list[tuple[str, ConfigSource]]:
    """Return (text, source) of each layer that sets `name`, the layer that wins first."""
    return [
        (layer[name], source)
        for layer, source in (
            (layers.broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (layers.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (layers.file, ConfigSource.STATIC_BROKER_CONFIG),
        )
        if name in layer
    ]


def _broker_synonyms(names: Iterable[str], configs: DynamicBrokerConfig) -> tuple[Synonym, ...]:
    """The values of `names`: those that a layer sets, layer by layer, then the defaults."""
    keys = [BROKER_KEYS[name] for name in names]
    fixed = [
        (source, Synonym(key.name, _shown(key, key.parse(text)), source))
        for key in keys
        for text, source in _set_texts(key.name, configs.layers)
    ]
    fixed.sort(key=lambda found: found[0])  # stable: within a layer the first name goes first
    defaults = [
        Synonym(key.name, _shown(key, key.default), ConfigSource.DEFAULT_CONFIG)
        for key in keys
        if key.default is not None
    ]
    return (*(synonym for _, synonym in fixed), *defaults)


def _shown(key: ConfigKey, value: object) -> str | None:
    return None if value is None or key.sensitive else format_value(value)
