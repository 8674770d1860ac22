"""The settings that may change while the broker runs, and the values that hold then."""

import pytest

from config.broker_config import BrokerConfig
from config.broker_keys import BROKER_KEYS
from config.definition import ConfigError, UpdateMode
from config.dynamic import OF_ONE_BROKER, ConfigLayers, check_changeable, check_thread_counts
from config.security_keys import STORE_KEYS


def test_s_cfg_2_the_broker_goes_before_the_cluster_before_the_file() -> None:
    layers = ConfigLayers(file={"message.max.bytes": "1", "num.partitions": "7"})
    assert layers.config(3).message_max_bytes == 1
    layers = layers.with_cluster({"message.max.bytes": "2", "max.connections": "9"})
    assert layers.config(3).message_max_bytes == 2
    layers = layers.with_broker({"message.max.bytes": "3"})
    config = layers.config(3)
    assert (config.message_max_bytes, config.max_connections, config.num_partitions) == (3, 9, 7)
    assert config.broker_id == 3
    assert layers.with_broker({}).config(3).message_max_bytes == 2


def test_a_synonym_set_while_running_hides_the_one_of_the_file() -> None:
    layers = ConfigLayers(file={"log.roll.ms": "5", "log.retention.hours": "1"})
    assert layers.config(0).log_retention_ms == 3_600_000
    changed = layers.with_cluster({"log.retention.ms": "17"})
    assert changed.config(0).log_retention_ms == 17
    assert changed.config(0).log_roll_ms == 5
    assert changed.with_broker({"log.retention.ms": "-1"}).config(0).log_retention_ms == -1


def test_a_bad_whole_is_refused() -> None:
    with pytest.raises(ConfigError):
        ConfigLayers(file={}, cluster={"max.connections.per.ip.overrides": "x"}).config(0)


@pytest.mark.parametrize("key", BROKER_KEYS, ids=lambda key: key.name)
def test_read_only_keys_cannot_change(key: object) -> None:
    name, mode = key.name, key.dynamic  # type: ignore[attr-defined]
    try:
        check_changeable({name: "1"})
    except ConfigError as error:
        why = (
            "These security configs can be dynamically updated only per-listener using the listener"
            " prefix"
            if name in STORE_KEYS
            else "Cannot update these configs dynamically"
        )
        refused = error.message == f"{why}: [{name}]"
    else:
        refused = False
    assert refused is (mode is not UpdateMode.CLUSTER_WIDE and name not in OF_ONE_BROKER)


@pytest.mark.parametrize(
    "name",
    [
        "cordoned.log.dirs",
        "listener.name.plaintext.max.connections",
        "listener.name.plaintext.max.connection.creation.rate",
        *(f"listener.name.x.{key}" for key in STORE_KEYS),
    ],
)
def test_what_belongs_to_one_broker_is_not_set_for_all(name: str) -> None:
    check_changeable({name: "1"})
    with pytest.raises(ConfigError, match=f"at default cluster level: {name}"):
        check_changeable({name: "1"}, for_cluster=True)


def test_values_are_checked_and_unknown_names_are_taken() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value x for configuration max\.connections"):
        check_changeable({"max.connections": "x"})
    check_changeable({"plugin.of.somebody": "x"})
    check_changeable({"leader.replication.throttled.rate": "0"})
    for rate, why in (("x", "Not a number of type LONG"), ("-1", "Value must be at least 0")):
        with pytest.raises(ConfigError, match=why):
            check_changeable({"leader.replication.throttled.rate": rate})
    with pytest.raises(ConfigError, match=r"\[listener\.name\.internal\.ssl\.client\.auth\]"):
        check_changeable({"listener.name.internal.ssl.client.auth": "none"})
    check_changeable({"listener.name.internal.ssl.keystore.location": "/f"})
    with pytest.raises(ConfigError, match=r"Invalid value x for configuration max\.connections"):
        check_changeable({"listener.name.internal.max.connections": "x"})


@pytest.mark.parametrize(
    ("name", "before", "after", "wrong"),
    [
        ("num.io.threads", "8", "3", "num.io.threads=3, value should.*at least half"),
        ("num.io.threads", "8", "4", None),
        ("num.io.threads", "8", "16", None),
        ("num.io.threads", "8", "17", "num.io.threads=17, value should.*greater than double"),
        ("log.cleaner.threads", "5", "0", "Log cleaner threads should be at least 1"),
        ("log.cleaner.threads", "5", "1", "reduced to less than half the current value 5"),
        ("log.cleaner.threads", "5", "2", None),
        ("log.cleaner.threads", "5", "5", None),
        ("log.cleaner.threads", "5", "10", None),
        ("log.cleaner.threads", "5", "11", "increased to more than double the current value 5"),
    ],
)
def test_s_cmp_1_numbers_of_threads_change_by_a_factor_of_two_at_most(
    name: str, before: str, after: str, wrong: str | None
) -> None:
    old, new = BrokerConfig.parse({name: before}), BrokerConfig.parse({name: after})
    if wrong is None:
        check_thread_counts(old, new)
    else:
        with pytest.raises(ConfigError, match=wrong):
            check_thread_counts(old, new)


@pytest.mark.parametrize("threads", ["0", "1", "11"])
def test_without_a_cleaner_its_threads_may_become_any_number(threads: str) -> None:
    none = BrokerConfig.parse({"log.cleaner.threads": "5", "log.cleaner.enable": "false"})
    check_thread_counts(none, BrokerConfig.parse({"log.cleaner.threads": threads}))
