"""Listeners and the life of connections.

In this order (S-START-3): `bind` before logs load (the port is known, clients queue up in the
backlog), `serve` when everything stands, `close` first of all at the end: no new connections, idle
and parked ones end at once, requests in work get a deadline.

* One task per listener and per connection; one sweeper looks after idle and stuck connections, so
  a read costs no timer (`connections.max.idle.ms`).
* When the process runs out of descriptors or memory, accepting pauses for a moment and goes on
  (the errors are named in `_CAPACITY_ERRORS`); a peer that ends in the backlog is nobody's error.
"""

import errno
import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass

import trio

from broker.network.buffers import BufferPool, BufferStatistics
from broker.network.connection import Connection, ConnectionServices, State
from broker.network.connection_limits import ConnectionLimits, Refusal
from broker.network.listening import BoundListener, bind_listener, host_of, prepare_connection
from broker.network.request_channel import RequestChannel
from broker.network.request_memory import RequestMemory, RequestMemoryStatistics
from broker.request import ConnectionInfo
from config.listener import Listener

logger = logging.getLogger(__name__)

_CAPACITY_ERRORS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))
_GONE_ERRORS = frozenset((errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.ENETDOWN))
_PAUSE_S = 0.1
_ACCEPTS_PER_TURN = 16
_SWEEPS_PER_IDLE_TIME = 10
_LONGEST_SWEEP_S = 5.0
_SHORTEST_SWEEP_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketServerSettings:
    """What the configuration says about connections; sizes in bytes, -1 the system's choice."""

    listeners: tuple[Listener, ...]
    backlog: int = 50
    send_buffer: int = -1
    receive_buffer: int = -1
    max_request_bytes: int = 104857600
    queued_bytes: int = -1
    """Of requests in memory; 0 or less: no limit."""
    max_connections: int = 2147483647
    max_connections_per_ip: int = 2147483647
    max_connections_per_ip_overrides: Mapping[str, int]
    max_idle_s: float | None = 600.0
    """None: never."""
    check_buffers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketServerStatistics:
    """Numbers for metrics and tests."""

    connections: Mapping[str, int]
    """Now, by listener."""
    accepted: int
    refused: Mapping[Refusal, int]
    idle_closed: int
    accept_errors: int
    cold_reads: int
    """Replies that had to wait for the disk."""
    buffers: BufferStatistics
    memory: RequestMemoryStatistics | None
    """None: no limit is set."""


