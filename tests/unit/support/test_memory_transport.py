"""The network in memory: ports, the death and the pause of a process, the same order every time.

`test_stream_contract.py` holds the contract that it shares with sockets.
"""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio._core import _run
from trio.testing import wait_all_tasks_blocked

from broker.world.streams import receive_some, send_all
from broker.world.transport import SYSTEM_DEFAULT, Address, BindError
from config.listener import Listener
from tests.support.memory_stream import MemoryStream
from tests.support.memory_transport import (
    BUFFER_BYTES,
    FIRST_FREE_PORT,
    MemoryListening,
    MemoryNetwork,
    MemoryTransport,
)

HOST, PORT = "b1", 9092

pytestmark = pytest.mark.usefixtures("loop")


def listen(
    transport: MemoryTransport,
    host: str = HOST,
    port: int = PORT,
    *,
    backlog: int = 5,
    send_buffer: int = SYSTEM_DEFAULT,
    receive_buffer: int = SYSTEM_DEFAULT,
) -> MemoryListening:
    listener = Listener(name="PLAINTEXT", host=host, port=port, protocol="PLAINTEXT")
    return transport.listen(
        listener, backlog=backlog, send_buffer=send_buffer, receive_buffer=receive_buffer
    )


def processes(count: int = 2) -> list[MemoryTransport]:
    network = MemoryNetwork()
    return [MemoryTransport(network) for _ in range(count)]


def received(stream: MemoryStream) -> bytes:
    buffer = bytearray(1 << 20)
    return bytes(buffer[: stream.recv_into(memoryview(buffer))])


def fill(stream: MemoryStream) -> int:
    sent = 0
    while True:
        try:
            sent += stream.send(bytes(1000))
        except BlockingIOError:
            return sent


# ---- ports


def test_ports_are_given_out_one_after_the_other_without_those_taken() -> None:
    server, client = processes()
    listen(server, port=FIRST_FREE_PORT + 1)
    assert [listen(server, port=0).bound.port for _ in range(3)] == [49152, 49154, 49155]
    assert client.connect(HOST, FIRST_FREE_PORT).local.port == 49156


def test_the_last_port_is_followed_by_the_first() -> None:
    network = MemoryNetwork()
    assert [network.free_port() for _ in range(65536 - FIRST_FREE_PORT)][-1] == 65535
    assert network.free_port() == FIRST_FREE_PORT


def test_brokers_at_different_hosts_may_have_the_same_port() -> None:
    one, two, client = processes(3)
    first, second = listen(one, "b1"), listen(two, "b2")
    stream = client.connect("b2", PORT, from_host="c7")
    assert stream.peer == Address("b2", PORT)
    assert stream.local.host == "c7"
    assert second.accept().peer == stream.local
    with pytest.raises(BlockingIOError):
        first.accept()


@pytest.mark.parametrize("wildcard", ["", "0.0.0.0", "::"])
def test_a_listener_without_a_host_has_every_address(wildcard: str) -> None:
    server, client = processes()
    listening = listen(server, wildcard)
    assert listening.bound.host == (wildcard or "0.0.0.0")
    for host in ("b1", "127.0.0.1", "localhost"):
        client.connect(host, PORT)
        # Clients get this host when nothing is advertised.
        assert listening.accept().local.host == ("b1" if host == "b1" else "127.0.0.1")
    for taken in ("b1", "", "::"):
        with pytest.raises(BindError, match="in use"):
            listen(server, taken)
    listening.close()
    listen(server, "b1")
    with pytest.raises(BindError, match="in use"):
        listen(server, wildcard)


def test_localhost_is_127_0_0_1() -> None:
    server, client = processes()
    listen(server, "localhost")
    client.connect("127.0.0.1", PORT)
    with pytest.raises(BindError):
        listen(server, "127.0.0.1")


def test_a_full_backlog_refuses() -> None:
    server, client = processes()
    listening = listen(server, backlog=2)
    client.connect(HOST, PORT)
    client.connect(HOST, PORT)
    with pytest.raises(ConnectionRefusedError):
        client.connect(HOST, PORT)
    listening.accept()
    client.connect(HOST, PORT)


@pytest.mark.parametrize("size", [1, 5000, SYSTEM_DEFAULT, 0])
def test_buffers_have_the_size_that_was_asked_for(size: int) -> None:
    server, client = processes()
    listening = listen(server, send_buffer=size, receive_buffer=size)
    there, back = client.connect(HOST, PORT), listening.accept()
    for stream in (there, back):
        assert fill(stream) == (size if size > 0 else BUFFER_BYTES)


def test_both_directions_have_a_size_of_their_own() -> None:
    server, client = processes()
    listening = listen(server, send_buffer=100, receive_buffer=7)
    there, back = client.connect(HOST, PORT), listening.accept()
    assert (fill(there), fill(back)) == (7, 100)


async def test_an_end_of_sending_wakes_the_peer_and_a_reset_is_an_end() -> None:
    server, client = processes()
    listening = listen(server)
    there, back = client.connect(HOST, PORT), listening.accept()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(back.wait_readable)
        await wait_all_tasks_blocked()
        assert not back.peer_has_closed()
        there.send_eof()
    assert back.peer_has_closed()
    back.abort()
    assert there.peer_has_closed()


# ---- a process that is killed


