"""A readiness reports streams of sockets and in memory alike (`broker.world.readiness`)."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from broker.world.readiness import (
    BROKEN,
    HANGUP,
    IN,
    ONCE,
    OUT,
    READABLE,
    WRITABLE,
    Readiness,
)
from tests.support.networks import Net
from tests.unit.broker.world.test_stream_contract import connected, fill, received

RDHUP = HANGUP & ~BROKEN


def on_both(mask: int) -> Callable[[Callable[..., Any]], Callable[[Net], Awaitable[None]]]:
    """A test that gets a network, both ends of a connection, and a readiness with the server's."""

    def decorate(test: Callable[..., Any]) -> Callable[[Net], Awaitable[None]]:
        async def run(net: Net) -> None:
            async with connected(net) as (client, server):
                readiness = net.transport.readiness()
                key = readiness.add(server.source, mask)
                await test(net, client, server, readiness, key)

        return run

    return decorate


def told(readiness: Readiness, key: int) -> int:
    """The events of one stream, the only one."""
    found = dict(readiness.poll(0, 8))
    assert set(found) <= {key}
    return found.get(key, 0)


@on_both(READABLE.mask)
async def test_bytes_are_told_of_until_they_are_received(
    net: Net, client: Any, server: Any, readiness: Readiness, key: int
) -> None:
    assert told(readiness, key) == 0
    client.send(b"abc")
    await net.settle()
    for _ in range(2):
        assert told(readiness, key) == IN
    assert received(server, 2) == b"ab"
    assert told(readiness, key) == IN
    assert received(server, 2) == b"c"
    assert told(readiness, key) == 0


@on_both(RDHUP | ONCE)
async def test_a_hang_up_behind_unread_bytes_is_told_of_once(
    net: Net, client: Any, server: Any, readiness: Readiness, key: int
) -> None:
    client.send(b"sent ahead")
    await net.settle()
    assert told(readiness, key) == 0
    client.close()
    await net.settle()
    assert told(readiness, key) & RDHUP
    assert told(readiness, key) == 0
    readiness.modify(key, READABLE.mask)
    for _ in range(2):
        assert told(readiness, key) & (IN | RDHUP) == IN | RDHUP


@on_both(READABLE.mask)
async def test_a_half_closed_stream_has_hung_up(
    net: Net, client: Any, server: Any, readiness: Readiness, key: int
) -> None:
    net.send_eof(client)
    await net.settle()
    assert told(readiness, key) == IN | RDHUP
    assert received(server) == b""


@on_both(WRITABLE.mask)
async def test_a_reset_is_told_of_though_nobody_asked(
    net: Net, client: Any, server: Any, readiness: Readiness, key: int
) -> None:
    net.reset(client)
    await net.settle()
    assert told(readiness, key) & BROKEN


@on_both(WRITABLE.mask)
async def test_room_to_send_is_told_of(
    net: Net, client: Any, server: Any, readiness: Readiness, key: int
) -> None:
    assert told(readiness, key) == OUT
    size = fill(server)
    assert told(readiness, key) == 0
    while size:
        await client.wait_readable()
        size -= len(received(client))
    await net.settle()
    assert told(readiness, key) == OUT
    readiness.modify(key, READABLE.mask)
    assert told(readiness, key) == 0


@on_both(READABLE.mask)
async def test_waiting_ends_when_there_is_something_to_tell(
    net: Net, client: Any, server: Any, readiness: Readiness, key: int
) -> None:
    went_on = trio.Event()

    async def wait() -> None:
        await readiness.wait()
        went_on.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await net.settle()
        assert not went_on.is_set()
        client.send(b"x")
        await went_on.wait()


async def test_each_of_many_streams_is_reported_in_turn(net: Net) -> None:
    readiness = net.transport.readiness()
    async with connected(net) as (one, _one), connected(net) as (two, _two):
        keys = [readiness.add(server.source, READABLE.mask) for server in (_one, _two)]
        one.send(b"x")
        two.send(b"x")
        await net.settle()
        found = [readiness.poll(0, 1)[0][0] for _ in range(4)]
        assert sorted(found) == sorted(keys * 2)
        assert found[0] != found[1]
        _one.close()
        readiness.forget(keys[0])
        assert dict(readiness.poll(0, 8)) == {keys[1]: IN}


async def test_what_is_ready_already_is_told_of_when_it_is_added(net: Net) -> None:
    readiness = net.transport.readiness()
    async with connected(net) as (client, server):
        client.send(b"x")
        await net.settle()
        key = readiness.add(server.source, READABLE.mask)
        with trio.fail_after(60):
            await readiness.wait()
        assert told(readiness, key) == IN


@pytest.mark.parametrize("wait", [READABLE, WRITABLE])
def test_what_is_awaited_goes_on_with_a_broken_stream(wait: Any) -> None:
    assert wait.mask & BROKEN == BROKEN
