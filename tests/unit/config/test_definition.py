import math
from dataclasses import replace

import pytest

from config.broker_keys import BROKER_KEYS
from config.definition import (
    ConfigError,
    ConfigKey,
    ConfigTable,
    ConfigType,
    Importance,
    Password,
    format_value,
    parse_value,
)
from config.topic_keys import REPLICA_LIST, TOPIC_KEYS
from config.validators import at_least, between, gzip_level, list_of, one_of


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.INT, " 42 ", 42),
        (ConfigType.INT, "-1", -1),
        (ConfigType.INT, "+7", 7),
        (ConfigType.INT, "-" + "0" * 5000 + "5", -5),
        (ConfigType.LONG, "9223372036854775807", 9223372036854775807),
        (ConfigType.SHORT, "-32768", -32768),
        (ConfigType.BOOLEAN, "TRUE", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.DOUBLE, "0.5", 0.5),
        (ConfigType.DOUBLE, "1.7976931348623157E308", 1.7976931348623157e308),
        (ConfigType.DOUBLE, "3", 3.0),
        (ConfigType.LIST, "a , b,c", ("a", "b", "c")),
        (ConfigType.LIST, "", ()),
        (ConfigType.STRING, " x y ", "x y"),
        (ConfigType.CLASS, "a.B", "a.B"),
        (ConfigType.PASSWORD, "s3cret", Password("s3cret")),
    ],
)
def test_values_are_parsed_by_type(kind: ConfigType, text: str, value: object) -> None:
    assert parse_value("k", kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (ConfigType.INT, "abc", "Not a number of type INT"),
        (ConfigType.INT, "2147483648", "Not a number of type INT"),
        (ConfigType.INT, "١", "Not a number of type INT"),
        (ConfigType.SHORT, "40000", "Not a number of type SHORT"),
        (ConfigType.LONG, "1_000", "Not a number of type LONG"),
        (ConfigType.LONG, "9" * 20, "Not a number of type LONG"),
        (ConfigType.LONG, "9" * 5000, "Not a number of type LONG"),
        (ConfigType.DOUBLE, "1,5", "Not a number of type DOUBLE"),
        (ConfigType.BOOLEAN, "yes", "Expected value to be either true or false"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_bad_values_are_worded_as_kafka_words_them(
    kind: ConfigType, text: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_value("k", kind, text)
    message = f"Invalid value {text} for configuration k: {reason}"
    assert caught.value.message == str(caught.value) == message


def test_passwords_never_show() -> None:
    secret = Password("s3cret")
    assert "s3cret" not in f"{secret} {secret!r} {format_value(secret)}"
    with pytest.raises(ConfigError) as caught:
        raise ConfigError.invalid("k", secret)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("validator", "good", "bad", "reason"),
    [
        (at_least(1), 1, 0, "Value must be at least 1"),
        (at_least(1), 2, None, "Value must be non-null"),
        (between(0, 1), 0.5, 1.5, "Value must be no more than 1"),
        (between(0, 1), 0, -1, "Value must be at least 0"),
        (between(0, 1), 1, None, "Value must be non-null"),
        (one_of("a", "b"), "a", "A", "String must be one of: a, b"),
        (one_of("A", ignore_case=True), "a", "b", "String must be one of (case insensitive): A"),
        (list_of("a", "b"), ("a",), ("c",), "String must be one of: a, b"),
        (gzip_level(), -1, 0, "Value must be between 1 and 9 or equal to -1"),
        (gzip_level(), 9, 10, "Value must be between 1 and 9 or equal to -1"),
    ],
)
def test_validators(validator, good, bad, reason) -> None:
    assert validator.check(good) is None
    assert validator.check(bad) == reason


def test_null_is_valid_where_it_is_the_default() -> None:
    def limit(default: int | None) -> ConfigKey:
        return replace(TOPIC_KEYS["min.insync.replicas"], default=default, validator=at_least(1))

    limit(None).check(None)
    with pytest.raises(ConfigError, match="non-null"):
        limit(5).check(None)
    for key in (limit(None), limit(5)):
        key.check(1)
        with pytest.raises(ConfigError, match="at least 1"):
            key.check(0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (("a", "b"), "a,b"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e-5, "1.0E-5"),
        (1.25e-4, "1.25E-4"),
        (0.00099999, "9.9999E-4"),
        (0.001, "0.001"),
        (-0.002, "-0.002"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1e6, "1000000.0"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-1e10, "-1.0E10"),
        (2e23, "2.0E23"),
        (5e-324, "4.9E-324"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (9223372036854775807, "9223372036854775807"),
    ],
)
def test_values_are_written_as_java_writes_them(value: object, text: str) -> None:
    assert format_value(value) == text


@pytest.mark.parametrize("key", [*TOPIC_KEYS, *BROKER_KEYS], ids=lambda key: key.name)
def test_a_list_has_each_entry_once_and_none_that_is_empty(key: ConfigKey) -> None:
    """As Kafka 4.4's `ConfigDef.ValidList`; it checks replicas to throttle as they are written."""
    if key.type is not ConfigType.LIST or key.validator is REPLICA_LIST:
        return
    entry = "classic" if "protocols" in key.name else str((key.default or ("x",))[0])
    if key.name == "process.roles":
        entry = "broker"
    assert key.parse(f" {entry} ,{entry}") == (entry,)
    for empty in (f"{entry},", f",{entry}", f"{entry},,{entry}", ","):
        with pytest.raises(ConfigError, match=f"^Configuration '{key.name}' values must not be"):
            key.parse(empty)


def test_replicas_to_throttle_are_kept_as_they_are_written() -> None:
    key = TOPIC_KEYS["leader.replication.throttled.replicas"]
    assert key.parse("0:1,0:1") == ("0:1", "0:1")


def test_blanks_are_those_of_java() -> None:
    assert parse_value("k", ConfigType.INT, "\x00\x1f 5\t") == 5
    with pytest.raises(ConfigError):
        parse_value("k", ConfigType.INT, "\u00a05")
    assert parse_value("k", ConfigType.LIST, "a \t,b\u3000,c") == ("a", "b\u3000", "c")


def test_a_double_may_be_no_number_as_in_java() -> None:
    ratio = TOPIC_KEYS["min.cleanable.dirty.ratio"]
    assert math.isnan(ratio.parse("NaN"))
    assert parse_value("k", ConfigType.DOUBLE, "-Infinity") == -math.inf
    assert parse_value("k", ConfigType.DOUBLE, "1e400") == math.inf
    for text in ("nan", "inf", "Infinityd", "1e"):
        with pytest.raises(ConfigError, match="Not a number of type DOUBLE"):
            parse_value("k", ConfigType.DOUBLE, text)


def test_a_table_has_each_key_once() -> None:
    key = ConfigKey(name="a.b", type=ConfigType.INT, default=1, importance=Importance.LOW, doc="d")
    assert key.attribute == "a_b"
    table = ConfigTable([key])
    assert table.parse({}) == {"a.b": 1}
    assert table.parse({"a.b": "2", "other": "x"}) == {"a.b": 2}
    assert table.get("other") is None
    assert len(table) == 1
    with pytest.raises(ValueError, match="twice"):
        ConfigTable([key, key])
