"""Hosts that have limits of connections are looked up when the limits are set, once."""

import pytest

from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.limited_hosts import as_written, located
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from protocol.errors import ErrorCode, KafkaError
from tests.support.stores import open_store

KEY = "max.connections.per.ip.overrides"


class Names:
    """A name server that notes the names it gets."""

    def __init__(self, **addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[str] = []

    def __call__(self, host: str) -> str:
        self.asked.append(host)
        if host not in self.addresses:
            raise OSError(-2, "Name or service not known")
        return self.addresses[host]


def config(overrides: str) -> BrokerConfig:
    return BrokerConfig.parse({"broker.id": "1", KEY: overrides})


async def test_limits_are_by_address_in_one_spelling() -> None:
    found = await located(config("a:1,b:2,c:3"), Names(a="10.0.0.1", b="::ffff:10.0.0.2", c="0::1"))
    assert found.ip_connection_limits == {"10.0.0.1": 1, "10.0.0.2": 2, "::1": 3}
    assert found.max_connections_per_ip_overrides == "a:1,b:2,c:3"
    assert found.values[KEY] == "a:1,b:2,c:3"


async def test_the_later_limit_of_an_address_holds() -> None:
    found = await located(config("a:1,b:2"), Names(a="10.0.0.1", b="10.0.0.1"))
    assert found.ip_connection_limits == {"10.0.0.1": 2}


async def test_a_host_without_an_address_is_named_with_the_key() -> None:
    with pytest.raises(ConfigError) as caught:
        await located(config("a:1,b:2"), Names(a="10.0.0.1"))
    assert caught.value.message == (
        f"Invalid value a:1,b:2 for configuration {KEY}: cannot resolve the host b: Name or service"
        " not known"
    )


async def test_an_error_without_a_number_is_told_too() -> None:
    def resolve(host: str) -> str:
        raise OSError("out of order")

    with pytest.raises(ConfigError, match="host a: out of order"):
        await located(config("a:1"), resolve)


async def test_without_limits_nobody_is_asked() -> None:
    names = Names()
    assert (await located(config(""), names)).ip_connection_limits == {}
    assert names.asked == []


async def test_a_name_is_looked_up_when_its_limit_is_set_and_not_with_other_changes() -> None:
    names = Names(a="10.0.0.1", b="10.0.0.2")
    configs = await DynamicBrokerConfig.load(config("a:1"), await open_store(), resolve=names)
    assert configs.current.ip_connection_limits == {"10.0.0.1": 1}
    del names.addresses["a"]  # the name server forgets it
    await configs.alter(lambda old: {"max.connections": "9"}, for_cluster=True)
    assert configs.current.ip_connection_limits == {"10.0.0.1": 1}
    await configs.alter(lambda old: {KEY: "b:2"}, for_cluster=True)
    assert configs.current.ip_connection_limits == {"10.0.0.2": 2}
    assert names.asked == ["a", "b"]


async def test_a_change_to_a_host_without_an_address_is_refused_and_not_stored() -> None:
    store = await open_store()
    configs = await DynamicBrokerConfig.load(config("10.0.0.1:1"), store, resolve=as_written)
    stranger = await DynamicBrokerConfig.load(config(""), store, resolve=Names())
    with pytest.raises(KafkaError, match="cannot resolve the host x") as refused:
        await stranger.alter(lambda old: {KEY: "x:1"}, for_cluster=True)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert stranger.current.ip_connection_limits == {}
    assert stranger.layers.cluster == {}
    await configs.reread()
    assert configs.current.ip_connection_limits == {"10.0.0.1": 1}


async def test_a_start_refuses_a_host_of_the_file_and_leaves_out_one_that_was_set_while_running(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = await open_store()
    configs = await DynamicBrokerConfig.load(config(""), store, resolve=Names(b="10.0.0.2"))
    await configs.alter(lambda old: {KEY: "b:2"}, for_cluster=True)
    again = await DynamicBrokerConfig.load(config("a:1"), store, resolve=Names(a="10.0.0.1"))
    assert again.current.ip_connection_limits == {"10.0.0.1": 1}
    assert "do not fit" in caplog.text
    assert "cannot resolve the host b" in caplog.text
    with pytest.raises(ConfigError, match="cannot resolve the host a"):
        await DynamicBrokerConfig.load(config("a:1"), store, resolve=Names(b="10.0.0.2"))
