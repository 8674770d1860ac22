"""How (Incremental)AlterConfigs changes the configs that a resource sets itself. Pure.

`replacement` and `incremental` make the new configs of a resource from the old; the owner of the
resource checks the result as a whole. Raises KafkaError. Source: KIP-339, S-CFG-4.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from broker.cluster.dynamic_broker_config import Change
from broker.resource_configs.resources import AlterConfigOp
from config.broker_config import BrokerConfig
from config.broker_keys import BROKER_KEYS
from config.definition import ConfigError, ConfigKey, ConfigType, format_value
from config.topic_config import topic_key
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_configs import AlterableConfig as ReplacingConfig
from protocol.messages.incremental_alter_configs import AlterableConfig

ListInForce = Callable[[str], str]
"""Name to value in force, of a list that the resource does not set itself. Raises KafkaError
INVALID_CONFIG if the config is not a list."""


def replacement(configs: Iterable[ReplacingConfig]) -> Change:
    """AlterConfigs: a config that is not named goes back to its default."""
    wanted = {config.name: config.value for config in configs}
    return lambda old: wanted


def incremental(configs: Iterable[AlterableConfig], list_in_force: ListInForce) -> Change:
    """IncrementalAlterConfigs: set, delete, append to and subtract from lists."""

    def change(old: Mapping[str, str]) -> Mapping[str, str | None]:
        new: dict[str, str | None] = dict(old)
        for config in configs:
            _apply(new, config, list_in_force)
        return new

    return change


def check_changes(configs: Iterable[ReplacingConfig | AlterableConfig]) -> None:
    """Raises KafkaError INVALID_REQUEST for a key named twice and for a missing value."""
    seen: set[str] = set()
    for config in configs:
        if config.name in seen:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys: {config.name}"
            )
        seen.add(config.name)
        deletes = (
            isinstance(config, AlterableConfig) and config.config_operation == AlterConfigOp.DELETE
        )
        if config.value is None and not deletes:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config.name}"
            )


def topic_list_in_force(broker: BrokerConfig) -> ListInForce:
    """For a topic: the broker's value, which holds where the topic sets none."""

    def value(name: str) -> str:
        try:
            key = topic_key(name)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, error.message) from error
        _require_list(key)
        attribute = key.synonyms[0].replace(".", "_") if key.synonyms else ""
        return format_value(getattr(broker, attribute, key.default))

    return value


def broker_list_in_force(broker: BrokerConfig) -> ListInForce:
    """For a broker: the value in its current configuration."""

    def value(name: str) -> str:
        key = BROKER_KEYS.get(name)
        if key is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown broker config name: {name}")
        _require_list(key)
        return format_value(broker.values[name])

    return value


def _require_list(key: ConfigKey) -> None:
    if key.type is not ConfigType.LIST:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't append to or subtract from key {key.name} because its type is not LIST.",
        )


def _apply(new: dict[str, str | None], config: AlterableConfig, list_in_force: ListInForce) -> None:
    match config.config_operation:
        case AlterConfigOp.SET:
            new[config.name] = config.value
        case AlterConfigOp.DELETE:
            new.pop(config.name, None)
        case AlterConfigOp.APPEND | AlterConfigOp.SUBTRACT:
            in_force = list_in_force(config.name)
            current = new.get(config.name)
            new[config.name] = _edit_list(in_force if current is None else current, config)
        case unknown:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation type {unknown}")


def _edit_list(current: str, config: AlterableConfig) -> str:
    items = [item.strip() for item in current.split(",") if item.strip()]
    named = Counter(filter(None, (part.strip() for part in (config.value or "").split(","))))
    if config.config_operation == AlterConfigOp.APPEND:
        known = set(items)
        items += [item for item in named if item not in known]
        return ",".join(items)
    kept = []
    for item in items:
        if named[item]:
            named[item] -= 1  # SUBTRACT removes the first occurrence only, each time it is named
        else:
            kept.append(item)
    return ",".join(kept)