class SocketServer:
    """Owns the sockets of a broker."""

    def __init__(self, settings: SocketServerSettings, channel: RequestChannel) -> None:
        self._settings = settings
        self._clock = channel.clock
        self._services = ConnectionServices(
            channel,
            max_request_bytes=settings.max_request_bytes,
            memory=RequestMemory(settings.queued_bytes) if settings.queued_bytes > 0 else None,
            buffers=BufferPool(check=settings.check_buffers),
        )
        self._limits = ConnectionLimits(
            total=settings.max_connections,
            per_ip=settings.max_connections_per_ip,
            overrides=settings.max_connections_per_ip_overrides,
        )
        self._listening: list[tuple[BoundListener, socket.socket]] = []
        self._connections: set[Connection] = set()
        self._accepting = trio.CancelScope()
        self._last_one_gone = trio.Event()
        self._number = 0
        self._accepted = 0
        self._refused = dict.fromkeys(Refusal, 0)
        self._idle_closed = 0
        self._accept_errors = 0

    @property
    def limits(self) -> ConnectionLimits:
        """How many connections there may be."""
        return self._limits

    @property
    def bound(self) -> list[BoundListener]:
        """Where it listens, in the order of the configuration."""
        return [listener for listener, _ in self._listening]

    def bind(self) -> list[BoundListener]:
        """Take the ports. Raises BindError; then none is taken."""
        try:
            for listener in self._settings.listeners:
                self._listening.append(
                    bind_listener(
                        listener,
                        backlog=self._settings.backlog,
                        receive_buffer=self._settings.receive_buffer,
                    )
                )
        except Exception:
            self.unbind()
            raise
        return self.bound

    def unbind(self) -> None:
        """Give the ports back; for a server that never served. Safe to call twice."""
        for _, sock in self._listening:
            sock.close()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Accept and serve until `close` is done or the task is cancelled."""
        async with trio.open_nursery() as connections:
            try:
                with self._accepting:
                    async with trio.open_nursery() as acceptors:
                        for bound, sock in self._listening:
                            acceptors.start_soon(self._accept, bound, sock, connections)
                        acceptors.start_soon(self._sweep)
                        task_status.started()
            finally:
                self.unbind()
                for connection in self._connections:
                    connection.close()

    async def close(self, deadline_s: float) -> None:
        """Stop accepting, let requests in work finish for so long, then cut what is left."""
        self._accepting.cancel()
        self.unbind()
        for connection in list(self._connections):
            connection.close()
        with trio.move_on_after(deadline_s):
            while self._connections:
                self._last_one_gone = trio.Event()
                await self._last_one_gone.wait()
        if self._connections:
            logger.warning("%d connections had to be cut at shutdown", len(self._connections))
        for connection in list(self._connections):
            connection.abort()
        while self._connections:
            self._last_one_gone = trio.Event()
            await self._last_one_gone.wait()

    def statistics(self) -> SocketServerStatistics:
        """A snapshot."""
        memory = self._services.memory
        connections = dict.fromkeys((listener.name for listener in self.bound), 0)
        for connection in self._connections:
            connections[connection.info.listener_name] += 1
        return SocketServerStatistics(
            connections=connections,
            accepted=self._accepted,
            refused=dict(self._refused),
            idle_closed=self._idle_closed,
            accept_errors=self._accept_errors,
            cold_reads=self._services.disk.cold_reads,
            buffers=self._services.buffers.statistics(),
            memory=None if memory is None else memory.statistics(),
        )

    # ---- accepting

    async def _accept(
        self, bound: BoundListener, listening: socket.socket, connections: trio.Nursery
    ) -> None:
        burst = 0
        # `close` may give the port back between a wake-up and its turn, too late to cancel it.
        while listening.fileno() >= 0:
            try:
                sock, address = listening.accept()
            except BlockingIOError:
                burst = 0
                await trio.lowlevel.wait_readable(listening)
                continue
            except OSError as error:
                if error.errno in _GONE_ERRORS:
                    continue
                if error.errno not in _CAPACITY_ERRORS:
                    raise
                self._accept_errors += 1
                logger.error("Cannot accept connections on %s: %s", bound, error)
                await trio.sleep(_PAUSE_S)
                continue
            self._welcome(bound, sock, address, connections)
            burst += 1
            if burst >= _ACCEPTS_PER_TURN:
                burst = 0
                await trio.lowlevel.checkpoint()

    def _welcome(
        self,
        bound: BoundListener,
        sock: socket.socket,
        address: tuple[str, int],
        connections: trio.Nursery,
    ) -> None:
        host = host_of(address)
        refusal = self._limits.admit(host)
        if refusal is not None:
            self._refused[refusal] += 1
            logger.info("Rejected connection from %s: %s is reached", host, refusal.value)
            sock.close()
            return
        self._accepted += 1
        self._number += 1
        try:
            prepare_connection(sock, send_buffer=self._settings.send_buffer)
            local = sock.getsockname()
        except OSError:  # reset before we could look at it
            self._limits.leave(host)
            sock.close()
            return
        info = ConnectionInfo(
            connection_id=f"{host_of(local)}:{local[1]}-{host}:{address[1]}-{self._number}",
            listener_name=bound.name,
            local_host=host_of(local),
            local_port=local[1],
            peer_host=host,
            peer_port=address[1],
        )
        connection = Connection(sock, info, self._services)
        self._connections.add(connection)
        connections.start_soon(self._run, connection)

    async def _run(self, connection: Connection) -> None:
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            self._limits.leave(connection.info.peer_host)
            if not self._connections:
                self._last_one_gone.set()

    # ---- looking after connections

    async def _sweep(self) -> None:
        idle_s = self._settings.max_idle_s
        period = _LONGEST_SWEEP_S
        if idle_s is not None:
            period = min(period, max(idle_s / _SWEEPS_PER_IDLE_TIME, _SHORTEST_SWEEP_S))
        while True:
            await trio.sleep(period)
            now = self._clock.monotonic()
            for connection in list(self._connections):
                if connection.state is State.PARKED_BLIND:
                    connection.check_parked()
                elif idle_s is not None and connection.check_idle(now, idle_s):
                    self._idle_closed += 1
                    logger.debug("Closed idle connection %s", connection.info.connection_id)
