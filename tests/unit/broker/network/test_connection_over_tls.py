"""A connection's rules know only a `Stream`, so TLS is one more: nothing above it changes.

Connections with fake handlers on both networks, then a whole broker in memory.
"""

import logging
from pathlib import Path
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
from storage.log.results import FileSlice
from storage.os_filesystem import OsFileSystem
from tests.support.certificates import listener_settings
from tests.support.connection_requests import FETCH, HEARTBEAT, echo, fetch_reply, heartbeat
from tests.support.fake_handlers import AsyncClient, Parking, running_server
from tests.support.memory_client import HOST, PORT
from tests.support.memory_transport import MemoryTransport
from tests.support.networks import Net, wait_until
from tests.support.produce_requests import one_batch
from tests.support.tls_network import TlsNet, client_end, shake
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.support.wire_client import request_frame

PATIENCE_S = 5


@pytest.fixture
def tls(net: Net) -> TlsNet:
    """TLS over each network."""
    return TlsNet(net)


# ---- connections


def test_s_net_1_pipelined_requests_over_tls_are_answered_in_order(tls: TlsNet) -> None:
    async def main() -> None:
        async with running_server(tls, {HEARTBEAT: echo}) as harness:
            client = await harness.connect()
            frames = b"".join(heartbeat(number, number * 7) for number in range(3000))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.send, frames)
                for number in range(3000):
                    response = await client.response(HEARTBEAT, 4, number)
                    assert response.throttle_time_ms == number * 7

    tls.run(main)


def test_every_way_to_cut_a_request_into_records_gives_the_same_answer(tls: TlsNet) -> None:
    async def main() -> None:
        async with running_server(tls, {HEARTBEAT: echo}) as harness:
            client = await harness.connect()
            frame = heartbeat(1, 42)
            for cut in range(1, len(frame)):
                await client.send(frame[:cut])
                await trio.sleep(0)
                await client.send(frame[cut:])
                assert (await client.response(HEARTBEAT, 4, 1)).throttle_time_ms == 42

    tls.run(main)


def test_slices_of_files_are_read_and_encrypted(tls: TlsNet, tmp_path: Path) -> None:
    content = bytes(range(256)) * 20_000
    file = OsFileSystem().open(f"{tmp_path}/segment", create=True)
    file.pwrite(content, 0)
    spans = [(5, 70_000), (9, 10), (100_000, 4_000_000)]
    records = [FileSlice(file, start, size) for start, size in spans]

    async def main() -> None:
        async with running_server(tls, {FETCH: lambda c, r: fetch_reply(*records)}) as harness:
            client = await harness.connect()
            response = await client.call(FETCH, 12)
            for part, (start, size) in zip(response.responses[0].partitions, spans, strict=True):
                assert bytes(part.records) == content[start : start + size]

    tls.run(main)


@pytest.mark.parametrize("how", ["in order", "without close_notify", "reset"])
def test_a_client_that_ends_within_a_frame_is_gone(
    tls: TlsNet, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with running_server(tls, {HEARTBEAT: echo}) as harness:
            client = await harness.connect()
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
            assert harness.channel.statistics().requests["Heartbeat"].requests == 1

    with caplog.at_level(logging.INFO):
        tls.run(main)
    assert not any(record.levelno >= logging.INFO for record in caplog.records)


def test_a_client_that_speaks_no_tls_is_hung_up_on_and_nobody_else(
    tls: TlsNet, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with running_server(tls, {HEARTBEAT: echo}) as harness:
            bystander = await harness.connect()
            await bystander.call(HEARTBEAT, 4)
            plain = AsyncClient(tls.below.connect(harness.port))
            harness.clients.append(plain)
            await plain.send(heartbeat(1))
            with trio.fail_after(PATIENCE_S):
                assert await plain.closed_by_peer()
            await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 1)
            await bystander.call(HEARTBEAT, 4)

    with caplog.at_level(logging.INFO):
        tls.run(main)
    assert not any(record.levelno >= logging.ERROR for record in caplog.records)


def test_a_frame_inside_ssl_is_seen_by_a_parked_request_and_answered_after_it(tls: TlsNet) -> None:
    """Two records arrive together: one receive below takes both, the connection's takes one."""
    pending = Parking()
    connections: list[Connection] = []

    def park_first(ctx: RequestContext, request: Any) -> Any:
        return pending if ctx.correlation_id == 1 else echo(ctx, request)

    def note(channel: Any, connection: Connection) -> None:
        connections.append(connection)

    async def main() -> None:
        async with running_server(tls, {HEARTBEAT: park_first}, entrance=note) as harness:
            client = await harness.connect()
            await client.call(HEARTBEAT, 4, correlation_id=0)
            client.stream.send(heartbeat(1))
            client.stream.send(heartbeat(2, 5))
            await tls.settle()
            (connection,) = connections
            assert connection.state is State.PARKED
            pending.complete(HeartbeatResponse())
            await client.response(HEARTBEAT, 4, 1)
            assert (await client.response(HEARTBEAT, 4, 2)).throttle_time_ms == 5

    tls.run(main)


def test_a_client_that_sends_no_more_after_its_handshake_is_answered(tls: TlsNet) -> None:
    pending = Parking()

    async def main() -> None:
        async with running_server(tls, {HEARTBEAT: lambda c, r: pending}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(1))
            await wait_until(lambda: "Heartbeat" in harness.channel.statistics().requests)
            assert isinstance(client.stream, TlsStream)
            tls.below.send_eof(client.stream.below)
            await tls.settle()
            assert not pending.abandoned
            pending.complete(HeartbeatResponse())
            await client.response(HEARTBEAT, 4, 1)

    tls.run(main)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_parked_request_notices_over_tls_that_its_client_has_gone(
    tls: TlsNet, ahead: bool
) -> None:
    pending = Parking()

    async def main() -> None:
        server = running_server(tls, {HEARTBEAT: lambda c, r: pending}, max_idle_s=0.5)
        async with server as harness:
            client = await harness.connect()
            await client.send(heartbeat(1))
            await wait_until(lambda: "Heartbeat" in harness.channel.statistics().requests)
            if ahead:
                await client.send(heartbeat(2))
            await tls.settle()
            assert not pending.abandoned
            client.close()
            await wait_until(lambda: pending.abandoned)

    tls.run(main)


def test_a_client_that_takes_no_reply_over_tls_is_closed_when_its_idle_time_is_over(
    tls: TlsNet,
) -> None:
    big = fetch_reply(bytes(20_000_000))

    async def main() -> None:
        async with running_server(tls, {FETCH: lambda c, r: big}, max_idle_s=0.3) as harness:
            client = await harness.connect()
            await client.send(request_frame(FETCH, 12))
            await wait_until(lambda: harness.server.statistics().idle_closed == 1)
            await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 0)

    tls.run(main)


# ---- a whole broker


TLS_PORT = 9093
TLS = {
    "listeners": f"PLAINTEXT://{HOST}:{PORT},SSL://{HOST}:{TLS_PORT}",
    **{key.replace(".", "__"): value for key, value in listener_settings().items()},
}


async def over_tls(broker: WholeBroker) -> AsyncClient:
    """A client that speaks TLS."""
    stream = client_end(MemoryTransport(broker.network).connect(HOST, TLS_PORT))
    await shake(stream)
    return AsyncClient(stream)


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
