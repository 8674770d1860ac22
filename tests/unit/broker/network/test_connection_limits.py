"""What a connection may take: memory by what has come, none when idle, and idle time.

Connections with fake handlers, on both networks.
"""

import struct
from typing import Any

from broker.network import buffers
from tests.support.connection_requests import FETCH, HEARTBEAT, echo, fetch_reply
from tests.support.fake_handlers import Harness, running_server
from tests.support.networks import Net, wait_until
from tests.support.wire_client import request_frame


def test_an_announced_size_costs_no_more_than_what_has_arrived(net: Net) -> None:
    async def main() -> None:
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

    net.run(main)


def test_idle_connections_hold_no_buffer(net: Net) -> None:
    async def main() -> None:
        async with running_server(net, {HEARTBEAT: echo}) as harness:
            clients = [await harness.connect() for _ in range(100)]
            for client in clients:
                await client.call(HEARTBEAT, 4)
            await wait_until(lambda: harness.server.statistics().buffers.in_use == 0)

    net.run(main)


async def _stuck_client(harness: Harness) -> Any:
    client = await harness.connect()
    await client.send(request_frame(FETCH, 12))
    return client


def test_a_client_that_takes_no_reply_is_closed_when_its_idle_time_is_over(net: Net) -> None:
    big = fetch_reply(bytes(20_000_000))

    async def main() -> None:
        async with running_server(net, {FETCH: lambda c, r: big}, max_idle_s=0.3) as harness:
            await _stuck_client(harness)
            await wait_until(lambda: harness.server.statistics().idle_closed == 1)
            await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 0)

    net.run(main)
