"""A network in this process: ports and pipes, as TCP shows them, without sockets, threads or time.

    network = MemoryNetwork()
    broker, client = MemoryTransport(network), MemoryTransport(network)
    listening = broker.listen(...)
    stream = client.connect("127.0.0.1", listening.bound.port)

A `MemoryTransport` is one process's part of the network, so one call simulates its death: `kill`
resets its connections and gives its ports back. The killed process's own tasks do not notice: for
them nothing is readable or writable any more, and the simulation has to cancel them. A restarted
process gets another `MemoryTransport`. `freeze` and `thaw` pause a process: its peers can connect
and send until backlog and buffers are full, because a kernel accepts without the process.

As in TCP on Linux:

* A buffer holds the bytes between send and receive, up to its size; then the sender waits.
* Bytes that arrived before an end or a reset can still be received.
* Closing with unread bytes resets the peer, which learns by this alone that they were not read.
* Giving a port back resets the clients in its backlog.

Simpler than Linux: the first `send` to a peer that has closed fails, not the second; a full backlog
refuses the client, where Linux has it try again.

This module makes no network faults (delays, cuts, lost answers): the code that drives a client's
end does the same to that end as the fault would. Everything happens in the order of calls, so the
same calls give the same ports, the same bytes and the same wake-ups.
"""

import errno
from collections import deque
from typing import Final

import trio

from broker.world.transport import Address, BindError, BoundListener
from config.listener import Listener
from tests.support.memory_readiness import MemoryReadiness
from tests.support.memory_stream import MemoryStream, Pipe, Process

BUFFER_BYTES: Final = 256 * 1024
"""The default size of a pipe, in one direction. Linux allows megabytes; with a smaller buffer a
simulation sees more effects of slow peers."""
FIRST_FREE_PORT: Final = 49152
_LAST_PORT: Final = 65535
_EVERY_HOST: Final = "0.0.0.0"
_HOSTS: Final = {"": _EVERY_HOST, "::": _EVERY_HOST, "localhost": "127.0.0.1"}


class MemoryNetwork:
    """Which ports are taken. Hosts are names, any two of which differ: `b1`, `127.0.0.1`, `::1`.

    A listener without a host answers at every host's address.
    """

    def __init__(self, *, buffer_bytes: int = BUFFER_BYTES) -> None:
        self._buffer_bytes = buffer_bytes
        self._ports: dict[tuple[str, int], MemoryListening] = {}
        self._next_port = FIRST_FREE_PORT

    def listening_at(self, address: Address) -> "MemoryListening | None":
        """The listener that accepts clients at this address; None if there is none."""
        here = self._ports.get((address.host, address.port))
        return here if here is not None else self._ports.get((_EVERY_HOST, address.port))

    def take(self, address: Address, listening: "MemoryListening") -> None:
        """Let `listening` accept the clients there. Raises BindError if the address is taken."""
        taken = self.listening_at(address) is not None
        if address.host == _EVERY_HOST:
            taken = any(address.port == port for _, port in self._ports)
        if taken:
            number = errno.EADDRINUSE
            raise BindError(f"[Errno {number}] Address already in use", errno=number)
        self._ports[address.host, address.port] = listening

    def give_back(self, address: Address) -> None:
        """Free the address."""
        del self._ports[address.host, address.port]

    def free_port(self) -> int:
        """Return the next higher free port at each call; after the last port begin again."""
        taken = {port for _, port in self._ports}
        while True:
            port = self._next_port
            self._next_port = port + 1 if port < _LAST_PORT else FIRST_FREE_PORT
            if port not in taken:
                return port

    def pipe(self, size: int) -> Pipe:
        """Return a pipe that holds `size` bytes; the network's default if `size` is 0 or less."""
        return Pipe(size if size > 0 else self._buffer_bytes)


