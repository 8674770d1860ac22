"""Parts for kazoo that it lacks: a handler without threads of its own, and reading many nodes.

The only module that imports kazoo at its top; it is imported when the session begins. Why kazoo is
used with other parts: decision 103.

* `DirectHandler` calls back in the thread of the connection, because the callbacks of this room
  only hand over to the loop: two threads less, and half the processor time of a request. It waits
  for the socket with poll; kazoo makes an epoll of its own for each wait. It speaks TLS with a
  context that is made of stores of any kind. And it leaves a server that does not open the session
  while there is time for another attempt: a ZooKeeper 3.8 that is being started keeps a connection
  and never answers on it (`NIOServerCnxn.close` fails before the database is there), where kazoo,
  as the Java client, would wait until the session has expired.
* `MultiRead` reads many nodes with one request (ZooKeeper 3.6 and later), at a twentieth of the
  cost of as many requests:

      request   {type i32, done u8 = 0, error i32 = -1, path string, watch u8 = 0}*, end
      answer    {type i32, done u8, error i32, value and stat, or names, or error i32}*, end
      end       {-1, 1, -1}
"""

import math
import select
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

from kazoo.exceptions import EXCEPTIONS
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import (
    GetChildren,
    GetData,
    MultiHeader,
    int_struct,
    multiheader_struct,
    read_buffer,
    read_string,
    stat_struct,
)
from kazoo.protocol.states import ZnodeStat

_MULTI_READ: Final = 22
_SLICE_S: Final = 0.5
"""The longest part of a wait, after which a stop is noticed."""
_GOODBYE_S: Final = 2.0
"""How long a server may take for the end of a session."""
LONGEST_CONNECT_S: Final = 5.0
"""The longest time of one attempt: a stop waits for it, and the next server may be faster."""
_ATTEMPTS_IN_A_SESSION: Final = 3
"""A server that takes a connection and does not open the session leaves time for so many others."""


class _Direct:
    """In place of a queue with a thread at its end."""

    @staticmethod
    def put(work: Callable[[], object]) -> None:
        work()


class DirectHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """See the module."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        """`context` is for TLS; None without TLS."""
        super().__init__()
        self.completion_queue = _Direct()
        self._context = context
        self._patience_s = _GOODBYE_S
        self._first_answer_s = math.inf
        """The longest wait for the first answer on a new connection; endless once it has come."""
        self.problem: OSError | None = None
        """Why the last attempt to connect has failed."""

    def start(self) -> None:
        """Nothing to start."""
        self._running = True

    def stop(self) -> None:
        """Nothing to stop."""
        self._running = False

    def dispatch_callback(self, callback: Any) -> None:
        """Call it."""
        callback.func(*callback.args)

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_: Any
    ) -> socket.socket:
        """Connect to a server; the handshake of TLS is done in this thread too. Raises OSError."""
        try:
            plain = socket.create_connection(address, min(timeout, LONGEST_CONNECT_S))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._first_answer_s = max(timeout / _ATTEMPTS_IN_A_SESSION, LONGEST_CONNECT_S)
            if self._context is None:
                return plain
            try:
                return self._context.wrap_socket(plain, server_hostname=hostname)
            except OSError:  # of which an SSLError is one
                plain.close()
                raise
        except OSError as error:
            self.problem = error
            raise

    def select(
        self,
        readable: Sequence[Any],
        writable: Sequence[Any],
        _: Sequence[Any],
        timeout: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Do as `select.select`, for descriptors of any number."""
        # A server may have sent several answers in one record of TLS: the rest is read already.
        pending = [one for one in readable if isinstance(one, ssl.SSLSocket) and one.pending()]
        if pending:
            self._first_answer_s = math.inf
            return pending, [], []
        if readable and timeout is not None:
            timeout = min(timeout, self._first_answer_s)
        waiting = select.poll()
        found: dict[int, tuple[Any, bool]] = {}
        for sockets, for_reading in ((readable, True), (writable, False)):
            for one in sockets:
                number = one if isinstance(one, int) else one.fileno()
                if number < 0:
                    raise ValueError("a closed socket")
                found[number] = (one, for_reading)
                waiting.register(number, select.POLLIN if for_reading else select.POLLOUT)
        chosen = [found[number] for number, _ in self._polled(waiting, timeout)]
        answered = [one for one, for_reading in chosen if for_reading]
        if answered:
            self._first_answer_s = math.inf
        return answered, [one for one, for_reading in chosen if not for_reading], []

    def _polled(self, waiting: Any, timeout: float | None) -> list[tuple[int, int]]:
        """Wait. Once stopped, wait for a silent server no longer than a good-bye takes."""
        left = math.inf if timeout is None else max(timeout, 0)
        while True:
            ready: list[tuple[int, int]] = waiting.poll(min(left, _SLICE_S) * 1000)
            left -= _SLICE_S
            if ready or left <= 0:
                return ready
            if not self._running:
                self._patience_s -= _SLICE_S
                if self._patience_s < 0:
                    raise TimeoutError("the server does not answer, and the client is stopped")


class MultiRead:
    """A request that reads the values of nodes, or the names of their children."""

    type = _MULTI_READ

    def __init__(self, paths: Sequence[str], *, children: bool) -> None:
        kind = GetChildren if children else GetData
        self.operations = [kind(path, None) for path in paths]

    def serialize(self) -> bytes:
        """The request."""
        pieces = bytearray()
        for operation in self.operations:
            pieces += MultiHeader(operation.type, False, -1).serialize() + operation.serialize()
        return bytes(pieces + multiheader_struct.pack(-1, True, -1))

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Any]:
        """The answers: (value, stat), names, or an exception for each."""
        answers: list[Any] = []
        while True:
            header, offset = MultiHeader.deserialize(data, offset)
            if header.done:
                return answers
            if header.type == GetData.type:
                value, offset = read_buffer(data, offset)
                stat = ZnodeStat._make(stat_struct.unpack_from(data, offset))
                offset += stat_struct.size
                answers.append((value, stat))
            elif header.type == GetChildren.type:
                (count,) = int_struct.unpack_from(data, offset)
                offset += int_struct.size
                names = []
                for _ in range(count):
                    name, offset = read_string(data, offset)
                    names.append(name)
                answers.append(names)
            else:
                (code,) = int_struct.unpack_from(data, offset)
                offset += int_struct.size
                answers.append(EXCEPTIONS[code]())


def begin_multi_read(paths: Sequence[str], children: bool, client: Any) -> Any:
    """Begin reading; kazoo's asynchronous result, which is the list of answers."""
    result = client.handler.async_result()
    client._call(MultiRead(paths, children=children), result)
    return result
