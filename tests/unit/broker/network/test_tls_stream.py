"""A stream that speaks TLS keeps the promises of `broker.world.transport.Stream`."""

import pytest
import trio

from broker.world.streams import receive_some, send_all
from broker.world.tls_stream import TlsStream
from broker.world.transport import SYSTEM_DEFAULT, Stream
from config.listener import Listener
from tests.support.networks import MemoryNet
from tests.support.tls_network import TlsNet, TlsTransport, shake

PATIENCE_S = 5


async def connected(net: TlsNet, buffers: int = SYSTEM_DEFAULT) -> tuple[TlsStream, TlsStream]:
    """(client's end, server's end), after the handshake."""
    listener = Listener(name="PLAINTEXT", host="127.0.0.1", port=0, protocol="PLAINTEXT")
    listening = TlsTransport(net.transport, net.secured).listen(
        listener, backlog=5, send_buffer=buffers, receive_buffer=buffers
    )
    client = net.connect(listening.bound.port)
    await listening.wait_acceptable()
    server = listening.accept()
    listening.close()
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(shake, client)
            nursery.start_soon(shake, server)
    return client, server


async def exchanged(sender: Stream, receiver: Stream, content: bytes) -> None:
    """Send and receive at once, as a handshake needs both sides."""
    received = bytearray()
    buffer = memoryview(bytearray(10_000))
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_all, sender, content)
            while len(received) < len(content):
                received += buffer[: await receive_some(receiver, buffer)]
    assert received == content


async def test_decrypted_bytes_are_readable_though_nothing_waits_below(tls: TlsNet) -> None:
    client, server = await connected(tls)
    client.send(b"one record")
    await server.wait_readable()
    few = bytearray(3)
    assert server.recv_into(memoryview(few)) == 3
    await tls.settle()
    with pytest.raises(BlockingIOError):
        server.below.recv_into(memoryview(bytearray(1)))
    with trio.fail_after(PATIENCE_S):
        await server.wait_readable()
    assert not server.tells_again
    rest = bytearray(100)
    assert few + rest[: server.recv_into(memoryview(rest))] == b"one record"
    with pytest.raises(BlockingIOError):
        server.recv_into(memoryview(rest))
    client.close()
    server.close()


async def test_bytes_left_inside_ssl_by_a_small_receive_are_readable(tls: TlsNet) -> None:
    """`SSLObject.read` itself keeps the rest."""
    client, server = await connected(tls)
    client.send(b"one record")
    await server.below.wait_readable()
    few = bytearray(3)
    assert server.recv_into(memoryview(few)) == 3
    assert server.tls.pending() == 7
    with trio.fail_after(PATIENCE_S):
        await server.wait_readable()
    rest = bytearray(100)
    assert few + rest[: server.recv_into(memoryview(rest))] == b"one record"
    client.close()
    server.close()


@pytest.mark.parametrize("size", [20, 700])
async def test_a_pipe_smaller_than_a_record_carries_handshake_and_records(
    pipes: MemoryNet, size: int
) -> None:
    tls = TlsNet(pipes)
    content = bytes(range(256)) * 100
    client, server = await connected(tls, size)
    await exchanged(client, server, content)
    await exchanged(server, client, content)
    client.close()
    server.close()


async def test_half_a_record_is_nothing_to_be_received(pipes: MemoryNet) -> None:
    tls = TlsNet(pipes)
    client, server = await connected(tls, 20)
    with pytest.raises(BlockingIOError):
        client.send(b"one record")
    await tls.settle()
    with pytest.raises(BlockingIOError):
        server.recv_into(memoryview(bytearray(100)))
    assert server.tells_again
    await exchanged(client, server, b"one record")
    client.close()
    server.close()


async def test_an_end_in_order_is_an_end_and_any_other_is_a_reset(tls: TlsNet) -> None:
    buffer = memoryview(bytearray(100))
    for in_order in (True, False):
        client, server = await connected(tls)
        client.send(b"last words")
        (client if in_order else client.below).close()
        with trio.fail_after(PATIENCE_S):
            assert await receive_some(server, buffer) == 10
            await server.wait_readable()
        if in_order:
            assert server.recv_into(buffer) == server.recv_into(buffer) == 0
        else:
            for _ in range(2):
                with pytest.raises(ConnectionResetError):
                    server.recv_into(buffer)
        client.close()
        server.close()


async def test_closing_with_unread_bytes_over_tls_is_a_reset(tls: TlsNet) -> None:
    client, server = await connected(tls)
    server.send(b"unread")
    await client.wait_readable()
    client.close()
    client.close()
    with trio.fail_after(PATIENCE_S), pytest.raises(ConnectionResetError):
        await receive_some(server, memoryview(bytearray(100)))
    server.close()
    for use in (lambda: client.send(b"x"), lambda: client.recv_into(memoryview(bytearray(1)))):
        with pytest.raises(OSError, match="closed"):
            use()
