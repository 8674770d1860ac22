"""How (Incremental)AlterConfigs changes what a topic sets itself. Pure.

`replacement` and `incremental` make the new configs of a topic from the old; that the result is
valid as a whole is the controller's to check. Raises KafkaError. Source: KIP-339, S-CFG-4.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Final

from broker.api.config_resources import ResourceType, check_broker_name, unsupported
from config.broker_config import BrokerConfig
from config.definition import ConfigError, ConfigType, format_value
from config.topic_config import topic_key
from protocol.errors import ErrorCode, KafkaError

Change = Callable[[Mapping[str, str]], Mapping[str, str | None]]

NO_DYNAMIC_BROKER_CONFIGS: Final = (
    "This broker cannot change its own configs while it runs. Change server.properties and restart."
)


class Operation(IntEnum):
    """What IncrementalAlterConfigs does with one key."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def check_resource(resource_type: int, name: str, broker_id: int) -> None:
    """Only topics can be changed. Raises KafkaError INVALID_REQUEST for everything else."""
    if resource_type == ResourceType.TOPIC:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        return
    if resource_type == ResourceType.BROKER:
        if name:
            check_broker_name(name, broker_id)
        raise KafkaError(ErrorCode.INVALID_REQUEST, NO_DYNAMIC_BROKER_CONFIGS)
    raise unsupported(resource_type)


def _refuse_duplicates_and_nulls(configs: Iterable[Any], *, deletes_allowed: bool) -> None:
    seen: set[str] = set()
    for config in configs:
        if config.name in seen:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys: {config.name}"
            )
        seen.add(config.name)
        deletes = deletes_allowed and config.config_operation == Operation.DELETE
        if config.value is None and not deletes:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config.name}"
            )


def replacement(configs: Iterable[Any]) -> Change:
    """AlterConfigs: what is not named goes back to its default."""
    _refuse_duplicates_and_nulls(configs, deletes_allowed=False)
    wanted = {config.name: config.value for config in configs}
    return lambda old: wanted


def incremental(configs: Iterable[Any], broker: BrokerConfig) -> Change:
    """IncrementalAlterConfigs: set, delete, append to and subtract from lists."""
    _refuse_duplicates_and_nulls(configs, deletes_allowed=True)

    def change(old: Mapping[str, str]) -> Mapping[str, str | None]:
        new: dict[str, str | None] = dict(old)
        for config in configs:
            _apply(new, config, broker)
        return new

    return change


def _apply(new: dict[str, str | None], config: Any, broker: BrokerConfig) -> None:
    match config.config_operation:
        case Operation.SET:
            new[config.name] = config.value
        case Operation.DELETE:
            new.pop(config.name, None)
        case Operation.APPEND | Operation.SUBTRACT:
            new[config.name] = _edit_list(new.get(config.name), config, broker)
        case unknown:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation type {unknown}")


def _edit_list(current: str | None, config: Any, broker: BrokerConfig) -> str:
    operation = Operation(config.config_operation)
    try:
        key = topic_key(config.name)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.message) from error
    if key.type is not ConfigType.LIST:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {operation.name} to key {key.name} because its type is not LIST.",
        )
    if current is None:
        attribute = key.synonyms[0].replace(".", "_") if key.synonyms else ""
        current = format_value(getattr(broker, attribute, key.default))
    items = [item.strip() for item in current.split(",") if item.strip()]
    for item in filter(None, (part.strip() for part in config.value.split(","))):
        if operation is Operation.APPEND and item not in items:
            items.append(item)
        elif operation is Operation.SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)
