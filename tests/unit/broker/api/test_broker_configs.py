"""Configs of brokers while they run, and levels of their loggers, through the handlers."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.api.alter_configs import AlterConfigsHandler
from broker.cluster.topic_plan import NewTopic
from config.broker_keys import BROKER_KEYS
from config.definition import NO_EFFECT
from config.topic_keys import TOPIC_KEYS
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages import alter_configs as alter_messages
from tests.support.api_calls import acall
from tests.support.cluster_fakes import Cluster, start_cluster
from tests.unit.broker.api.test_configs import (
    APPEND,
    BROKER,
    DELETE,
    LOGGER,
    SET,
    SUBTRACT,
    TOPIC,
    by_name,
    describe,
    incremental,
    owners,
)

STATIC, DEFAULT = 4, 5
DYNAMIC_BROKER, DYNAMIC_DEFAULT = 2, 3
BAD = ErrorCode.INVALID_REQUEST


async def alter(
    cluster: Cluster,
    *changes: tuple[int, str, str | None],
    broker: str = "0",
    validate_only: bool = False,
) -> tuple[int, str | None]:
    return await incremental(
        cluster, *changes, kind=BROKER, name=broker, validate_only=validate_only
    )


async def test_s_cfg_2_sources_of_a_broker_config() -> None:
    cluster = await start_cluster(max_connections="100")

    async def seen() -> tuple[str, int, list[tuple[str, int]]]:
        found = by_name(await describe(cluster, BROKER, "0"))["max.connections"]
        assert not found.read_only
        synonyms = [(synonym.value, synonym.source) for synonym in found.synonyms]
        return found.value, found.config_source, synonyms

    below = [("100", STATIC), ("2147483647", DEFAULT)]
    assert await seen() == ("100", STATIC, below)
    assert await alter(cluster, (SET, "max.connections", "200"), broker="") == (0, None)
    assert await seen() == ("200", DYNAMIC_DEFAULT, [("200", DYNAMIC_DEFAULT), *below])
    assert await alter(cluster, (SET, "max.connections", "300")) == (0, None)
    both = [("300", DYNAMIC_BROKER), ("200", DYNAMIC_DEFAULT), *below]
    assert await seen() == ("300", DYNAMIC_BROKER, both)
    assert cluster.configs.current.max_connections == 300
    assert await alter(cluster, (DELETE, "max.connections", None), broker="") == (0, None)
    assert await alter(cluster, (DELETE, "max.connections", None)) == (0, None)
    assert await seen() == ("100", STATIC, below)


async def test_what_is_set_for_the_cluster_is_described_alone(cluster: Cluster) -> None:
    assert by_name(await describe(cluster, BROKER, "")) == {}
    await alter(cluster, (SET, "message.max.bytes", "9"), (SET, "own.x", "secret"), broker="")
    await alter(cluster, (SET, "max.connections", "9"))
    found = by_name(await describe(cluster, BROKER, ""))
    assert set(found) == {"message.max.bytes", "own.x"}
    size = found["message.max.bytes"]
    assert (size.value, size.config_source, size.config_type) == ("9", DYNAMIC_DEFAULT, 3)
    assert [s.source for s in size.synonyms] == [DYNAMIC_DEFAULT]
    assert found["own.x"].value is None
    assert found["own.x"].is_sensitive
    mine = by_name(await describe(cluster, BROKER, "0"))["own.x"]
    assert (mine.value, mine.config_source) == (None, DYNAMIC_DEFAULT)


@pytest.mark.parametrize("version", range(5))
async def test_rates_that_only_tools_set_are_shown_and_other_unknown_keys_are_not(
    cluster: Cluster, version: int
) -> None:
    rate, plugin = "leader.replication.throttled.rate", "somebodys.plugin"
    assert await alter(cluster, (SET, rate, "1000"), (SET, plugin, "hush")) == (0, None)
    configs = by_name(await describe(cluster, BROKER, "0", version=version))
    shown = configs[rate]
    assert (shown.value, shown.is_sensitive, shown.read_only) == ("1000", False, False)
    assert (configs[plugin].value, configs[plugin].is_sensitive) == (None, True)
    assert configs[plugin].read_only
    if version >= 1:
        assert shown.config_source == DYNAMIC_BROKER
    if version >= 3:
        assert shown.config_type == 5


async def test_a_limit_of_a_listener_that_is_not_there_is_shown_and_has_no_effect(
    cluster: Cluster,
) -> None:
    here, nowhere = (f"listener.name.{name}.max.connections" for name in ("plaintext", "nowhere"))
    secret = "listener.name.nowhere.ssl.keystore.password"
    for name in (here, nowhere, secret):
        assert await alter(cluster, (SET, name, "5")) == (0, None)
    found = by_name(await describe(cluster, BROKER, "0"))
    assert [(found[name].value, found[name].is_sensitive) for name in (here, nowhere, secret)] == [
        ("5", False),
        ("5", False),
        (None, True),
    ]
    silent = [(found[name].documentation or "").endswith(NO_EFFECT) for name in (here, nowhere)]
    assert silent == [False, True]


async def test_what_has_no_effect_says_so_in_its_documentation_and_nothing_else_does() -> None:
    limit = "listener.name.plaintext.max.connections"
    cluster = await start_cluster(
        quota_window_num="5", my_plugin="x", **{limit.replace(".", "_"): "9"}
    )
    assert await alter(cluster, (SET, "somebodys.plugin", "x"), (SET, limit, "9")) == (0, None)
    await cluster.controller.create_topic(NewTopic(name="t"))

    async def silent(kind: int, name: str) -> set[str]:
        found = by_name(await describe(cluster, kind, name))
        return {n for n, each in found.items() if (each.documentation or "").endswith(NO_EFFECT)}

    inert = {key.name for key in BROKER_KEYS if not key.effective}
    assert "alter.log.dirs.replication.quota.window.num" in inert
    of_broker = await silent(BROKER, "0")
    assert inert | {"my.plugin", "somebodys.plugin"} <= of_broker
    assert of_broker - inert <= {"my.plugin", "somebodys.plugin"}
    assert await silent(TOPIC, "t") == {key.name for key in TOPIC_KEYS if not key.effective}
    assert await alter(cluster, (SET, "cluster.plugin", "x"), broker="") == (0, None)
    assert await silent(BROKER, "") == {"cluster.plugin"}


async def test_topics_follow_the_brokers_defaults() -> None:
    cluster = await start_cluster(log_retention_hours="1")
    await cluster.controller.create_topic(NewTopic(name="t"))
    await cluster.controller.create_topic(NewTopic(name="u", config={"retention.ms": "5"}))
    cluster.log_configs.topics = ["t", "u"]
    assert (await alter(cluster, (SET, "log.retention.ms", "77"), broker=""))[0] == 0
    assert {name: config.retention_ms for name, config in cluster.log_configs.updates} == {
        "t": 77,
        "u": 5,
    }
    retention = by_name(await describe(cluster, TOPIC, "t"))["retention.ms"]
    assert (retention.value, retention.config_source) == ("77", DYNAMIC_DEFAULT)
    assert [(s.name, s.value, s.source) for s in retention.synonyms] == [
        ("log.retention.ms", "77", DYNAMIC_DEFAULT),
        ("log.retention.hours", "1", STATIC),
        ("log.retention.hours", "168", DEFAULT),
    ]
    await cluster.controller.create_topic(NewTopic(name="v"))
    assert cluster.controller.topic_config("v").retention_ms == 77


async def test_configs_set_while_running_hold_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    cluster = await start_cluster(path, log_roll_hours="1")
    await alter(cluster, (SET, "log.roll.ms", "50"), (SET, "num.io.threads", "16"), broker="")
    await alter(cluster, (SET, "log.roll.ms", "60"))
    await cluster.store.close()
    again = await start_cluster(path, log_roll_hours="1")
    config = again.configs.current
    assert (config.log_roll_ms, config.num_io_threads) == (60, 16)
    assert again.controller.topic_config("t").segment_ms == 60
    await again.store.close()
    other = await start_cluster(path, broker_id=1, log_roll_hours="1")
    assert other.configs.current.log_roll_ms == 50, "what was set for broker 0 is its own"
    await other.store.close()


async def test_what_the_store_holds_and_nobody_can_use_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "store")
    cluster = await start_cluster(path)
    await cluster.store.create(
        "/config/brokers/0",
        b'{"version":1,"config":{"broker.id":"7","max.connections":"x","log.roll.ms":"9"}}',
    )
    await cluster.store.close()
    again = await start_cluster(path)
    assert again.configs.layers.broker == {"log.roll.ms": "9"}
    assert again.configs.current.log_roll_ms == 9
    await again.store.close()
    assert "Left out of /config/brokers/0: Cannot update these configs dynamically" in caplog.text
    assert "Invalid value x for configuration max.connections" in caplog.text


async def test_what_cannot_be_changed_on_a_broker(cluster: Cluster) -> None:
    for change, message in (
        (
            (SET, "log.dirs", "/x"),
            "Cannot update these configs dynamically: [log.dirs]",
        ),
        ((SET, "listeners", "PLAINTEXT://:1"), "Cannot update these configs dynamically"),
        ((SET, "max.connections", "x"), "Invalid value x for configuration max.connections"),
        ((SET, "num.io.threads", "99"), "value should not be greater than double"),
        ((SET, "max.connections.per.ip.overrides", "x"), "Invalid value x"),
        ((SET, "max.connections", None), "Null value not supported for : max.connections"),
        ((9, "max.connections", "1"), "Unknown operation type 9"),
    ):
        for broker in ("", "0"):
            code, text = await alter(cluster, change, broker=broker)
            assert code == BAD, (change, text)
            assert text is not None
            assert message in text
    code, text = await alter(cluster, (APPEND, "max.connections", "1"))
    assert (code, "not LIST" in str(text)) == (ErrorCode.INVALID_CONFIG, True)
    code, text = await alter(cluster, (APPEND, "no.such.key", "1"))
    assert code == ErrorCode.INVALID_CONFIG
    for broker in ("1", "x"):
        assert (await alter(cluster, (SET, "max.connections", "5"), broker=broker))[0] == BAD
    good = (SET, "max.connections", "5")
    assert await alter(cluster, good, validate_only=True) == (0, None)
    assert cluster.configs.layers.broker == {}
    assert cluster.configs.layers.cluster == {}


async def test_lists_of_a_broker_grow_and_shrink_from_what_holds(cluster: Cluster) -> None:
    assert (await alter(cluster, (APPEND, "log.cleanup.policy", "compact")))[0] == 0
    assert cluster.configs.current.log_cleanup_policy == ("delete", "compact")
    assert (await alter(cluster, (SUBTRACT, "log.cleanup.policy", "delete")))[0] == 0
    assert cluster.configs.layers.broker == {"log.cleanup.policy": "compact"}


async def test_alter_configs_replaces_what_was_set(cluster: Cluster) -> None:
    await alter(cluster, (SET, "max.connections", "5"), (SET, "message.max.bytes", "6"))
    request = alter_messages.AlterConfigsRequest(
        resources=[
            alter_messages.AlterConfigsResource(
                resource_type=kind,
                resource_name="0",
                configs=[alter_messages.AlterableConfig(name="log.roll.ms", value="8")],
            )
            for kind in (BROKER, LOGGER)
        ],
        validate_only=False,
    )
    handler = AlterConfigsHandler(owners(cluster))
    response = await acall(handler, ApiKey.ALTER_CONFIGS, 2, request)
    assert [result.error_code for result in response.responses] == [0, BAD]
    assert cluster.configs.layers.broker == {"log.roll.ms": "8"}


@pytest.fixture
def some_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("test_broker_configs.room.part")
    yield logger
    for name in ("test_broker_configs.room.part", "test_broker_configs.room"):
        logging.getLogger(name).setLevel(logging.NOTSET)


async def test_levels_of_loggers(cluster: Cluster, some_logger: logging.Logger) -> None:
    name, room = some_logger.name, "test_broker_configs.room"

    async def change(*changes: tuple[int, str, str | None], only_check: bool = False) -> int:
        code, message = await incremental(
            cluster, *changes, kind=LOGGER, name="0", validate_only=only_check
        )
        assert bool(message) is bool(code)
        return code

    before = by_name(await describe(cluster, LOGGER, "0"))
    assert {"root", name, room} <= set(before)
    assert (before[name].config_source, before[name].read_only) == (6, False)
    assert before[name].value == before["root"].value
    assert await change((SET, room, "DEBUG"), only_check=True) == 0
    assert not some_logger.isEnabledFor(logging.DEBUG)
    assert await change((SET, room, "DEBUG")) == 0
    assert some_logger.isEnabledFor(logging.DEBUG)
    assert by_name(await describe(cluster, LOGGER, "0"))[name].value == "DEBUG"
    assert await change((SET, name, "ERROR")) == 0
    assert some_logger.level == logging.ERROR
    assert await change((DELETE, name, None), (DELETE, room, None)) == 0
    assert some_logger.level == logging.NOTSET
    for refused, code in (
        ((SET, "no.such.logger", "INFO"), ErrorCode.INVALID_CONFIG),
        ((SET, name, "LOUD"), ErrorCode.INVALID_CONFIG),
        ((DELETE, "root", None), BAD),
        ((APPEND, name, "INFO"), BAD),
        ((9, name, "INFO"), BAD),
    ):
        assert await change((SET, name, "ERROR"), refused) in (code, BAD)
        assert some_logger.level == logging.NOTSET, "a request changes all or nothing"
