"""The two networks that a test may run on: sockets in real time, pipes in virtual time.

A test that takes the fixture `net` runs on both, and uses the network only through `net`:

    async def test_…(net: Net) -> None:
        listening = net.transport.listen(...)
        client = net.connect(listening.bound.port)
        ...

`tests/unit/broker/conftest.py` runs it with `Net.run`.

In memory no real time passes: when all tasks wait, time jumps to the next deadline.
"""

import socket
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import pytest
import trio
import trio.testing

from broker.world.clock import SystemClock, TaskClock
from broker.world.machine import MachineWorkers
from broker.world.sockets import SocketStream, SocketTransport, address_of
from broker.world.transport import Stream, Transport
from broker.world.workers import InlineWorkers, Workers
from tests.support.memory_stream import MemoryStream
from tests.support.memory_transport import MemoryNetwork, MemoryTransport
from tests.support.socket_reset import reset_socket
from tests.support.trio_clock import TrioClock

only_in_memory = pytest.mark.parametrize("net", ["memory"], indirect=True)
"""A test that takes the fixture `net` runs in memory alone, because it counts on virtual time."""

LONGEST_S = 20
LOOPBACK = "127.0.0.1"


class Net(Protocol):
    """The network's interface for tests."""

    in_memory: bool
    transport: Transport
    clock: TaskClock
    workers: Workers

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run a test, which fails if it takes longer than `LONGEST_S`."""
        ...

    def connect(self, port: int) -> Stream:
        """Connect; return the client's end. Raises ConnectionRefusedError."""
        ...

    def send_eof(self, stream: Any) -> None:
        """Close the sending side of a client's end."""
        ...

    def reset(self, stream: Any) -> None:
        """Close a client's end with a reset."""
        ...

    async def settle(self) -> None:
        """Return when all effects of earlier actions have happened."""
        ...


async def wait_until(condition: Callable[[], bool]) -> None:
    """Return when the condition is true; fail if that takes longer than a minute."""
    with trio.fail_after(60):
        while not condition():
            await trio.sleep(0.001)


class SocketNet:
    """Sockets on loopback, in real time."""

    in_memory = False

    def __init__(self) -> None:
        self.transport: Transport = SocketTransport()
        self.clock: TaskClock = SystemClock()
        self.workers: Workers = MachineWorkers()

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        trio.run(_limited, main)

    def connect(self, port: int) -> SocketStream:
        # This does not block: on loopback the kernel connects without the server.
        sock = socket.create_connection((LOOPBACK, port), 5)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        return SocketStream(sock, address_of(sock.getsockname()), address_of(sock.getpeername()))

    def send_eof(self, stream: SocketStream) -> None:
        stream.source.shutdown(socket.SHUT_WR)

    def reset(self, stream: SocketStream) -> None:
        reset_socket(stream.source)

    async def settle(self) -> None:
        await trio.testing.wait_all_tasks_blocked(0.02)


class MemoryNet:
    """Pipes in this process, in virtual time. The server is one process, all clients another."""

    in_memory = True

    def __init__(self) -> None:
        network = MemoryNetwork()
        self.server_side = MemoryTransport(network)
        self.client_side = MemoryTransport(network)
        self.transport: Transport = self.server_side
        self.clock: TaskClock = TrioClock()
        self.workers: Workers = InlineWorkers()

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        trio.run(_limited, main, clock=trio.testing.MockClock(autojump_threshold=0))

    def connect(self, port: int) -> MemoryStream:
        return self.client_side.connect(LOOPBACK, port)

    def send_eof(self, stream: MemoryStream) -> None:
        stream.send_eof()

    def reset(self, stream: MemoryStream) -> None:
        stream.abort()

    async def settle(self) -> None:
        await trio.testing.wait_all_tasks_blocked()


async def _limited(main: Callable[[], Awaitable[None]]) -> None:
    with trio.fail_after(LONGEST_S):
        await main()
