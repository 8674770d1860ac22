"""Keys without effect are named, and mistyped keys with the nearest known one."""

import pytest

from config.broker_config import BrokerConfig
from config.definition import ConfigError
from config.effects import unknown_names, without_effect


def test_known_keys_that_do_nothing_are_named_when_they_are_set() -> None:
    config = BrokerConfig.parse({
        "metric.reporters": "org.example.Reporter",
        "quota.producer.default": "1000",
        "log.cleaner.threads": "2",
        "log.dir.failure.timeout.ms": "2",
        "num.network.threads": "3",
        "listener.name.plaintext.ssl.keystore.location": "/k",
        "listener.name.nobody.max.connections": "3",
        "listener.name.plaintext.max.connections": "3",
        "listener.name.plaintext.max.connection.creation.rate": "3",
        "log.retention.ms": "5",
        "no.such.key": "x",
    })  # fmt: skip
    assert without_effect(config) == [
        "listener.name.nobody.max.connections",
        "listener.name.plaintext.ssl.keystore.location",
        "log.dir.failure.timeout.ms",
        "metric.reporters",
        "num.network.threads",
        "quota.producer.default",
    ]
    assert without_effect(BrokerConfig.parse({})) == []


def test_keys_of_tls_have_an_effect_where_tls_is_spoken() -> None:
    keys = {
        "ssl.client.auth": "none",
        "ssl.provider": "x",
        "listener.name.a.ssl.keystore.location": "/k",
        "listener.name.a.ssl.provider": "x",
        "listener.name.b.ssl.keystore.location": "/k",
    }
    names = {"listener.security.protocol.map": "A:SSL,B:PLAINTEXT", "listeners": "A://:1,B://:2"}
    encrypted = {**names, "inter.broker.listener.name": "A"}
    plain = {**encrypted, "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}
    assert without_effect(BrokerConfig.parse({**keys, **encrypted})) == [
        "listener.name.a.ssl.provider",
        "listener.name.b.ssl.keystore.location",
        "ssl.provider",
    ]
    assert without_effect(BrokerConfig.parse({**keys, **plain})) == sorted(keys)


def test_an_unknown_key_is_told_with_the_nearest_known_one() -> None:
    config = BrokerConfig.parse({
        "num.partitons": "3",
        "log.retention.mss": "3",
        "retention.ms": "3",
        "zzz": "1",
    })  # fmt: skip
    assert unknown_names(config) == [
        "log.retention.mss (did you mean log.retention.ms?)",
        "num.partitons (did you mean num.partitions?)",
        "retention.ms (a topic's config: log.retention.ms)",
        "zzz",
    ]


def test_a_bad_value_of_a_listener_is_refused() -> None:
    with pytest.raises(ConfigError, match="Not a number of type INT"):
        BrokerConfig.parse({"listener.name.plaintext.max.connections": "many"})


@pytest.mark.parametrize(
    ("value", "cordoned"),
    [
        ("", ()),
        ("/b", ("/b",)),
        ("/b , /a/", ("/a", "/b")),
        ("*", ("/a", "/b")),
    ],
)
def test_cordoned_directories_are_some_of_log_dirs(value: str, cordoned: tuple[str, ...]) -> None:
    config = BrokerConfig.parse({"log.dirs": "/a/,/b", "cordoned.log.dirs": value})
    assert config.cordoned_log_dirs == cordoned


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("/a,", "Configuration 'cordoned.log.dirs' values must not be empty."),
        ("*,/a", "When cordoned.log.dirs is set to \\*, it must not contain other values"),
        ("/x,/a,/y", "must be present in log.dirs or log.dir. Missing entries : /x, /y"),
    ],
)
def test_other_directories_cannot_be_cordoned(value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig.parse({"log.dirs": "/a,/b", "cordoned.log.dirs": value})
