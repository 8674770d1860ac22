"""The network of the operating system: TCP sockets behind `broker.world.transport`.

To listen, an empty host means every interface, IPv6 and IPv4 through one socket where the machine
has both (as Java does), and port 0 lets the system choose. A name is resolved, IPv4 before IPv6.

A stream's `recv_into`, `send` and `wait_…` are the socket's own methods and trio's own functions,
bound when the stream is made: the hot loop calls them without a frame of this module in between.
"""

import contextlib
import errno
import os
import socket
from collections.abc import Callable, Coroutine
from types import MethodType
from typing import Any

import trio

from broker.world.descriptors import UNLIMITED
from broker.world.readiness import READABLE, WRITABLE, SocketReadiness
from broker.world.transport import SYSTEM_DEFAULT, Address, BindError, BoundListener
from config.listener import Listener, resolvable
from storage.filesystem import Piece

_MAPPED = "::ffff:"
_EVERY_INTERFACE = "0.0.0.0"

Wait = Callable[[], Coroutine[Any, Any, None]]
SocketAddress = tuple[str, int] | tuple[str, int, int, int]


class SocketTransport:
    """See `broker.world.transport.Transport`."""

    __slots__ = ("_ceiling",)

    def __init__(self, *, ceiling: int = UNLIMITED.ceiling) -> None:
        """`ceiling`: clients get no descriptor of this number or above."""
        self._ceiling = ceiling

    def readiness(self) -> SocketReadiness:
        """See `Transport`."""
        return SocketReadiness()

    def listen(
        self, listener: Listener, *, backlog: int, send_buffer: int, receive_buffer: int
    ) -> "SocketListening":
        """See `Transport`. The sizes may be `SYSTEM_DEFAULT`, which leaves automatic tuning on."""
        reasons: list[OSError] = []
        for family, address in _addresses(listener):
            try:
                sock = _listen(family, address, backlog, receive_buffer)
            except OSError as error:
                reasons.append(error)
                continue
            own = sock.getsockname()
            bound = BoundListener(
                name=listener.name,
                host=listener.host or _EVERY_INTERFACE,
                address=own[0],
                port=own[1],
                protocol=listener.protocol,
            )
            return SocketListening(sock, bound, send_buffer=send_buffer, ceiling=self._ceiling)
        raise BindError("; ".join(dict.fromkeys(map(str, reasons))), errno=reasons[-1].errno)

    def resolve(self, host: str) -> str:
        """See `Transport`."""
        try:
            found = socket.getaddrinfo(resolvable(host), None, type=socket.SOCK_STREAM)
        except ValueError as error:  # no text for a name server: too long, or with a NUL
            raise OSError(errno.EINVAL, str(error)) from error
        return str(min(found, key=_ipv4_first)[4][0])

    async def dial(
        self, host: str, port: int, *, send_buffer: int, receive_buffer: int
    ) -> "SocketStream":
        """See `Transport`. Connections to others are few, so `ceiling` does not bound them."""
        found = await trio.socket.getaddrinfo(resolvable(host), port, type=socket.SOCK_STREAM)
        reasons: list[OSError] = []
        for family, _, _, _, address in sorted(found, key=_ipv4_first):
            try:
                return await _connected(
                    family, address, send_buffer=send_buffer, receive_buffer=receive_buffer
                )
            except OSError as error:
                reasons.append(error)
        raise OSError(
            reasons[-1].errno,
            "; ".join(dict.fromkeys(reason.strerror or str(reason) for reason in reasons)),
        )


