"""Short constructors for the tables of keys; only those tables use them.

`key(…)` is a key that the broker reads. `inert(…)` is one that is known and checked, so that
Kafka's `server.properties` is accepted, but that has no effect in this broker (yet);
DescribeConfigs and docs/configuration.md say so.
"""

from functools import partial
from typing import Any, Final

from config.definition import ConfigKey, ConfigType, Importance, UpdateMode
from config.validators import Validator

BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
SHORT: Final = ConfigType.SHORT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST
CLASS: Final = ConfigType.CLASS
PASSWORD: Final = ConfigType.PASSWORD

HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW

PER_BROKER: Final = UpdateMode.PER_BROKER
CLUSTER_WIDE: Final = UpdateMode.CLUSTER_WIDE

INT_MAX: Final = (1 << 31) - 1
MOST_DECOMPRESSED: Final = INT_MAX - 8
"""Kafka's default for the size of one record: the largest array of its JVM."""
LONG_MAX: Final = (1 << 63) - 1
DOUBLE_MAX: Final = 1.7976931348623157e308


def key(
    name: str,
    kind: ConfigType,
    default: Any,
    importance: Importance,
    doc: str,
    validator: Validator | None = None,
    dynamic: UpdateMode = UpdateMode.READ_ONLY,
    synonyms: tuple[str, ...] = (),
    effective: bool = True,
) -> ConfigKey:
    """A key that the broker reads."""
    return ConfigKey(
        name=name,
        type=kind,
        default=default,
        importance=importance,
        doc=doc,
        validator=validator,
        dynamic=dynamic,
        effective=effective,
        synonyms=synonyms,
    )


inert = partial(key, effective=False)
"""A key that is accepted, checked and described, and changes nothing yet."""


def own(
    name: str, kind: ConfigType, default: Any, doc: str, validator: Validator | None = None
) -> ConfigKey:
    """A key of this broker that Apache Kafka does not have."""
    return ConfigKey(
        name=name,
        type=kind,
        default=default,
        importance=Importance.LOW,
        doc=doc,
        validator=validator,
        own=True,
    )
