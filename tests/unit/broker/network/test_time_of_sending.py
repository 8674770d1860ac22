"""The time of encoding and sending that a client with a quota is charged."""

from typing import Any

import pytest
import trio

from broker.network import large_messages
from broker.quotas.client_quota import ClientQuota
from broker.quotas.entity import DEFAULT, Entity
from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tests.support.connection_requests import DELETE_GROUPS, HEARTBEAT, deleted, heartbeat
from tests.support.fake_handlers import Harness, running_server
from tests.support.memory_stream import MemoryStream
from tests.support.networks import Net, only_in_memory, wait_until
from tests.support.wire_client import request_frame

HANDLER_S, SENDING_S = 0.00002, 0.00001


def spend_time(seconds: float) -> None:
    trio.lowlevel.current_clock().jump(seconds)  # type: ignore[attr-defined]  # a MockClock


def limit(harness: Harness) -> None:
    harness.requests.quotas.change(Entity(user=DEFAULT), "request_percentage", 1e9)


@pytest.fixture
def charged_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each sending that a client was charged."""
    charged: list[float] = []

    def note(quota: Any, user: str, client_id: str, value: float, now_ms: int) -> None:
        charged.append(value / 100)

    monkeypatch.setattr(ClientQuota, "spend_unchecked", note)
    return charged


@pytest.fixture
def slow_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each send, of either side, takes `SENDING_S`."""
    send = MemoryStream.send

    def slowly(stream: MemoryStream, data: Any) -> int:
        spend_time(SENDING_S)
        return send(stream, data)

    monkeypatch.setattr(MemoryStream, "send", slowly)


@only_in_memory
@pytest.mark.usefixtures("slow_sending")
async def test_s_qta_3_the_time_in_which_replies_wait_for_others_is_not_charged(
    net: Net, charged_s: list[float]
) -> None:
    def working(ctx: RequestContext, request: Any) -> Any:
        spend_time(HANDLER_S)
        return HeartbeatResponse()

    async with running_server(net, {HEARTBEAT: working}) as harness:
        limit(harness)
        clients = [await harness.connect() for _ in range(5)]
        for client in clients:  # the loop finds their requests together
            client.stream.send(heartbeat(1))
        for client in clients:
            await client.response(HEARTBEAT, 4, 1)
        await wait_until(lambda: len(charged_s) == 5)
    assert charged_s == pytest.approx([SENDING_S] * 5)


@only_in_memory
async def test_s_qta_3_the_wait_for_room_for_a_large_reply_is_not_charged(
    net: Net, charged_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_messages, "UNSENT_BYTES", 1 << 20)
    names = [f"group-{number:04d}" * 250 for number in range(1_000)]  # a reply of 2.5 MB

    def large(ctx: RequestContext, request: Any) -> Any:
        ctx.large = True
        return deleted(names)

    def ask(client_id: str) -> bytes:
        request = DeleteGroupsRequest(groups_names=["g"])
        return request_frame(DELETE_GROUPS, 2, request, client_id=client_id)

    async with running_server(net, {DELETE_GROUPS: large}) as harness:
        limit(harness)
        slow, other = await harness.connect(), await harness.connect()
        await slow.send(ask("slow"))  # and takes nothing
        await net.settle()
        began = net.clock.monotonic()
        await other.send(ask("other"))
        await other.response(DELETE_GROUPS, 2)
        assert net.clock.monotonic() - began >= large_messages.PATIENCE_S
        await wait_until(lambda: len(charged_s) == 1)
    assert charged_s == [0]


@only_in_memory
async def test_s_qta_3_the_wait_for_a_client_that_takes_its_reply_slowly_is_not_charged(
    net: Net, charged_s: list[float]
) -> None:
    names = ["g" * 30_000] * 300

    def long(ctx: RequestContext, request: Any) -> Any:
        return deleted(names)

    async with running_server(net, {DELETE_GROUPS: long}) as harness:
        limit(harness)
        client = await harness.connect()
        await client.send(request_frame(DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=["g"])))
        await trio.sleep(5)
        assert charged_s == []
        await client.response(DELETE_GROUPS, 2)
        await wait_until(lambda: len(charged_s) == 1)
    assert charged_s == [0]


@only_in_memory
@pytest.mark.usefixtures("slow_sending")
async def test_s_qta_3_the_reply_to_a_request_between_brokers_is_charged_to_nobody(
    net: Net, charged_s: list[float]
) -> None:
    def working(ctx: RequestContext, request: Any) -> Any:
        return WriteTxnMarkersResponse()

    key = ApiKey.WRITE_TXN_MARKERS
    async with running_server(net, {key: working}) as harness:
        limit(harness)
        charging = harness.requests.quotas.charging
        client = await harness.connect()
        await client.send(request_frame(key, 1, WriteTxnMarkersRequest(markers=[])))
        await client.response(key, 1)
        await net.settle()
        assert charging.exempt_percent() > 0
    assert charged_s == []
