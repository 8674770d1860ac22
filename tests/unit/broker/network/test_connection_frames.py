"""Frames and order: replies in that of the requests, records as views, a turn for each connection.

Connections with fake handlers, on both networks.
"""

import itertools
from typing import Any

import trio

from broker.network import buffers
from broker.network.connection_state import CONNECTION_TURN_S
from broker.request import RequestContext
from broker.world.clock import SystemClock
from protocol.messages.produce import ProduceResponse
from tests.support.connection_requests import HEARTBEAT, PRODUCE, echo, heartbeat, produce_frame
from tests.support.fake_handlers import connected, running_server
from tests.support.networks import Net, SocketNet, wait_until
from tests.support.wire_client import request_frame


async def test_s_net_1_pipelined_requests_are_answered_in_order(stream_net: Net) -> None:
    async with connected(stream_net, {HEARTBEAT: echo}) as (harness, client):
        frames = b"".join(heartbeat(number, number * 7) for number in range(3000))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, frames)
            for number in range(3000):
                response = await client.response(HEARTBEAT, 4, number)
                assert response.throttle_time_ms == number * 7
        times = harness.requests.statistics().requests["Heartbeat"]
        assert times.requests == times.phases["total"].count == 3000


async def test_records_are_writable_views_of_the_frame_whatever_its_size(net: Net) -> None:
    seen: list[bytes] = []

    def keep(ctx: RequestContext, request: Any) -> Any:
        records = request.topic_data[0].partition_data[0].records
        seen.append(bytes(records))
        records[0] = 255  # offsets are patched in place
        return ProduceResponse(responses=[])

    sizes = [1, 100, 70_000, 131_000, 131_072, 300_000, 5_000_000, 100, 1_000_000, 10]
    async with connected(net, {PRODUCE: keep}) as (harness, client):
        payloads = [bytes([1 + n]) * size for n, size in enumerate(sizes)]
        for number, payload in enumerate(payloads):
            await client.send(produce_frame(payload, number))
            await client.response(PRODUCE, 9, number)
        async with trio.open_nursery() as nursery:
            stream = b"".join(produce_frame(p, n) for n, p in enumerate(payloads))
            nursery.start_soon(client.send, stream)
            for number in range(len(payloads)):
                await client.response(PRODUCE, 9, number)
        assert seen == payloads * 2
        await wait_until(lambda: harness.server.statistics().buffers.in_use == 0)
        free = harness.server.statistics().buffers.bytes_free
        assert buffers.STANDARD_BYTES <= free <= buffers.RETAINED_BYTES


async def test_a_busy_connection_does_not_keep_the_others_waiting(sockets: SocketNet) -> None:
    """Fairness: between two replies of a quiet client a loud one gets a few turns, no more."""

    class ClockOfWork(SystemClock):
        """Shows how much was handled, a fifth of a turn for each request, however fast."""

        def monotonic(self) -> float:  # type: ignore[override]
            return len(log) * CONNECTION_TURN_S / 5

    sockets.clock = ClockOfWork()
    log: list[str] = []
    begun = trio.Event()

    def note(ctx: RequestContext, request: Any) -> Any:
        log.append(str(ctx.client_id))
        if len(log) == 100:
            begun.set()
        return echo(ctx, request)

    async with running_server(sockets, {HEARTBEAT: note}) as harness:
        loud, quiet = await harness.connect(), await harness.connect()
        blast = b"".join(
            request_frame(HEARTBEAT, 4, correlation_id=n, client_id="loud") for n in range(20_000)
        )

        async def drain() -> None:
            await loud.receive_until_closed()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(loud.send, blast)
            nursery.start_soon(drain)
            await begun.wait()  # a pause in real time would let any number of requests pass
            for number in range(10):
                await quiet.send(
                    request_frame(HEARTBEAT, 4, correlation_id=number, client_id="quiet")
                )
                await quiet.response(HEARTBEAT, 4, number)
            nursery.cancel_scope.cancel()
    marks = [100] + [position for position, name in enumerate(log) if name == "quiet"]
    gaps = [after - before for before, after in itertools.pairwise(marks)]
    assert max(gaps) < 150, gaps
