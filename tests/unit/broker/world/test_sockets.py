"""The operating system's network: hosts, addresses, options, errors.

`test_stream_contract.py` holds the contract that sockets share with the network in memory.
"""

import errno
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import BuiltinMethodType

import pytest
import trio

from broker.world.sockets import (
    SocketListening,
    SocketStream,
    SocketTransport,
    _addresses,
    address_of,
)
from broker.world.transport import SYSTEM_DEFAULT, Address, BindError
from config.listener import Listener


def listen(
    host: str,
    port: int = 0,
    *,
    send_buffer: int = SYSTEM_DEFAULT,
    receive_buffer: int = SYSTEM_DEFAULT,
    transport: SocketTransport | None = None,
) -> SocketListening:
    listener = Listener(name="PLAINTEXT", host=host, port=port, protocol="PLAINTEXT")
    return (transport or SocketTransport()).listen(
        listener, backlog=5, send_buffer=send_buffer, receive_buffer=receive_buffer
    )


def accept(listening: SocketListening) -> SocketStream:
    async def main() -> SocketStream:
        with trio.fail_after(60):
            await listening.wait_acceptable()
        return listening.accept()

    return trio.run(main)


@contextmanager
def connected(
    listening: SocketListening, host: str = "127.0.0.1"
) -> Iterator[tuple[socket.socket, SocketStream]]:
    """The client's end and the server's; all is closed afterwards."""
    with (
        closing(listening),
        socket.create_connection((host, listening.bound.port), 5) as client,
        closing(accept(listening)) as server,
    ):
        yield client, server


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost", "::1"])
def test_every_kind_of_host(host: str) -> None:
    listening = listen(host)
    target = "127.0.0.1" if host in ("", "localhost") else host
    with connected(listening, target) as (client, server):
        assert server.peer == Address(target, client.getsockname()[1])
        assert server.local == Address(target, listening.bound.port)
    assert str(listening.bound).endswith(f":{listening.bound.port}")
    assert listening.bound.address in (("::", "0.0.0.0") if not host else (target,))


def test_an_address_with_a_zone_is_listened_on() -> None:
    listening = listen("::1%lo")
    assert str(listening.bound) == f"PLAINTEXT://[::1%lo]:{listening.bound.port}"
    with connected(listening, "::1") as (_, server):
        assert server.local == Address("::1", listening.bound.port)


def test_a_link_local_address_keeps_its_zone() -> None:
    listener = Listener(name="PLAINTEXT", host="fe80::1%lo", port=9092, protocol="PLAINTEXT")
    [(family, address)] = _addresses(listener)
    assert family == socket.AF_INET6
    assert address[1:] == (9092, 0, socket.if_nametoindex("lo"))


def test_the_wildcard_listens_on_ipv6_too() -> None:
    listening = listen("")
    assert listening.bound.host == "0.0.0.0"
    with connected(listening, "::1") as (_, server):
        assert server.peer.host == "::1"


def test_an_ipv4_address_within_ipv6_reads_as_ipv4() -> None:
    assert address_of(("::ffff:10.0.0.7", 9, 0, 0)) == Address("10.0.0.7", 9)
    assert address_of(("::ffff:a00:7", 9, 0, 0)) == Address("::ffff:a00:7", 9)
    assert address_of(("10.0.0.7", 9)) == Address("10.0.0.7", 9)


def test_a_port_in_use_is_one_clear_error() -> None:
    first = listen("127.0.0.1")
    with pytest.raises(BindError, match=r"^\[Errno 98\] [^;]*in use$"):
        listen("", first.bound.port)  # tried on IPv6 and on IPv4
    first.close()


def test_an_unknown_host_is_one_clear_error() -> None:
    with pytest.raises(BindError, match="Cannot resolve"):
        listen("no.such.host.invalid")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("localhost", "127.0.0.1"),
        ("10.0.0.7", "10.0.0.7"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::1%lo", "::1"),
    ],
)
def test_a_host_is_resolved_to_its_first_address(host: str, address: str) -> None:
    assert SocketTransport().resolve(host) == address


