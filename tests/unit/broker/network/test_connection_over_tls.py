"""A connection's rules know only a `Stream`, so TLS is one more: nothing above it changes.

Connections with fake handlers on both networks, then a whole broker in memory. Tests of plain
connections that hold with TLS as well take the fixture `stream_net`.
"""

import logging
from random import Random
from typing import Any

import pytest
import trio

from broker.network.activity import State
from broker.network.connection import Connection
from broker.request import RequestContext
from broker.world.tls_stream import TlsStream
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.records.builder import build_batch
from tests.support.connection_requests import HEARTBEAT, echo, heartbeat
from tests.support.fake_handlers import Parking, connected, running_server
from tests.support.networks import wait_until
from tests.support.produce_requests import one_batch
from tests.support.tls_network import TlsNet
from tests.support.tls_whole_broker import TLS, over_tls
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.support.wire_client import request_frame

# ---- connections


@pytest.mark.parametrize("how", ["in order", "without close_notify", "reset"])
async def test_a_client_that_ends_within_a_frame_is_gone(
    tls: TlsNet, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with connected(tls, {HEARTBEAT: echo}) as (harness, client):
        await client.call(HEARTBEAT, 4)
        await client.send(heartbeat(2)[:-3])
        await tls.settle()
        assert harness.server.statistics().connections["PLAINTEXT"] == 1
        if how == "in order":
            tls.send_eof(client.stream)
            assert await client.closed_by_peer()
        elif how == "reset":
            tls.reset(client.stream)
        else:
            assert isinstance(client.stream, TlsStream)
            client.stream.below.close()
        await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 0)
        await wait_until(lambda: harness.server.statistics().buffers.in_use == 0)
        assert harness.requests.statistics().requests["Heartbeat"].requests == 1
    assert not any(record.levelno >= logging.INFO for record in caplog.records)


async def test_a_frame_inside_ssl_is_seen_by_a_parked_request_and_answered_after_it(
    tls: TlsNet,
) -> None:
    """Two records arrive together: one receive below takes both, the connection's takes one."""
    pending = Parking()
    connections: list[Connection] = []

    def park_first(ctx: RequestContext, request: Any) -> Any:
        return pending if ctx.correlation_id == 1 else echo(ctx, request)

    def note(requests: Any, connection: Connection) -> None:
        connections.append(connection)

    async with connected(tls, {HEARTBEAT: park_first}, entrance=note) as (_, client):
        await client.call(HEARTBEAT, 4, correlation_id=0)
        client.stream.send(heartbeat(1))
        client.stream.send(heartbeat(2, 5))
        await tls.settle()
        (connection,) = connections
        assert connection.state is State.PARKED
        pending.complete(HeartbeatResponse())
        await client.response(HEARTBEAT, 4, 1)
        assert (await client.response(HEARTBEAT, 4, 2)).throttle_time_ms == 5


async def test_an_end_that_arrives_with_a_request_ends_the_connection_after_the_reply(
    tls: TlsNet,
) -> None:
    async with connected(tls, {HEARTBEAT: echo}) as (_, client):
        await client.call(HEARTBEAT, 4)
        assert isinstance(client.stream, TlsStream)
        client.stream.send(heartbeat(2))
        client.stream.send_end()  # and waits for the broker's, as SSL_shutdown does
        await client.response(HEARTBEAT, 4, 2)
        with trio.fail_after(5):
            assert await client.receive_until_closed() == b""


async def test_a_damaged_record_that_arrives_with_a_request_ends_the_connection(
    tls: TlsNet,
) -> None:
    def answer_first(ctx: RequestContext, request: Any) -> Any:
        return HeartbeatResponse() if ctx.correlation_id == 1 else None

    async with connected(tls, {HEARTBEAT: answer_first}) as (harness, client):
        await client.call(HEARTBEAT, 4)
        assert isinstance(client.stream, TlsStream)
        client.stream.send(heartbeat(2))
        client.stream.below.send(b"\x17\x03\x03\x00\x20" + bytes(32))
        await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 0)


