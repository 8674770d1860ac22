"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs."""

from contextlib import nullcontext
from typing import Any

import pytest

from broker.api import alter_configs, describe_configs, incremental_alter_configs
from broker.api.alter_configs import AlterConfigsHandler
from broker.api.describe_configs import DescribeConfigsHandler
from broker.api.incremental_alter_configs import IncrementalAlterConfigsHandler
from broker.cluster.topic_plan import NewTopic
from broker.resource_configs.alteration import ConfigOwners
from config.broker_keys import BROKER_KEYS
from config.dynamic import may_change
from config.topic_keys import TOPIC_KEYS
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages import alter_configs as alter_messages
from protocol.messages import incremental_alter_configs as incremental_messages
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.support.api_calls import acall, context
from tests.support.cluster_fakes import Cluster, start_cluster

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def owners(cluster: Cluster) -> ConfigOwners:
    return ConfigOwners(cluster.controller, cluster.configs)


async def describe(
    cluster: Cluster,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int = 4,
    synonyms: bool = True,
    documentation: bool = True,
) -> Any:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        ],
    )
    if version >= 1:
        request.include_synonyms = synonyms
    if version >= 3:
        request.include_documentation = documentation
    handler = DescribeConfigsHandler(cluster.image, cluster.configs)
    response = await acall(handler, ApiKey.DESCRIBE_CONFIGS, version, request)
    (result,) = response.results
    return result


def by_name(result: Any) -> dict[str, Any]:
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {config.name: config for config in result.configs}


@pytest.mark.parametrize("version", range(describe_configs.API.versions[1] + 1))
async def test_s_cfg_3_every_topic_config_is_described(version: int) -> None:
    cluster = await start_cluster(log_retention_hours="24")
    await cluster.controller.create_topic(
        NewTopic(name="t", config={"cleanup.policy": "compact,delete"})
    )
    configs = by_name(await describe(cluster, TOPIC, "t", version=version))
    assert set(configs) == {key.name for key in TOPIC_KEYS}
    policy, retention, size = (
        configs[name] for name in ("cleanup.policy", "retention.ms", "segment.bytes")
    )
    assert (policy.value, retention.value, size.value) == (
        "compact,delete",
        "86400000",
        "1073741824",
    )
    assert not policy.read_only
    assert not policy.is_sensitive
    if version == 0:
        assert [c.is_default for c in (policy, retention, size)] == [False, False, True]
    else:
        assert [c.config_source for c in (policy, retention, size)] == [1, 4, 5]
        assert [(s.name, s.value, s.source) for s in policy.synonyms] == [
            ("cleanup.policy", "compact,delete", 1),
            ("log.cleanup.policy", "delete", 5),
        ]
        assert [(s.name, s.value, s.source) for s in retention.synonyms] == [
            ("log.retention.hours", "24", 4),
            ("log.retention.hours", "168", 5),
        ]
    if version >= 3:
        assert (policy.config_type, retention.config_type, size.config_type) == (7, 5, 3)
        assert all(config.documentation for config in configs.values())


@pytest.mark.parametrize("version", range(describe_configs.API.versions[1] + 1))
async def test_s_cfg_3_every_broker_config_is_described(version: int) -> None:
    cluster = await start_cluster(
        broker_id=3, num_io_threads="9", my_plugin_secret="hush", ssl_key_password="hush"
    )
    configs = by_name(await describe(cluster, BROKER, "3", version=version))
    assert set(configs) == {key.name for key in BROKER_KEYS} | {"my.plugin.secret"}
    assert configs["num.io.threads"].value == "9"
    assert configs["broker.id"].value == "3"
    assert configs["log.dirs"].value is None
    for name, config in configs.items():
        known = name in BROKER_KEYS and may_change(BROKER_KEYS[name])
        assert config.read_only is not known
    for name in ("my.plugin.secret", "ssl.key.password"):
        assert configs[name].is_sensitive
        assert configs[name].value is None
    text = repr(list(configs.values()))
    assert "hush" not in text
    if version >= 1:
        assert configs["num.io.threads"].config_source == 4
        assert configs["num.network.threads"].config_source == 5
        assert [s.name for s in configs["log.retention.ms"].synonyms] == ["log.retention.hours"]
    if version >= 3:
        assert configs["my.plugin.secret"].config_type == 0
        assert configs["ssl.key.password"].config_type == 9


