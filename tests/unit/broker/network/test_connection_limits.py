"""A connection takes memory for the bytes that have arrived, and has a limited idle time.

Connections with fake handlers, on both networks.
"""

import struct

from broker.network import buffers
from tests.support.connection_requests import FETCH, HEARTBEAT, echo, fetch_reply
from tests.support.fake_handlers import running_server
from tests.support.networks import Net, wait_until
from tests.support.wire_client import request_frame


async def test_an_announced_size_costs_no_more_than_what_has_arrived(net: Net) -> None:
    async with running_server(net, {HEARTBEAT: echo}) as harness:
        claim = struct.pack(">i", 100_000_000)
        clients = [await harness.connect() for _ in range(200)]
        for client in clients:
            await client.send(claim + bytes(3000))
        await net.settle()
        held = harness.server.statistics().buffers
        assert held.bytes_in_use <= buffers.CROWDED * buffers.STANDARD_BYTES
        big = await harness.connect()
        await big.send(claim + bytes(200_000))
        await net.settle()
        more = harness.server.statistics().buffers
        assert more.bytes_in_use - held.bytes_in_use <= buffers.STANDARD_BYTES
        assert harness.server.statistics().frames.held == 200 * 3004 + 200_004
        good = await harness.connect()
        await good.call(HEARTBEAT, 4)


async def test_a_client_that_takes_no_reply_is_closed_when_its_idle_time_is_over(
    stream_net: Net,
) -> None:
    big = fetch_reply(bytes(20_000_000))
    async with running_server(stream_net, {FETCH: lambda c, r: big}, max_idle_s=0.3) as harness:
        await (await harness.connect()).send(request_frame(FETCH, 12))
        await wait_until(lambda: harness.server.statistics().idle_closed == 1)
        await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 0)
