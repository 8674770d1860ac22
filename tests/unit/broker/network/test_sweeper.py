"""One look at all connections is work that others interrupt; what they change meanwhile counts."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from broker.network.backlog import UNREAD_S
from tests.support.connection_requests import FETCH, HEARTBEAT, echo, fetch_reply
from tests.support.fake_handlers import AsyncClient, Harness, running_server
from tests.support.memory_transport import BUFFER_BYTES
from tests.support.networks import MemoryNet, wait_until
from tests.support.wire_client import request_frame

REPLY = fetch_reply(bytes(20_000))
ENOUGH = BUFFER_BYTES // 20_000 + 2
"""Replies of which a client that reads nothing leaves some to the broker."""


async def nothing(pause: int) -> None:
    """Let nobody run."""


async def look(harness: Harness, at_pause: Callable[[int], Awaitable[None]] = nothing) -> int:
    """Let the sweeper look at all connections once; return how often others could run."""
    work: Any = harness.server._sweeper._look()
    pauses = 0
    while True:
        try:
            work.send(None)
        except StopIteration:
            return pauses
        pauses += 1
        await at_pause(pauses)


async def unread(harness: Harness, *replies: int) -> list[AsyncClient]:
    """Return clients that have asked for so many replies long ago and have taken none."""
    clients = [await harness.connect() for _ in replies]
    for client, count in zip(clients, replies, strict=True):
        await client.send(request_frame(FETCH, 12) * count)
    await wait_until(lambda: harness.server.statistics().replying == len(clients))
    await trio.sleep(UNREAD_S)
    return clients


@pytest.mark.parametrize(("most", "closed", "pauses"), [(10**9, 0, 7), (0, 7, 4 * 7)])
async def test_others_can_run_after_each_connection(
    pipes: MemoryNet, most: int, closed: int, pauses: int
) -> None:
    async with running_server(pipes, {FETCH: lambda c, r: REPLY}) as harness:
        await unread(harness, *[ENOUGH] * 7)
        harness.server._services.backlog.most_ever = most
        assert await look(harness) == pauses
        assert harness.server.statistics().unread_closed == closed


@pytest.mark.parametrize(("excess", "closed"), [(0, 0), (1, 1)])
async def test_the_limit_itself_may_be_kept(pipes: MemoryNet, excess: int, closed: int) -> None:
    async with running_server(pipes, {FETCH: lambda c, r: REPLY}) as harness:
        await unread(harness, ENOUGH)
        backlog = harness.server._services.backlog
        backlog.most_ever = backlog.bytes - excess
        await look(harness)
        assert harness.server.statistics().unread_closed == closed


@pytest.mark.parametrize(("goes_at", "closed"), [(1, 1), (2, 2)])
async def test_a_connection_that_ends_during_a_look_is_not_closed_as_idle(
    pipes: MemoryNet, goes_at: int, closed: int
) -> None:
    async with running_server(pipes, {HEARTBEAT: echo}) as harness:
        _, second = [await harness.connect() for _ in range(2)]
        await trio.sleep(4)  # less than the period of the sweeper's own looks
        harness.server._sweeper._max_idle_s = 1

        async def second_goes(pause: int) -> None:
            if pause == goes_at:
                second.close()
                await wait_until(lambda: not sum(harness.server.statistics().connections.values()))

        assert await look(harness, second_goes) == closed
        assert harness.server.statistics().idle_closed == closed


async def test_a_client_that_takes_its_replies_during_a_look_is_not_closed(
    pipes: MemoryNet,
) -> None:
    """Another is, which keeps less, because there is still no room."""
    async with running_server(pipes, {FETCH: lambda c, r: REPLY}) as harness:
        much, little = await unread(harness, ENOUGH + 100, ENOUGH)
        harness.server._services.backlog.most_ever = 0

        async def much_reads(pause: int) -> None:
            if pause == 3 * 2:  # whose turn it is to be closed is known
                for _ in range(ENOUGH + 100):
                    await much.receive_frame()

        await look(harness, much_reads)
        assert harness.server.statistics().unread_closed == 1
        await little.receive_until_closed()
        await much.send(request_frame(FETCH, 12))
        await much.receive_frame()
