"""Settings as brokers describe them (DescribeConfigs), and their changes (IncrementalAlterConfigs).

The protocol has no field for "this setting has no effect". This project's broker says so at the end
of a setting's documentation (`config.definition.NO_EFFECT`); other brokers never do.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from config.definition import NO_EFFECT
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tools.link import Link
from tools.wire.brokers import Brokers
from tools.wire.refusals import require_done

SETTLED_S: Final = 2.0
"""How long to wait until a broker shows a change that another one accepted."""
PAUSE_S: Final = 0.05


class Kind(IntEnum):
    """Kinds of entities that have settings, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    LOGGERS = 8


class Source(IntEnum):
    """The source of a value, by Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC = 2
    DYNAMIC_DEFAULT = 3
    STATIC = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8

    @property
    def words(self) -> str:
        """The source's name for people."""
        return _WORDS.get(self, self.name.lower().replace("_", " "))


_WORDS: Final = {
    Source.DYNAMIC: "broker, dynamic",
    Source.DYNAMIC_DEFAULT: "cluster, dynamic",
    Source.STATIC: "server.properties",
}

OWN: Final = {
    Kind.TOPIC: (Source.TOPIC,),
    Kind.BROKER: (Source.DYNAMIC, Source.DYNAMIC_DEFAULT),
    Kind.LOGGERS: (Source.LOGGER,),
}
"""Sources of values that were set dynamically on an entity of a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A topic, a broker, or a broker's loggers; the empty broker name stands for all brokers."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of an entity."""

    name: str
    value: str | None
    """None if it has no value, or the value is secret."""
    source: Source
    default: str | None
    """The value that applies if nothing is set; None if the broker does not say."""
    places: tuple[tuple[str, str, str | None], ...]
    """(source, name, value) of everything that sets it; the first wins."""
    read_only: bool
    sensitive: bool
    documentation: str | None

    @property
    def without_effect(self) -> bool:
        """Whether the broker says that the setting has no effect."""
        return self.documentation is not None and self.documentation.endswith(NO_EFFECT)

    @property
    def changed(self) -> bool:
        """Whether it was set in any place."""
        return self.source not in (Source.DEFAULT, Source.UNKNOWN)


def describe(cluster: Brokers, entity: Entity) -> list[Setting]:
    """Return all settings of an entity, sorted by name. Raises CommandError."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=entity.kind, resource_name=entity.name, configuration_keys=None
            )
        ],
        include_synonyms=True,
        include_documentation=True,
    )
    answer = _link(cluster, entity).call(request, DescribeConfigsResponse, least=1)
    for result in answer.results:
        require_done(result.error_code, result.error_message)
    return sorted(
        (_setting(told) for result in answer.results for told in result.configs),
        key=lambda setting: setting.name,
    )


def change(
    cluster: Brokers,
    entity: Entity,
    add: Mapping[str, str],
    delete: Sequence[str],
    *,
    validate_only: bool,
) -> None:
    """Set and delete, all or nothing. Raises CommandError with the broker's message."""
    configs = [AlterableConfig(name=k, config_operation=0, value=v) for k, v in add.items()]
    configs += [AlterableConfig(name=k, config_operation=1, value=None) for k in delete]
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=entity.kind, resource_name=entity.name, configs=configs
            )
        ],
        validate_only=validate_only,
    )
    answer = _link(cluster, entity).call(request, IncrementalAlterConfigsResponse)
    for result in answer.responses:
        require_done(result.error_code, result.error_message)


def describe_settled(
    cluster: Brokers, entity: Entity, add: Mapping[str, str], delete: Sequence[str]
) -> list[Setting]:
    """Describe an entity after a change, once its broker shows it: brokers learn of it later."""
    deadline = time.monotonic() + SETTLED_S
    while True:
        found = describe(cluster, entity)
        own = {each.name: each.value for each in found if each.source in OWN[entity.kind]}
        settled = all(name in own for name in add) and (
            entity.kind is Kind.LOGGERS or not any(name in own for name in delete)
        )
        if settled or time.monotonic() > deadline:
            return found
        time.sleep(PAUSE_S)


def _link(cluster: Brokers, entity: Entity) -> Link:
    """Return the broker to ask: a broker's own settings only it knows."""
    if entity.kind is Kind.TOPIC or not entity.name:
        return cluster.any()
    return cluster.broker(int(entity.name))


def _unit(name: str) -> str:
    """Return a setting's time unit: `log.retention.hours` is a synonym of `retention.ms`, but the
    numbers differ."""
    last = name.rpartition(".")[2]
    return last if last in ("ms", "minutes", "hours") else ""


def _setting(told: DescribeConfigsResourceResult) -> Setting:
    synonyms = [(Source(each.source), each.name, each.value) for each in told.synonyms]
    defaults = [
        value
        for source, name, value in synonyms
        if source is Source.DEFAULT and _unit(name) == _unit(told.name)
    ]
    source = Source(max(told.config_source, 0))
    if source is Source.DEFAULT and not synonyms:
        defaults = [told.value]
    return Setting(
        name=told.name,
        value=told.value,
        source=source,
        default=defaults[0] if defaults else None,
        places=tuple((source.words, name, value) for source, name, value in synonyms),
        read_only=told.read_only,
        sensitive=told.is_sensitive,
        documentation=told.documentation,
    )