class SocketListening:
    """See `broker.world.transport.Listening`. Owns its socket."""

    __slots__ = ("_ceiling", "_send_buffer", "_socket", "_waited_for", "bound")

    def __init__(
        self, sock: socket.socket, bound: BoundListener, *, send_buffer: int, ceiling: int
    ) -> None:
        self.bound = bound
        self._ceiling = ceiling
        self._socket = sock
        self._send_buffer = send_buffer
        self._waited_for = False

    @property
    def is_open(self) -> bool:
        """See `Listening`."""
        return self._socket.fileno() >= 0

    def accept(self) -> "SocketStream":
        """See `Listening`."""
        sock, address = self._socket.accept()
        if sock.fileno() >= self._ceiling:
            # The system gives the lowest free number, so nearly all descriptors are in use.
            sock.close()
            raise OSError(errno.EMFILE, "the descriptors that are left are for files")
        try:
            _set_options(sock, self._send_buffer)
            return SocketStream(sock, address_of(sock.getsockname()), address_of(address))
        except OSError as error:  # the client reset it before it was accepted
            sock.close()
            raise ConnectionAbortedError(errno.ECONNABORTED, str(error)) from error

    async def wait_acceptable(self) -> None:
        """See `Listening`."""
        self._waited_for = True
        try:
            await trio.lowlevel.wait_readable(self._socket)
        except trio.ClosedResourceError:
            pass  # `close` was called
        finally:
            self._waited_for = False

    def close(self) -> None:
        """See `Listening`."""
        if self._waited_for:
            trio.lowlevel.notify_closing(self._socket)
        self._socket.close()


class SocketStream:
    """See `broker.world.transport.Stream`. Owns its socket, which must be non-blocking."""

    __slots__ = ("local", "peer", "recv_into", "send", "source", "wait_readable", "wait_writable")

    sends_files = hasattr(os, "sendfile")
    tells_again = True
    readable = READABLE
    writable = WRITABLE

    def __init__(self, sock: socket.socket, local: Address, peer: Address) -> None:
        self.source = sock
        self.local = local
        self.peer = peer
        self.recv_into: Callable[[memoryview], int] = sock.recv_into
        self.send: Callable[[Piece], int] = sock.send
        self.wait_readable: Wait = MethodType(trio.lowlevel.wait_readable, sock)
        self.wait_writable: Wait = MethodType(trio.lowlevel.wait_writable, sock)

    def send_part(self, data: Piece, /) -> int:
        """See `Stream`. MSG_MORE lets a header share a packet with what follows."""
        return self.source.send(data, socket.MSG_MORE)

    def send_file(self, descriptor: int, position: int, size: int, /) -> int:
        """See `Stream`."""
        return os.sendfile(self.source.fileno(), descriptor, position, size)

    def close(self) -> None:
        """See `Stream`."""
        self.source.close()


def address_of(address: SocketAddress) -> Address:
    """The address of a socket; an IPv4 peer of an IPv6 socket is shown as IPv4."""
    host = address[0]
    if host.startswith(_MAPPED) and "." in host:
        host = host[len(_MAPPED) :]
    return Address(host, address[1])


def _addresses(listener: Listener) -> list[tuple[int, Any]]:
    if not listener.host:
        return [(socket.AF_INET6, ("::", listener.port)), (socket.AF_INET, ("", listener.port))]
    try:
        found = socket.getaddrinfo(
            resolvable(listener.host), listener.port, type=socket.SOCK_STREAM
        )
    except OSError as error:
        raise BindError(
            f"Cannot resolve the host of listener {listener}: {error.strerror or error}"
        ) from error
    return [(family, address) for family, _, _, _, address in sorted(found, key=_ipv4_first)]


def _ipv4_first(found: tuple[int, Any, Any, Any, Any]) -> bool:
    """A key by which addresses that were found are sorted."""
    return found[0] != socket.AF_INET


def _listen(family: int, address: Any, backlog: int, receive_buffer: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            both = address[0] == "::"
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if both else 1)
        if receive_buffer != SYSTEM_DEFAULT:
            # Set before listening: accepted sockets inherit the size, and with it the TCP window.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.bind(address)
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


async def _connected(
    family: int, address: Any, *, send_buffer: int, receive_buffer: int
) -> SocketStream:
    """Connect to one address. Raises OSError."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        _set_options(sock, send_buffer)
        if receive_buffer != SYSTEM_DEFAULT:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        number = sock.connect_ex(address)
        if number == errno.EINPROGRESS:
            await trio.lowlevel.wait_writable(sock)
            number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            raise OSError(number, os.strerror(number))
        return SocketStream(sock, address_of(sock.getsockname()), address_of(sock.getpeername()))
    except BaseException:  # cancelled, too
        sock.close()
        raise


def _set_options(sock: socket.socket, send_buffer: int) -> None:
    sock.setblocking(False)
    with contextlib.suppress(OSError):  # the peer has gone already: receiving will report it
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if send_buffer != SYSTEM_DEFAULT:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
