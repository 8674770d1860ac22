"""Configuration keys, and tables of them that parse properties.

A `ConfigTable` is built once from `ConfigKey`s and turns the strings of a properties file into
typed values. Its errors have the words of Kafka's `ConfigException`, because people search for
those sentences. The keys themselves are in `broker_keys` and `topic_keys`.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from config.validators import Validator

HIDDEN: Final = "[hidden]"
"""Shown in place of a password (Kafka's `Password.HIDDEN`)."""

_BLANKS = "".join(map(chr, range(ord(" ") + 1)))
"""The characters that Java's `String.trim` removes."""
_WHOLE = re.compile(r"([+-]?)0*([0-9]{1,19})\Z")
_FRACTION = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?)\Z")
_COMMA = re.compile(r"\s*,\s*", re.ASCII)


class ConfigError(Exception):
    """A configuration that cannot be used; the message is one clear line for the operator."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @classmethod
    def invalid(cls, name: str, value: object, reason: str | None = None) -> "ConfigError":
        """Make Kafka's message for a bad value of one key."""
        text = f"Invalid value {format_value(value)} for configuration {name}"
        return cls(f"{text}: {reason}" if reason else text)


class ConfigType(Enum):
    """Types of values, each with its number in DescribeConfigs v3 and later."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9

    @property
    def wire_id(self) -> int:
        """`DescribeConfigsResponse.ConfigType` of the Kafka protocol."""
        return self.value


class Importance(Enum):
    """How likely it is that an operator needs to set the key."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class UpdateMode(Enum):
    """Whether a broker key may change while the broker runs, as Kafka 4.3 documents it."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


@dataclass(frozen=True, slots=True)
class Password:
    """A secret: never shown by `str` or `repr`, so that it cannot end up in a log."""

    value: str

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return HIDDEN


NO_EFFECT = "(No effect in this broker yet.)"
"""The end of a key's documentation in DescribeConfigs, if this broker does not read the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One key of a table."""

    name: str
    type: ConfigType
    default: Any
    importance: Importance
    doc: str
    validator: Validator | None = None
    dynamic: UpdateMode = UpdateMode.READ_ONLY
    effective: bool = True
    """False: the key is known and its value is checked, but nothing in this broker reads it yet."""
    synonyms: tuple[str, ...] = ()
    """Topic keys: the broker keys that give the default, the most specific first."""
    own: bool = False
    """A key of this broker that Apache Kafka does not have."""

    @property
    def attribute(self) -> str:
        """The name in Python: dots become underscores."""
        return self.name.replace(".", "_")

    @property
    def documentation(self) -> str:
        """The documentation for clients, which ends with `NO_EFFECT` if the key has none."""
        return self.doc if self.effective else f"{self.doc} {NO_EFFECT}"

    @property
    def sensitive(self) -> bool:
        """Whether the value is a password, which is never sent to a client or logged."""
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Any:
        """Return the typed and checked value. Raises ConfigError.

        An entry that a list names again is left out (`ConfigDef.ValidList`).
        """
        value = parse_value(self.name, self.type, text)
        if self.type is ConfigType.LIST and not (self.validator and self.validator.keeps_list):
            if not all(value):
                raise ConfigError(f"Configuration '{self.name}' values must not be empty.")
            value = tuple(dict.fromkeys(value))
        self.check(value)
        return value

    def check(self, value: Any) -> None:
        """Apply the validator; None is valid if it is the default. Raises ConfigError."""
        if self.validator is None or (value is None and self.default is None):
            return
        wrong = self.validator.check(value)
        if wrong is not None:
            raise ConfigError.invalid(self.name, value, wrong)


_RANGES = {
    ConfigType.SHORT: (-(1 << 15), (1 << 15) - 1),
    ConfigType.INT: (-(1 << 31), (1 << 31) - 1),
    ConfigType.LONG: (-(1 << 63), (1 << 63) - 1),
}


def parse_value(name: str, kind: ConfigType, text: str) -> Any:
    """Parse `text` as a value of type `kind`, by the rules of Kafka's `ConfigDef.parseType`.

    Raises ConfigError.
    """
    trimmed = text.strip(_BLANKS)
    limits = _RANGES.get(kind)
    if limits is not None:
        if found := _WHOLE.match(trimmed):
            number = int(found[1] + found[2])
            if limits[0] <= number <= limits[1]:
                return number
        raise ConfigError.invalid(name, text, f"Not a number of type {kind.name}")
    if kind is ConfigType.BOOLEAN:
        lowered = trimmed.lower()
        if lowered in ("true", "false"):
            return lowered == "true"
        raise ConfigError.invalid(name, text, "Expected value to be either true or false")
    if kind is ConfigType.LIST:
        return tuple(_COMMA.split(trimmed)) if trimmed else ()
    if kind is ConfigType.PASSWORD:
        return Password(trimmed)
    if kind is ConfigType.DOUBLE:
        if _FRACTION.match(trimmed):
            return float(trimmed.rstrip("dDfF"))
        raise ConfigError.invalid(name, text, "Not a number of type DOUBLE")
    return trimmed


def format_value(value: object) -> str:
    """Return a typed value as text, as Kafka writes it in DescribeConfigs, errors and its docs."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case tuple() | list():
            return ",".join(str(item) for item in value)
        case float():
            return _format_double(value)
        case _:
            return str(value)


def _format_double(value: float) -> str:
    """Return the text of Java's `Double.toString` (19 and later), such as 1.0E-5."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value}".replace("inf", "Infinity")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return f"{Decimal(repr(value)):f}" if value % 1 else f"{value:.1f}"
    shortest = Decimal(repr(value))
    if len(shortest.normalize().as_tuple().digits) == 1:
        shortest = Decimal(f"{value:.1e}")  # the nearest with two digits: 4.9E-324
    digits, _, power = f"{shortest.normalize():e}".partition("e")
    return f"{digits if '.' in digits else digits + '.0'}E{int(power)}"


class ConfigTable:
    """An ordered set of keys."""

    def __init__(self, keys: Iterable[ConfigKey]) -> None:
        self._keys: dict[str, ConfigKey] = {}
        for key in keys:
            if key.name in self._keys:
                raise ValueError(f"configuration key {key.name} is defined twice")
            self._keys[key.name] = key
        self._defaults = {key.name: key.default for key in self._keys.values()}

    def __iter__(self) -> Iterator[ConfigKey]:
        return iter(self._keys.values())

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def get(self, name: str) -> ConfigKey | None:
        """The key called `name`; None if the table does not have it."""
        return self._keys.get(name)

    def parse(self, props: Mapping[str, str]) -> dict[str, Any]:
        """Return every key's value, in the table's order: that of `props`, else the default.

        Ignores unknown names in `props`. Raises ConfigError for the first bad value.
        """
        values = self._defaults.copy()
        for name, text in props.items():
            key = self._keys.get(name)
            if key is not None:
                values[name] = key.parse(text)
        return values
