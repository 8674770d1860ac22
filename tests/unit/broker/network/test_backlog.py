"""The replies that blocked connections keep are bounded, and given back (docs/limits.md)."""

from typing import Any

import pytest
import trio

from broker.network.backlog import TURN_REPLY_BYTES, WORTH_RETURNING, Backlog, return_memory
from broker.request import RequestContext
from tests.support.connection_requests import (
    DELETE_GROUPS,
    FETCH,
    HEARTBEAT,
    deleted,
    echo,
    fetch_reply,
    groups,
    heartbeat,
)
from tests.support.fake_handlers import AsyncClient, Harness, connected, running_server
from tests.support.memory_transport import BUFFER_BYTES
from tests.support.networks import MemoryNet, Net, wait_until
from tests.support.wire_client import request_frame

REPLY = fetch_reply(bytes(20_000))
A_TURN = TURN_REPLY_BYTES // 20_000 + 1
"""Replies after which a turn is over."""


@pytest.mark.parametrize(("kept", "is_long"), [(0, False), (100, False), (101, True)])
def test_it_is_long_beyond_its_limit(kept: int, is_long: bool) -> None:
    backlog = Backlog(100)
    backlog.add(kept)
    assert backlog.is_long is is_long
    backlog.add(-kept)
    assert not backlog.is_long


@pytest.mark.parametrize(
    ("most", "now", "is_over"),
    [
        (WORTH_RETURNING - 1, 0, False),
        (WORTH_RETURNING, 0, True),
        (WORTH_RETURNING, WORTH_RETURNING // 4 - 1, True),
        (WORTH_RETURNING, WORTH_RETURNING // 4, False),
    ],
)
def test_memory_is_returned_once_when_most_is_gone(most: int, now: int, is_over: bool) -> None:
    backlog = Backlog()
    backlog.add(most)
    assert not backlog.is_over() or now == most
    backlog.add(now - most)
    assert backlog.is_over() is is_over
    assert not backlog.is_over()


def test_memory_can_be_returned() -> None:
    return_memory()


def backlog_of(harness: Harness) -> Backlog:
    return harness.server._services.backlog


async def ask(client: AsyncClient, count: int) -> None:
    await client.send(request_frame(FETCH, 12) * count)


async def test_a_client_that_reads_nothing_is_not_served_any_further(net: Net) -> None:
    """It gets what it asked for when it reads."""
    seen: list[str] = []

    def fetch(ctx: RequestContext, request: Any) -> Any:
        seen.append(str(ctx.client_id))
        return REPLY

    async with connected(net, {FETCH: fetch, HEARTBEAT: echo}) as (harness, client):
        await ask(client, 2_000)  # 40 MB, of which the system takes some
        await wait_until(lambda: backlog_of(harness).bytes > 0)
        await net.settle()
        asked = len(seen)
        assert asked < 2_000
        assert TURN_REPLY_BYTES < backlog_of(harness).bytes + 40_000 < 3 * 131_072 + 80_000
        other = await harness.connect()
        await other.send(heartbeat(1, 7))
        assert (await other.response(HEARTBEAT, 4, 1)).throttle_time_ms == 7
        assert len(seen) == asked
        for _ in range(2_000):
            await client.receive_frame()
        await wait_until(lambda: backlog_of(harness).bytes == 0)
        assert len(seen) == 2_000


@pytest.mark.parametrize("resets", [True, False])
async def test_what_was_kept_is_given_back_when_the_client_goes(net: Net, resets: bool) -> None:
    async with connected(net, {FETCH: lambda c, r: REPLY}) as (harness, client):
        await ask(client, 2_000)
        await wait_until(lambda: backlog_of(harness).bytes > 0)
        (connection,) = harness.server._connections
        if resets:
            net.reset(client.stream)
        else:
            client.close()
        await wait_until(lambda: backlog_of(harness).bytes == 0)
        # An error may still refer to the connection.
        assert not connection._replies._out


async def test_a_reply_counts_here_or_with_the_large_ones(pipes: MemoryNet) -> None:
    """A reply that is built in turns has room of its own (`LargeMessages`)."""
    large = fetch_reply(bytes(2_000_000))
    async with connected(
        pipes, {FETCH: lambda c, r: large, DELETE_GROUPS: lambda c, r: deleted(r.groups_names)}
    ) as (harness, client):
        await client.send(request_frame(DELETE_GROUPS, 2, groups(100_000)))
        await wait_until(lambda: harness.requests.large._unsent_bytes() > 1_000_000)
        await pipes.settle()
        assert harness.server.statistics().replying == 1
        assert backlog_of(harness).bytes == 0
        other = await harness.connect()
        await other.send(request_frame(FETCH, 12))
        await pipes.settle()
        assert 2_000_000 - BUFFER_BYTES <= backlog_of(harness).bytes < 2_001_000


async def test_beyond_the_limit_those_who_keep_most_and_take_nothing_are_closed(
    pipes: MemoryNet,
) -> None:
    async def reads(client: AsyncClient) -> None:
        while True:
            await client.receive_frame()
            await trio.sleep(3)

    async with running_server(pipes, {FETCH: lambda c, r: REPLY}) as harness:
        harness.server._services.backlog = Backlog(most_ever=150_000)
        much, little, reading = [await harness.connect() for _ in range(3)]
        enough = BUFFER_BYTES // 20_000 + 2
        await ask(much, enough + 200)
        await ask(little, enough)
        await ask(reading, enough + 200)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reads, reading)
            await trio.sleep(9)
            assert harness.server.statistics().connections["PLAINTEXT"] == 3
            assert backlog_of(harness).bytes > 150_000
            await trio.sleep(8)
            assert harness.server.statistics().connections["PLAINTEXT"] == 2
            assert harness.server.statistics().unread_closed == 1
            await much.receive_until_closed()
            for _ in range(enough):
                await little.receive_frame()
            nursery.cancel_scope.cancel()


async def test_memory_is_returned_after_a_crowd_that_took_nothing(
    pipes: MemoryNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    returned: list[float] = []
    monkeypatch.setattr(
        "broker.network.sweeper.return_memory", lambda: returned.append(trio.current_time())
    )
    async with running_server(pipes, {FETCH: lambda c, r: REPLY}) as harness:
        backlog_of(harness).add(WORTH_RETURNING)
        await trio.sleep(6)
        assert not returned
        backlog_of(harness).add(-WORTH_RETURNING)
        await trio.sleep(12)
        assert len(returned) == 1