def test_of_several_addresses_ipv4_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        (family, socket.SOCK_STREAM, 6, "", (address, 0))
        for family, address in (
            (socket.AF_INET6, "2001:db8::1"),
            (socket.AF_INET, "192.0.2.1"),
            (socket.AF_INET, "192.0.2.2"),
        )
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **more: found)
    assert SocketTransport().resolve("h") == "192.0.2.1"
    del found[1:]
    assert SocketTransport().resolve("h") == "2001:db8::1"


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a..b", "a" * 64, "a\0b"])
def test_a_host_without_an_address_is_an_error_of_the_system(host: str) -> None:
    with pytest.raises(OSError):
        SocketTransport().resolve(host)


def test_accepted_sockets_have_the_options_that_were_asked_for() -> None:
    wanted = (  # Linux doubles sizes, for its own bookkeeping
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.SOL_SOCKET, socket.SO_SNDBUF, 120_000),
        (socket.SOL_SOCKET, socket.SO_RCVBUF, 100_000),
    )
    listening = listen("127.0.0.1", send_buffer=60_000, receive_buffer=50_000)
    with connected(listening) as (_, server):
        for level, option, value in wanted:
            assert server.source.getsockopt(level, option) == value, option


def test_no_frame_of_python_stands_between_the_hot_loop_and_the_system_call() -> None:
    with connected(listen("127.0.0.1")) as (_, server):
        assert isinstance(server.recv_into, BuiltinMethodType)
        assert isinstance(server.send, BuiltinMethodType)
        assert server.wait_readable.__func__ is trio.lowlevel.wait_readable
        assert server.wait_writable.__func__ is trio.lowlevel.wait_writable


def test_a_client_that_is_gone_before_it_was_looked_at_is_one_that_went_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def getsockname(self: socket.socket) -> tuple[str, int]:
        raise OSError("Transport endpoint is not connected")

    listening = listen("127.0.0.1")
    with socket.create_connection(("127.0.0.1", listening.bound.port), 5) as client:
        monkeypatch.setattr(socket.socket, "getsockname", getsockname)
        with pytest.raises(ConnectionAbortedError):
            accept(listening)
        assert client.recv(1) == b"", "its socket was closed"
    listening.close()


def test_streams_of_many_idle_connections_are_small() -> None:
    """Ten thousand idle connections are what a broker may have: no dictionaries."""
    with connected(listen("127.0.0.1")) as (_, server):
        assert not hasattr(server, "__dict__")


def test_a_client_gets_no_descriptor_from_the_ceiling_on() -> None:
    listening = listen("127.0.0.1", transport=SocketTransport(ceiling=3))
    with socket.create_connection(("127.0.0.1", listening.bound.port), 5) as client:
        with pytest.raises(OSError, match="for files") as caught:
            accept(listening)
        assert caught.value.errno == errno.EMFILE
        assert client.recv(1) == b""
    listening.close()


# ---- connecting


async def dialed(host: str, port: int) -> SocketStream:
    with trio.fail_after(60):
        return await SocketTransport().dial(
            host, port, send_buffer=SYSTEM_DEFAULT, receive_buffer=64 * 1024
        )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "::1%lo"])
@pytest.mark.usefixtures("loop")
async def test_a_broker_connects_to_any_kind_of_host(host: str) -> None:
    listening = listen(host)
    stream = await dialed(host, listening.bound.port)
    server = listening.accept()
    assert stream.peer == server.local
    assert stream.local == server.peer
    assert stream.source.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert not stream.source.getblocking()
    stream.send(b"hello")
    with trio.fail_after(60):
        await server.wait_readable()
    buffer = bytearray(5)
    assert server.recv_into(memoryview(buffer)) == 5
    assert buffer == b"hello"
    stream.close()
    server.close()
    listening.close()


def test_nobody_there_is_one_clear_error() -> None:
    listening = listen("127.0.0.1")
    port = listening.bound.port
    listening.close()
    with pytest.raises(ConnectionRefusedError, match="Connection refused"):
        trio.run(dialed, "127.0.0.1", port)
    with pytest.raises(OSError, match=r"Name or service not known|Temporary failure|not known"):
        trio.run(dialed, "no.such.host.invalid", 9)


@pytest.mark.usefixtures("loop")
async def test_connecting_can_be_given_up_and_leaves_no_socket() -> None:
    made: list[socket.socket] = []
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    with trio.move_on_after(0.05) as scope:
        while True:  # the kernel answers as many as fit into the backlog
            stream = await dialed("127.0.0.1", full.getsockname()[1])
            made.append(stream.source)
    assert scope.cancelled_caught
    for sock in (*made, full):
        sock.close()
