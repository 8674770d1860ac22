"""One contract, two networks: what `broker.world.transport` says holds for both."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import assert_checkpoints

from broker.world.streams import receive_some, send_all
from broker.world.transport import SYSTEM_DEFAULT, BindError, Listening, Stream
from config.listener import Listener
from tests.support.networks import Net

NOT_CONNECTED = (BrokenPipeError, ConnectionResetError)


def listen(net: Net, port: int = 0) -> Listening:
    listener = Listener(name="PLAINTEXT", host="127.0.0.1", port=port, protocol="PLAINTEXT")
    return net.transport.listen(
        listener, backlog=5, send_buffer=SYSTEM_DEFAULT, receive_buffer=SYSTEM_DEFAULT
    )


@asynccontextmanager
async def connected(net: Net) -> AsyncIterator[tuple[Any, Any]]:
    """(client's end, server's end)."""
    listening = listen(net)
    client = net.connect(listening.bound.port)
    await listening.wait_acceptable()
    server = listening.accept()
    try:
        yield client, server
    finally:
        for either in (client, server, listening):
            either.close()


def on_both(test: Callable[..., Any]) -> Callable[[Net], Awaitable[None]]:
    """A test that gets a network and both ends of a connection."""

    async def run(net: Net) -> None:
        async with connected(net) as (client, server):
            await test(net, client, server)

    return run


def received(stream: Stream, most: int = 1 << 20) -> bytes:
    """The bytes of one receive."""
    buffer = bytearray(most)
    return bytes(buffer[: stream.recv_into(memoryview(buffer))])


async def receive(stream: Stream, size: int) -> bytes:
    """So many bytes, waited for."""
    buffer = bytearray(size)
    view = memoryview(buffer)
    while view:
        count = await receive_some(stream, view)
        assert count, "ended early"
        view = view[count:]
    return bytes(buffer)


def fill(stream: Stream) -> int:
    """Send until nothing more is taken; how many bytes."""
    sent = 0
    while True:
        try:
            sent += stream.send(bytes(65536))
        except BlockingIOError:
            return sent


@on_both
async def test_bytes_arrive_as_they_were_sent(net: Net, client: Stream, server: Stream) -> None:
    for there, back in ((client, server), (server, client)):
        with pytest.raises(BlockingIOError):
            received(back)
        assert there.send(b"") == 0
        assert there.send(b"abc") == 3
        assert there.send_part(memoryview(b"de")) == 2
        assert there.send(bytearray(b"fgh")) == 3
        await back.wait_readable()
        assert await receive(back, 3) == b"abc"
        assert await receive(back, 4) == b"defg"
        assert received(back) == b"h"
        with pytest.raises(BlockingIOError):
            received(back)


@on_both
async def test_the_addresses_of_both_ends_are_each_others(
    net: Net, client: Stream, server: Stream
) -> None:
    assert (client.local, client.peer) == (server.peer, server.local)
    assert (server.local.host, server.peer.host) == ("127.0.0.1", "127.0.0.1")
    assert server.local.port != server.peer.port


@on_both
async def test_a_slow_reader_makes_the_sender_wait(
    net: Net, client: Stream, server: Stream
) -> None:
    sent = fill(server)
    assert sent > 0
    with pytest.raises(BlockingIOError):
        server.send(b"x")
    went_on = trio.Event()

    async def wait() -> None:
        await server.wait_writable()
        server.send(b"x")
        went_on.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await net.settle()
        assert not went_on.is_set()
        assert await receive(client, sent) == bytes(sent)
        await went_on.wait()
        assert await receive(client, 1) == b"x"


@on_both
async def test_much_goes_both_ways_at_once(net: Net, client: Stream, server: Stream) -> None:
    there, back = bytes(range(256)) * 20_000, bytes(range(255)) * 20_000

    async def check(stream: Stream, content: bytes) -> None:
        assert await receive(stream, len(content)) == content

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send_all, client, there)
        nursery.start_soon(send_all, server, back)
        nursery.start_soon(check, server, there)
        nursery.start_soon(check, client, back)


@on_both
async def test_what_was_sent_before_the_end_is_received(
    net: Net, client: Stream, server: Stream
) -> None:
    client.send(b"last words")
    client.close()
    client.close()
    await server.wait_readable()
    assert await receive(server, 4) == b"last"
    assert await receive(server, 6) == b" words"
    await server.wait_readable()
    assert received(server) == received(server) == b""


@on_both
async def test_a_half_closed_stream_goes_on_in_the_other_direction(
    net: Net, client: Stream, server: Stream
) -> None:
    client.send(b"a request")
    net.send_eof(client)
    assert await receive(server, 9) == b"a request"
    await server.wait_readable()
    assert received(server) == b""
    assert server.send(b"a reply") == 7
    assert await receive(client, 7) == b"a reply"
    with pytest.raises(BrokenPipeError):
        client.send(b"more")
    server.close()
    await client.wait_readable()
    assert received(client) == b""


@on_both
async def test_a_reset_is_seen_behind_what_had_arrived(
    net: Net, client: Stream, server: Stream
) -> None:
    client.send(b"before")
    await server.wait_readable()
    net.reset(client)
    await net.settle()
    assert received(server) == b"before"
    await server.wait_readable()
    with pytest.raises(ConnectionResetError):
        received(server)
    with pytest.raises(NOT_CONNECTED):
        server.send(b"x")


@on_both
async def test_closing_with_unread_bytes_is_a_reset(
    net: Net, client: Stream, server: Stream
) -> None:
    server.send(b"unread")
    await client.wait_readable()
    client.close()
    await server.wait_readable()
    with pytest.raises(ConnectionResetError):
        received(server)


@on_both
async def test_sending_to_a_peer_that_has_closed_fails(
    net: Net, client: Stream, server: Stream
) -> None:
    client.close()
    with pytest.raises(NOT_CONNECTED):
        for _ in range(10):
            server.send(b"x")
            await net.settle()


@on_both
async def test_a_waiter_is_woken_by_an_end_and_by_a_reset(
    net: Net, client: Stream, server: Stream
) -> None:
    async with connected(net) as (other_client, other_server):
        fill(other_server)
        woken: list[str] = []

        async def wait(name: str, condition: Callable[[], Any]) -> None:
            await condition()
            woken.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, "end", server.wait_readable)
            nursery.start_soon(wait, "reset", other_server.wait_readable)
            nursery.start_soon(wait, "in vain", other_server.wait_writable)
            await net.settle()
            assert woken == []
            client.close()
            await net.settle()
            assert woken == ["end"]
            net.reset(other_client)
            await net.settle()
            assert sorted(woken) == ["end", "in vain", "reset"]


@on_both
async def test_waiting_is_a_checkpoint_and_can_be_cancelled(
    net: Net, client: Stream, server: Stream
) -> None:
    with assert_checkpoints():
        await server.wait_writable()
    client.send(b"x")
    await server.wait_readable()
    with assert_checkpoints():
        await server.wait_readable()
    received(server)
    for wait in (server.wait_readable, server.wait_writable):
        with trio.CancelScope() as scope:
            scope.cancel()
            await wait()
        assert scope.cancelled_caught
    client.send(b"y")
    await server.wait_readable()
    assert received(server) == b"y", "nobody waits who was cancelled"


@on_both
async def test_a_closed_stream_cannot_be_used(net: Net, client: Stream, server: Stream) -> None:
    client.send(b"x")
    await server.wait_readable()
    server.close()
    for use in (lambda: received(server), lambda: server.send(b"x")):
        with pytest.raises(OSError, match=r"."):
            use()


@on_both
async def test_files_are_sent_by_streams_that_say_so(
    net: Net, client: Stream, server: Stream
) -> None:
    assert server.sends_files is not net.in_memory
    if server.sends_files:
        with tempfile.TemporaryFile() as file:
            file.write(bytes(range(100)))
            file.flush()
            assert server.send_file(file.fileno(), 10, 20) == 20
            assert server.send_file(file.fileno(), 90, 20) == 10
            assert server.send_file(file.fileno(), 100, 20) == 0
        assert await receive(client, 30) == bytes([*range(10, 30), *range(90, 100)])


async def test_streams_are_accepted_in_the_order_in_which_they_came(net: Net) -> None:
    listening = listen(net)
    with pytest.raises(BlockingIOError):
        listening.accept()
    clients = [net.connect(listening.bound.port) for _ in range(3)]
    clients[0].send(b"said before it was accepted")
    with assert_checkpoints():
        await listening.wait_acceptable()
    servers = []
    for client in clients:
        await listening.wait_acceptable()
        servers.append(listening.accept())
        assert servers[-1].peer == client.local
    assert await receive(servers[0], 4) == b"said"
    with pytest.raises(BlockingIOError):
        listening.accept()
    for either in (*clients, *servers, listening):
        either.close()


async def test_a_client_or_the_end_of_listening_wakes_the_acceptor(net: Net) -> None:
    listening = listen(net)
    woken: list[int] = []

    async def wait() -> None:
        await listening.wait_acceptable()
        woken.append(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await net.settle()
        assert not woken
        client = net.connect(listening.bound.port)
        await net.settle()
        assert woken == [1]
        listening.accept().close()
        client.close()
        nursery.start_soon(wait)
        await net.settle()
        assert woken == [1]
        assert listening.is_open
        listening.close()
        assert not listening.is_open
        await net.settle()
        assert woken == [1, 1]
        with pytest.raises(OSError, match=r"."):
            listening.accept()


async def test_a_port_is_one_listeners_until_it_is_given_back(net: Net) -> None:
    first = listen(net)
    port = first.bound.port
    assert listen_and_close(net) != port
    with pytest.raises(BindError, match="in use"):
        listen(net, port)
    waiting = net.connect(port)
    first.close()
    first.close()
    await waiting.wait_readable()
    with pytest.raises(ConnectionResetError):
        received(waiting)
    waiting.close()
    with pytest.raises(ConnectionRefusedError):
        net.connect(port)
    second = listen(net, port)
    assert second.bound == first.bound
    net.connect(port).close()
    second.close()


def listen_and_close(net: Net) -> int:
    listening = listen(net)
    listening.close()
    return listening.bound.port
