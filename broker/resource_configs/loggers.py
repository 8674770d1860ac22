"""The changes of loggers by IncrementalAlterConfigs (KIP-412).

All changes of a resource are checked before the first is made.
"""

import logging
from collections.abc import Sequence

from broker.resource_configs import log_levels
from broker.resource_configs.resources import AlterConfigOp
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.incremental_alter_configs import AlterableConfig

logger = logging.getLogger(__name__)


def alter_loggers(configs: Sequence[AlterableConfig], *, validate_only: bool) -> None:
    """Set and unset levels of loggers. Raises KafkaError, before anything changes."""
    for config in configs:
        _check(config.name, config.config_operation, config.value)
    if validate_only:
        return
    for config in configs:
        if config.config_operation == AlterConfigOp.SET:
            assert config.value is not None  # checked
            log_levels.set_level(config.name, config.value)
            logger.warning("Updated the log level of %s to %s", config.name, config.value)
        else:
            log_levels.unset_level(config.name)
            logger.warning("Unset the log level of %s", config.name)


def _check(name: str, operation: int, level: str | None) -> None:
    if operation not in (AlterConfigOp.SET, AlterConfigOp.DELETE):
        known = operation in tuple(AlterConfigOp)
        what = AlterConfigOp(operation).name if known else f"Unknown operation type {operation}"
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{what} operation is not allowed for the BROKER_LOGGER resource",
        )
    if not log_levels.exists(name):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == AlterConfigOp.SET and level not in log_levels.LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(log_levels.LEVELS))}",
        )
    if operation == AlterConfigOp.DELETE and name == log_levels.ROOT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
        )