async def test_a_client_that_sends_no_more_after_its_handshake_is_answered(tls: TlsNet) -> None:
    pending = Parking()
    async with running_server(tls, {HEARTBEAT: lambda c, r: pending}) as harness:
        client = await harness.connect()
        await client.send(heartbeat(1))
        await wait_until(lambda: "Heartbeat" in harness.requests.statistics().requests)
        assert isinstance(client.stream, TlsStream)
        tls.below.send_eof(client.stream.below)
        await tls.settle()
        assert not pending.abandoned
        pending.complete(HeartbeatResponse())
        await client.response(HEARTBEAT, 4, 1)


@pytest.mark.parametrize("ahead", [False, True])
async def test_a_parked_request_notices_over_tls_that_its_client_has_gone(
    tls: TlsNet, ahead: bool
) -> None:
    pending = Parking()
    server = running_server(tls, {HEARTBEAT: lambda c, r: pending}, max_idle_s=0.5)
    async with server as harness:
        client = await harness.connect()
        await client.send(heartbeat(1))
        await wait_until(lambda: "Heartbeat" in harness.requests.statistics().requests)
        if ahead:
            await client.send(heartbeat(2))
        await tls.settle()
        assert not pending.abandoned
        client.close()
        await wait_until(lambda: pending.abandoned)


# ---- a whole broker


@whole_broker(**TLS)
async def test_a_whole_broker_serves_over_tls(broker: WholeBroker) -> None:
    await broker.create_topic("t")
    client = await over_tls(broker)
    served = await client.call(ApiKey.API_VERSIONS, 2)
    assert served.error_code == ErrorCode.NONE
    assert {ApiKey.PRODUCE, ApiKey.FETCH} <= {api.api_key for api in served.api_keys}
    now = broker.clock.wall_ms()
    random = Random(7)
    batch = build_batch([(now, None, random.randbytes(10_000), ()) for _ in range(30)])
    assert len(batch) > 300_000
    for number in range(2):
        answer = await client.call(ApiKey.PRODUCE, 9, one_batch("t", batch))
        (part,) = answer.responses[0].partition_responses
        assert (part.error_code, part.base_offset) == (ErrorCode.NONE, number * 30)
    for start in (0, 30):
        answer = await client.call(ApiKey.FETCH, 11, fetch_request(start, len(batch)))
        (part,) = answer.responses[0].partitions
        stored = bytes(part.records)
        assert stored[:8] == start.to_bytes(8, "big")
        assert stored[8:12] == batch[8:12]
        assert stored[16:] == batch[16:], "but for the leader's epoch it is what was sent"
    client.close()


@whole_broker(**TLS)
async def test_a_whole_broker_answers_what_is_pipelined_over_tls_in_order(
    broker: WholeBroker,
) -> None:
    await broker.create_topic("t")
    client = await over_tls(broker)
    batch = build_batch([(broker.clock.wall_ms(), None, bytes(20_000), ())])
    frames: list[bytes] = []
    for number in range(0, 60, 3):
        frames += (
            request_frame(ApiKey.PRODUCE, 9, one_batch("t", batch), correlation_id=number),
            request_frame(ApiKey.API_VERSIONS, 2, correlation_id=number + 1),
            request_frame(ApiKey.FETCH, 11, fetch_request(0, 1), correlation_id=number + 2),
        )
    async with broker.together() as clients:
        clients.start_soon(client.send, b"".join(frames))
        for number in range(0, 60, 3):
            answer = await client.response(ApiKey.PRODUCE, 9, number)
            assert answer.responses[0].partition_responses[0].base_offset == number // 3
            answer = await client.response(ApiKey.API_VERSIONS, 2, number + 1)
            assert answer.error_code == ErrorCode.NONE
            answer = await client.response(ApiKey.FETCH, 11, number + 2)
            assert len(answer.responses[0].partitions[0].records) == len(batch)
    client.close()
    assert await broker.stop()


def fetch_request(start: int, most: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=start, partition_max_bytes=most)
    topic = FetchTopic(topic="t", partitions=[partition])
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=most, topics=[topic])