async def test_describe_only_what_was_asked_for(cluster: Cluster) -> None:
    await cluster.controller.create_topic(NewTopic(name="t"))
    some = await describe(cluster, TOPIC, "t", ["segment.ms", "no.such"])
    assert list(by_name(some)) == ["segment.ms"]
    everything = await describe(cluster, TOPIC, "t", [], synonyms=False, documentation=False)
    assert len(everything.configs) == len(TOPIC_KEYS)
    assert all(not config.synonyms for config in everything.configs)
    assert all(config.documentation is None for config in everything.configs)


async def test_what_cannot_be_described(cluster: Cluster) -> None:
    for kind, name, code in (
        (TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "b@d", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "7", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "7", ErrorCode.INVALID_REQUEST),
        (16, "m", ErrorCode.INVALID_REQUEST),
        (99, "m", ErrorCode.INVALID_REQUEST),
    ):
        result = await describe(cluster, kind, name)
        assert result.error_code == code, (kind, name)
        assert result.error_message
        assert (result.resource_type, result.resource_name) == (kind, name)
        assert list(result.configs) == []
    assert list((await describe(cluster, BROKER, "")).configs) == []


async def incremental(
    cluster: Cluster,
    *changes: tuple[int, str, str | None],
    name: str = "t",
    kind: int = TOPIC,
    validate_only: bool = False,
    version: int = 1,
) -> tuple[int, str | None]:
    request = incremental_messages.IncrementalAlterConfigsRequest(
        resources=[
            incremental_messages.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental_messages.AlterableConfig(
                        config_operation=operation, name=key, value=value
                    )
                    for operation, key, value in changes
                ],
            )
        ],
        validate_only=validate_only,
    )
    handler = IncrementalAlterConfigsHandler(owners(cluster))
    response = await acall(handler, ApiKey.INCREMENTAL_ALTER_CONFIGS, version, request)
    (result,) = response.responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result.error_code, result.error_message


def own(cluster: Cluster) -> dict[str, str]:
    topic = cluster.image.topic("t")
    assert topic is not None
    return dict(topic.config)


@pytest.mark.parametrize("version", range(incremental_alter_configs.API.versions[1] + 1))
async def test_incremental_changes(cluster: Cluster, version: int) -> None:
    await cluster.controller.create_topic(NewTopic(name="t", config={"retention.ms": "1"}))

    async def change(*changes: tuple[int, str, str | None]) -> int:
        return (await incremental(cluster, *changes, version=version))[0]

    assert await change((SET, "segment.ms", "5"), (DELETE, "retention.ms", None)) == 0
    assert own(cluster) == {"segment.ms": "5"}
    assert await change((APPEND, "cleanup.policy", "compact")) == 0
    assert own(cluster)["cleanup.policy"] == "delete,compact"
    assert await change((APPEND, "cleanup.policy", "compact")) == 0
    assert own(cluster)["cleanup.policy"] == "delete,compact"
    assert await change((SUBTRACT, "cleanup.policy", "delete")) == 0
    assert own(cluster)["cleanup.policy"] == "compact"
    assert cluster.log_configs.updates[-1][1].compact
    assert await change((SET, "cleanup.policy", "delete,delete,compact")) == 0
    assert await change((SUBTRACT, "cleanup.policy", "delete,delete")) == 0
    assert own(cluster)["cleanup.policy"] == "compact"
    assert await change((DELETE, "segment.ms", None), (DELETE, "flush.ms", None)) == 0
    assert own(cluster) == {"cleanup.policy": "compact"}