async def test_the_peers_of_a_killed_process_are_reset_and_its_ports_are_free() -> None:
    server, client = processes()
    listening = listen(server)
    streams = [client.connect(HOST, PORT) for _ in range(3)]
    accepted = [listening.accept(), listening.accept()]  # the third is in the backlog
    accepted[0].send(b"half a rep")
    outgoing = listen(client, "c1")
    outward = server.connect("c1", PORT)
    woken: list[int] = []

    async def wait(number: int, stream: MemoryStream) -> None:
        await stream.wait_readable()
        woken.append(number)

    async with trio.open_nursery() as nursery:
        for number, stream in enumerate(streams[1:]):
            nursery.start_soon(wait, number, stream)
        await wait_all_tasks_blocked()
        server.kill()
    assert sorted(woken) == [0, 1]
    assert received(streams[0]) == b"half a rep", "it had arrived"
    for stream in (*streams, outgoing.accept()):
        with pytest.raises(ConnectionResetError):
            received(stream)
        with pytest.raises(ConnectionResetError):
            stream.send(b"x")
    with pytest.raises(ConnectionRefusedError):
        client.connect(HOST, PORT)
    successor = MemoryTransport(client.network)
    again = listen(successor)
    client.connect(HOST, PORT).send(b"hello")
    assert received(again.accept()) == b"hello"
    assert outward.local != again.bound


async def test_a_killed_process_does_not_learn_of_its_death() -> None:
    """Its tasks stay where they wait, or get there, until whoever killed it cancels them."""
    server, client = processes()
    listening = listen(server)
    client.connect(HOST, PORT)
    stream = listening.accept()
    fill(stream)
    woken: list[str] = []

    async def wait(name: str, condition: Callable[[], Any]) -> None:
        await condition()
        woken.append(name)

    async def use() -> None:
        await resumed.wait()
        await receive_some(stream, memoryview(bytearray(1)))
        woken.append("read")

    resumed = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "readable", stream.wait_readable)
        nursery.start_soon(wait, "writable", stream.wait_writable)
        nursery.start_soon(wait, "acceptable", listening.wait_acceptable)
        nursery.start_soon(use)
        await wait_all_tasks_blocked()
        server.kill()
        resumed.set()
        server.thaw()
        await wait_all_tasks_blocked()
        assert woken == []
        nursery.cancel_scope.cancel()
    for action in (stream.close, listening.close, server.kill):
        action()
    for attempt in (stream.has_ended, listening.accept, lambda: stream.send(b"x")):
        with pytest.raises(BlockingIOError):
            attempt()
    with pytest.raises(OSError, match="killed"):
        server.connect(HOST, PORT)
    with pytest.raises(BindError):
        listen(server)


# ---- a process that is paused


async def test_a_paused_process_neither_takes_nor_gives_and_its_peers_go_on() -> None:
    server, client = processes()
    listening = listen(server, backlog=1)
    there = client.connect(HOST, PORT)
    back = listening.accept()
    there.send(b"before")
    server.freeze()
    client.connect(HOST, PORT)
    with pytest.raises(ConnectionRefusedError):  # nobody takes clients from the backlog
        client.connect(HOST, PORT)
    assert fill(there) == BUFFER_BYTES - len(b"before")
    there.send_eof()
    woken: list[str] = []

    async def wait(name: str, condition: Callable[[], Any]) -> None:
        await condition()
        woken.append(name)

    for attempt in (listening.accept, back.has_ended, lambda: back.send(b"x")):
        with pytest.raises(BlockingIOError):
            attempt()
    assert not back.peer_has_closed()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "acceptable", listening.wait_acceptable)
        nursery.start_soon(wait, "readable", back.wait_readable)
        nursery.start_soon(wait, "writable", back.wait_writable)
        await wait_all_tasks_blocked()
        assert woken == []
        server.thaw()
    assert sorted(woken) == ["acceptable", "readable", "writable"]
    assert received(back)[:6] == b"before"
    assert back.peer_has_closed()
    assert back.send(b"x") == 1
    listening.accept()


# ---- the same calls, the same run


def history(buffer_bytes: int) -> list[tuple[Any, ...]]:
    """The order in which the clients and the tasks of a server that echoes are woken."""
    _run._r.seed(0)
    seen: list[tuple[Any, ...]] = []

    async def echo(stream: MemoryStream) -> None:
        buffer = memoryview(bytearray(700))
        while size := await receive_some(stream, buffer):
            seen.append(("server", stream.peer.port, size))
            await send_all(stream, bytes(buffer[:size]))
        stream.close()

    async def main() -> None:
        network = MemoryNetwork(buffer_bytes=buffer_bytes)
        server, crowd = MemoryTransport(network), MemoryTransport(network)
        listening = listen(server)

        async def serve(nursery: trio.Nursery) -> None:
            for _ in range(5):
                await listening.wait_acceptable()
                nursery.start_soon(echo, listening.accept())

        async def ask(number: int) -> None:
            stream = crowd.connect(HOST, PORT)
            async with trio.open_nursery() as both:
                both.start_soon(send_all, stream, bytes(4000 + number))
                rest = 4000 + number
                buffer = memoryview(bytearray(300))
                while rest:
                    rest -= await receive_some(stream, buffer)
                    seen.append(("client", number, rest))
            stream.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, nursery)
            for number in range(5):
                nursery.start_soon(ask, number)

    trio.run(main)
    return seen


def test_the_same_calls_give_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    # Trio shuffles who is ready to run; like this with what `history` has seeded.
    monkeypatch.setattr(_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
    first = history(1000)
    padding = [object() for _ in range(1000)]  # other addresses in memory
    assert history(1000) == first
    assert len(padding) == 1000
    assert history(999) != first