class MemoryTransport:
    """One process's part of a network; see `broker.world.transport.Transport`."""

    def __init__(self, network: MemoryNetwork | None = None) -> None:
        """Without a `network`, make a new one with this process as its first."""
        self.network = network or MemoryNetwork()
        self._process = Process()

    def readiness(self) -> MemoryReadiness:
        """See `Transport`."""
        return MemoryReadiness()

    def listen(
        self, listener: Listener, *, backlog: int, send_buffer: int, receive_buffer: int
    ) -> "MemoryListening":
        """See `Transport`. The backlog has room for at least one client."""
        if self._process.killed:
            raise BindError("the process was killed", errno=errno.ESRCH)
        address = _address(listener.host, listener.port or self.network.free_port())
        listening = MemoryListening(
            self.network,
            self._process,
            address,
            BoundListener(
                name=listener.name,
                host=listener.host or _EVERY_HOST,
                address=address.host,
                port=address.port,
                protocol=listener.protocol,
            ),
            backlog=max(backlog, 1),
            send_buffer=send_buffer,
            receive_buffer=receive_buffer,
        )
        self.network.take(address, listening)
        self._process.adopt(listening)
        return listening

    def connect(self, host: str, port: int, *, from_host: str = "127.0.0.1") -> MemoryStream:
        """Return the client's end of a new connection, which the listener may accept later.

        Raises ConnectionRefusedError if nobody listens there or the backlog is full; OSError if
        this process was killed.
        """
        if self._process.killed:
            raise OSError(errno.ENETDOWN, "the process was killed")
        address = _address(host, port)
        listening = self.network.listening_at(address)
        if listening is None or listening.is_full:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"Connection refused: {host}:{port}")
        return listening.connect(
            self._process, Address(from_host, self.network.free_port()), address
        )

    def resolve(self, host: str) -> str:
        """See `Transport`. Names are addresses here, but `….invalid` has none."""
        if host.endswith(".invalid"):
            raise OSError(errno.ENOENT, "Name or service not known")
        return _HOSTS.get(host, host)

    async def dial(
        self, host: str, port: int, *, send_buffer: int, receive_buffer: int
    ) -> MemoryStream:
        """See `Transport`; pipes have the sizes of the listener."""
        await trio.lowlevel.checkpoint()
        return self.connect(host, port)

    def freeze(self) -> None:
        """Pause: this process receives, sends and accepts nothing until `thaw`."""
        self._process.freeze()

    def thaw(self) -> None:
        """End a pause; what arrived meanwhile can be received. Has no effect after `kill`."""
        self._process.thaw()

    def kill(self) -> None:
        """Kill the process for good: its peers are reset and its ports are free."""
        self._process.kill()


class MemoryListening:
    """A taken port; see `broker.world.transport.Listening`."""

    def __init__(
        self,
        network: MemoryNetwork,
        process: Process,
        address: Address,
        bound: BoundListener,
        *,
        backlog: int,
        send_buffer: int,
        receive_buffer: int,
    ) -> None:
        """Buffer sizes are in bytes; 0 or less means the network's default."""
        self.bound = bound
        self.is_open = True
        self._network = network
        self._process = process
        self._address = address
        self._backlog = backlog
        self._send_buffer = send_buffer
        self._receive_buffer = receive_buffer
        self._clients: deque[MemoryStream] = deque()
        self._changed = trio.lowlevel.ParkingLot()

    @property
    def is_full(self) -> bool:
        """Whether the backlog has no room for another client."""
        return len(self._clients) >= self._backlog

    def connect(self, client: Process, source: Address, target: Address) -> MemoryStream:
        """Return the client's end of a new connection; put the other end into the backlog."""
        up = self._network.pipe(self._receive_buffer)
        down = self._network.pipe(self._send_buffer)
        self._clients.append(
            MemoryStream(self._process, incoming=up, outgoing=down, local=target, peer=source)
        )
        self.wake()
        return MemoryStream(client, incoming=down, outgoing=up, local=source, peer=target)

    def accept(self) -> MemoryStream:
        """See `Listening`."""
        if self._process.frozen:
            raise BlockingIOError(errno.EAGAIN, "the process is paused or dead")
        if not self.is_open:
            raise OSError(errno.EBADF, "the port was given back")
        if not self._clients:
            raise BlockingIOError(errno.EAGAIN, "no client waits")
        return self._clients.popleft()

    async def wait_acceptable(self) -> None:
        """See `Listening`."""
        if self._is_acceptable():
            await trio.lowlevel.checkpoint()
        while not self._is_acceptable():
            await self._changed.park()

    def _is_acceptable(self) -> bool:
        return not self._process.frozen and (bool(self._clients) or not self.is_open)

    def close(self) -> None:
        """See `Listening`."""
        if self.is_open:
            self.is_open = False
            self._network.give_back(self._address)
            self._process.forget(self)
            while self._clients:
                self._clients.popleft().abort()
            self.wake()

    def abort(self) -> None:
        """The same as `close`: a port has no peer."""
        self.close()

    def wake(self) -> None:
        """Wake the task that waits for clients, so that it looks again."""
        self._changed.unpark_all()


def _address(host: str, port: int) -> Address:
    return Address(_HOSTS.get(host, host), port)