async def test_s_cfg_4_what_incremental_changes_refuse(cluster: Cluster) -> None:
    await cluster.controller.create_topic(NewTopic(name="t"))
    bad_config, bad_request = ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST
    for changes, code in (
        ([(SET, "no.such", "1")], bad_config),
        ([(APPEND, "no.such", "1")], bad_config),
        ([(SET, "retention.ms", "x")], bad_config),
        ([(APPEND, "retention.ms", "1")], bad_config),
        ([(SUBTRACT, "retention.ms", "1")], bad_config),
        ([(SET, "retention.ms", None)], bad_request),
        ([(APPEND, "cleanup.policy", None)], bad_request),
        ([(SET, "retention.ms", "1"), (DELETE, "retention.ms", None)], bad_request),
        ([(9, "retention.ms", "1")], bad_request),
        ([(SET, "segment.ms", "1"), (SET, "segment.bytes", "1")], bad_config),
    ):
        found, message = await incremental(cluster, *changes)
        assert found == code, (changes, message)
        assert message
    assert (await incremental(cluster, (SET, "no.such", "1")))[1] == (
        "Unknown topic config name: no.such"
    )
    good = (SET, "segment.ms", "5")
    assert (await incremental(cluster, good, validate_only=True))[0] == 0
    assert own(cluster) == {}
    assert cluster.log_configs.updates == []
    unknown = await incremental(cluster, good, name="missing")
    assert unknown[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for kind, name in ((TOPIC, ""), (BROKER, "8"), (LOGGER, "8"), (16, "m"), (99, "")):
        assert (await incremental(cluster, good, kind=kind, name=name))[0] == bad_request


def alter_request(*resources: tuple[str, dict[str, str | None]], validate_only: bool) -> Any:
    return alter_messages.AlterConfigsRequest(
        resources=[
            alter_messages.AlterConfigsResource(
                resource_type=TOPIC,
                resource_name=name,
                configs=[
                    alter_messages.AlterableConfig(name=key, value=value)
                    for key, value in configs.items()
                ],
            )
            for name, configs in resources
        ],
        validate_only=validate_only,
    )


@pytest.mark.parametrize("version", range(alter_configs.API.versions[1] + 1))
async def test_alter_configs_replaces_everything(cluster: Cluster, version: int) -> None:
    await cluster.controller.create_topic(NewTopic(name="t", config={"retention.ms": "1"}))
    await cluster.controller.create_topic(NewTopic(name="u"))
    handler = AlterConfigsHandler(owners(cluster))

    async def alter(
        *resources: tuple[str, dict[str, str | None]], validate_only: bool = False
    ) -> list[int]:
        request = alter_request(*resources, validate_only=validate_only)
        response = await acall(handler, ApiKey.ALTER_CONFIGS, version, request)
        return [result.error_code for result in response.responses]

    assert await alter(("t", {"segment.ms": "7"}), validate_only=True) == [0]
    assert own(cluster) == {"retention.ms": "1"}
    assert await alter(("t", {"segment.ms": "7"}), ("u", {"x": "1"})) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_CONFIG,
    ]
    assert own(cluster) == {"segment.ms": "7"}
    assert await alter(("t", {"segment.ms": None})) == [ErrorCode.INVALID_REQUEST]
    assert await alter(("u", {}), ("u", {})) == [ErrorCode.INVALID_REQUEST] * 2
    assert await alter(("t", {})) == [0]
    assert own(cluster) == {}


@pytest.mark.parametrize("count", [describe_configs.FEW, describe_configs.FEW + 1])
async def test_few_resources_are_described_by_the_handler_so_that_a_bug_is_answered(
    cluster: Cluster, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the reply of a large request is encoded, a bug ends the connection."""

    def broken(*_: object) -> None:
        raise LookupError("a bug")

    handler = DescribeConfigsHandler(cluster.image, cluster.configs)
    monkeypatch.setattr(handler, "_entries", broken)
    named = [
        DescribeConfigsResource(resource_type=2, resource_name=f"t{number}")
        for number in range(count)
    ]
    ctx = context(ApiKey.DESCRIBE_CONFIGS, 4)
    is_large = count > describe_configs.FEW
    with nullcontext() if is_large else pytest.raises(LookupError):
        await handler(ctx, DescribeConfigsRequest(resources=named))
    assert ctx.large is is_large
