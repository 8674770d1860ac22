"""Objects that clients leave behind are free at once, not by the collector of cycles.

The collector comes once in fifty million objects, because it stops the loop. A client that connects
again and again, or makes and deletes topics, would fill the memory with cycles until then.
"""

from typing import Any

import pytest

from broker.registry import APIS
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.sasl.plain import build_plain
from tests.support.cycles import leaves_nothing
from tests.support.filled_requests import filled
from tests.support.sasl_client import SETTINGS as SASL
from tests.support.sasl_client import SaslClient
from tests.support.slow_workers import SlowWorkers
from tests.support.tls_whole_broker import TLS, over_tls
from tests.support.whole_broker import WholeBroker, run_whole_broker, whole_broker
from tests.support.wire_client import request_frame
from tests.whole.kinds_of_requests import KINDS, SETTINGS

RIGHT, WRONG = build_plain("alice", "alice-secret"), build_plain("alice", "wrong")


def assert_a_request_leaves_nothing(
    key: ApiKey, version: int, request: Any, *, resets: bool = False
) -> None:
    """Send a request by clients that leave before the answer, and by one that waits for it."""

    async def scenario(broker: WholeBroker) -> None:
        async def once() -> None:
            for waits_s in (0, 0, 60):
                client = broker.client()
                await client.send_only(key, version, request)
                await broker.clock.sleep(waits_s)
                client.die() if resets else client.close()
                await broker.clock.sleep(60)

        await broker.create_topic("t")
        await leaves_nothing(once)

    run_whole_broker(scenario, SlowWorkers(1), **SETTINGS)


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_leaves_nothing(kind: str, resets: bool) -> None:
    assert_a_request_leaves_nothing(*KINDS[kind](), resets=resets)


@whole_broker(connections__max__idle__ms="1000")
async def test_a_connection_that_the_broker_ends_leaves_nothing(broker: WholeBroker) -> None:
    server = broker.server.components.socket_server

    async def once() -> None:
        closed = server.statistics().idle_closed
        client = broker.client()
        await client.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        await broker.clock.sleep(60)
        assert server.statistics().idle_closed == closed + 1
        client.close()
        await broker.clock.sleep(60)

    await leaves_nothing(once)


@pytest.mark.parametrize("key", APIS, ids=lambda key: key.name)
def test_no_request_leaves_anything(key: ApiKey) -> None:
    version = APIS[key].versions[1]
    assert_a_request_leaves_nothing(key, version, filled(key, version))


@pytest.mark.parametrize("message", [RIGHT, WRONG])
def test_a_client_that_authenticates_leaves_nothing(message: bytes) -> None:
    async def scenario(broker: WholeBroker) -> None:
        async def once() -> None:
            client = SaslClient(broker)
            await client.shake()
            answer = await client.say(message)
            assert (answer.error_code == ErrorCode.NONE) == (message == RIGHT)
            client.close()
            await broker.clock.sleep(60)

        await leaves_nothing(once)

    run_whole_broker(scenario, SlowWorkers(1), **SASL)


@whole_broker(**TLS)
async def test_a_client_over_tls_leaves_nothing(broker: WholeBroker) -> None:
    async def once() -> None:
        client = await over_tls(broker)
        await client.send(request_frame(ApiKey.API_VERSIONS, 2))
        await client.receive_frame()
        client.close()
        await broker.clock.sleep(60)

    await leaves_nothing(once)


def test_a_deleted_topic_leaves_nothing() -> None:
    async def scenario(broker: WholeBroker) -> None:
        async def once() -> None:
            await broker.create_topic("t", 3)
            client = broker.client()
            produced = await client.call(*KINDS["produce at once, acks=1"]())
            assert produced.responses[0].partition_responses[0].error_code == ErrorCode.NONE
            request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000)
            answer = await client.call(ApiKey.DELETE_TOPICS, 4, request)
            assert answer.responses[0].error_code == ErrorCode.NONE
            client.close()
            await broker.clock.sleep(120)

        await leaves_nothing(once)

    run_whole_broker(scenario, SlowWorkers(1), **SETTINGS)
