"""Limits on connections: `max.connections.per.ip.overrides` names hosts as the operator knows them;
`max.connections` leaves the other brokers in."""

import pytest

from broker.world.transport import Stream
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.memory_client import MemoryClient
from tests.support.whole_broker import WholeBroker, run_whole_broker, whole_broker

KEY = "max.connections.per.ip.overrides"
SET, DELETE = 0, 1


async def stay(broker: WholeBroker, host: str, count: int = 5) -> int:
    """How many of `count` connections from an address are served; all of them end."""
    clients = [broker.client(host=host) for _ in range(count)]
    served = [await is_served(client) for client in clients]
    for client in clients:
        client.close()
    await broker.clock.sleep(1)
    return sum(served)


class OtherBroker(MemoryClient):
    """A client of the listener between brokers."""

    def _connected(self) -> Stream:
        if self._stream is None:
            self._stream = self._transport.connect(self._broker, 9093, from_host=self._host)
        return self._stream


async def is_served(client: MemoryClient) -> bool:
    try:
        await client.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    except OSError:
        return False
    return True


async def alter(
    broker: WholeBroker, name: str, value: str | None, operation: int = SET, whose: str = ""
) -> tuple[int, str | None]:
    resource = AlterConfigsResource(
        resource_type=4,
        resource_name=whose,
        configs=[AlterableConfig(name=name, config_operation=operation, value=value)],
    )
    client = broker.client(host="192.0.2.9")
    request = IncrementalAlterConfigsRequest(resources=[resource])
    [answer] = (await client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)).responses
    client.close()
    return answer.error_code, answer.error_message


@whole_broker(
    max__connections__per__ip="2",
    max__connections__per__ip__overrides="localhost:50,0:0:0:0:0:0:0:1:3,::ffff:10.0.0.9:4",
)
async def test_a_limit_holds_for_the_address_however_its_host_is_written(
    broker: WholeBroker,
) -> None:
    assert await stay(broker, "127.0.0.1") == 5
    assert await stay(broker, "::1") == 3
    assert await stay(broker, "10.0.0.9") == 4
    assert await stay(broker, "10.0.0.1") == 2


@whole_broker()
async def test_a_host_without_an_address_stops_the_start(broker: WholeBroker) -> None:
    assert await broker.stop()
    broker.settings[KEY] = "localhost:50,gone.invalid:3"
    with pytest.raises(AssertionError) as caught:
        await broker.start()
    told = f"for configuration {KEY}: cannot resolve the host gone.invalid: Name or service not"
    assert told in str(caught.value)
    broker.settings[KEY] = ""
    await broker.start()


@whole_broker(max__connections__per__ip="2")
async def test_hosts_are_looked_up_before_a_change_is_accepted(broker: WholeBroker) -> None:
    assert await alter(broker, KEY, "localhost:4") == (0, None)
    assert await stay(broker, "127.0.0.1") == 4
    code, told = await alter(broker, KEY, "gone.invalid:3")
    assert code == ErrorCode.INVALID_REQUEST
    assert "cannot resolve the host gone.invalid" in str(told)
    assert await stay(broker, "127.0.0.1") == 4
    await broker.restart()
    assert await stay(broker, "127.0.0.1") == 4
    assert await alter(broker, KEY, None, DELETE) == (0, None)
    assert await stay(broker, "127.0.0.1") == 2


@pytest.mark.parametrize(("own_limit", "is_left_in"), [(None, True), ("0", False)])
def test_the_limit_of_the_broker_leaves_other_brokers_in(
    own_limit: str | None, is_left_in: bool
) -> None:
    async def scenario(broker: WholeBroker) -> None:
        assert await is_served(broker.client())
        assert not await is_served(broker.client())
        other = OtherBroker(
            broker.network, broker.clock, client_id="b2", host="10.0.0.2", broker=broker.host
        )
        assert await is_served(other) is is_left_in

    settings = {
        "listeners": "CLIENTS://broker:9092,INTERNAL://broker:9093",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,INTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "max.connections": "1",
    }
    if own_limit is not None:
        settings["listener.name.internal.max.connections"] = own_limit
    run_whole_broker(scenario, **settings)
