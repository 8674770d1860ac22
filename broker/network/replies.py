"""The unsent replies of a connection: encoded one after the other, sent together.

The replies leave in one system call if the peer takes them at once (`send_nowait`). `send` handles
a slow peer and slices of files, for which it must wait.
"""

from collections.abc import Callable
from typing import Any, Final

from broker.network.activity import Activity, State
from broker.network.large_messages import ReplyRoom
from broker.network.request_metrics import RequestMetrics, note_sent
from broker.network.routes import Route
from broker.network.sender import BYTES_LIKE, DiskReader, send_all, send_pieces
from broker.world.stopwatch import Stopwatch
from broker.world.transport import Stream
from storage.clock import Clock
from storage.waits import PAUSE, Work

BUILT_PER_PAUSE: Final = 4
"""Elements between two pauses; one element may be a hundred configs."""

_BYTES: Final = frozenset((bytes, bytearray, memoryview))


class Replies:
    """The replies of one connection. Sending raises OSError if the connection has ended."""

    __slots__ = (
        "_activity",
        "_counted",
        "_disk",
        "_done_at",
        "_monotonic",
        "_out",
        "_owed",
        "_send",
        "_slices",
        "_stream",
        "_waited",
        "answered",
        "bill",
        "blocked",
    )

    def __init__(self, stream: Stream, activity: Activity, disk: DiskReader, clock: Clock) -> None:
        self._stream = stream
        self._send = stream.send
        self._activity = activity
        self._disk = disk
        self._monotonic = clock.monotonic
        self._out: list[Any] = []  # pieces, in order
        self._slices = False  # some of them are slices of files
        self.answered: list[RequestMetrics] = []
        """The metrics of each request since the last send; some have no reply (acks=0)."""
        self._done_at: list[float] = []
        """The time at which the handler of each request was done, in monotonic seconds."""
        self._waited = False  # whether `send` has waited for the client since it began
        self._counted = 0
        self.blocked: Callable[[int], None] = _ignore
        """Called with the number of bytes that are kept for a client that is slow to take them."""
        self.bill: Callable[[float], None] | None = None
        """Called with the seconds of encoding and sending when the replies of this turn have left;
        None if nobody counts them."""
        self._owed = 0.0  # seconds for `bill` so far

    def append(self, route: Route, correlation_id: int, reply: Any) -> None:
        """Encode a reply and append it to the unsent ones. `reply` is None if the request has none.

        If encoding raises, nothing is appended.
        """
        if reply is not None:
            began = 0.0 if self.bill is None else self._monotonic()
            out = self._out
            if route.may_carry_files:
                first = len(out)
                out.append(b"")
                try:
                    route.build_into(reply, out.append)
                    pieces = out[first + 1 :]
                    size = sum(map(len, pieces))
                    out[first] = route.frame_head(size, correlation_id)
                except Exception:
                    del out[first:]
                    raise
                self._activity.unsent += size
                if not _BYTES.issuperset(map(type, pieces)):
                    self._slices = True
            else:
                parts: list[bytes] = []
                route.build_into(reply, parts.append)
                body = b"".join(parts)
                size = len(body)
                out.append(route.frame_head(size, correlation_id) + body)
                self._activity.unsent += size
            if self.bill is not None:
                self._owed += self._monotonic() - began
        self.answered.append(route.metrics)
        self._done_at.append(self._activity.last)

    async def append_in_turns(
        self, route: Route, correlation_id: int, reply: Any, room: ReplyRoom
    ) -> None:
        """`append` a reply of many elements, in turns.

        Raises ReplyTooLarge. If this or encoding raises, nothing is appended.
        """
        if reply is None or route.may_carry_files:
            self.append(route, correlation_id, reply)
            return
        ready = self._activity.last
        body = bytearray(route.frame_head(0, correlation_id))
        head = len(body)
        await self._timed(_build_in_turns(route, reply, body, room))
        body[:head] = route.frame_head(len(body) - head, correlation_id)
        room.built(len(body))
        self._out.append(body)
        self._activity.unsent += len(body)
        self.answered.append(route.metrics)
        self._done_at.append(ready)

    def send_nowait(self, received: float) -> bool:
        """Send the bytes that the peer takes at once; return False if `send` must send the rest.

        The requests of this turn came at `received`, in monotonic seconds.
        """
        if self._slices:
            return False
        out = self._out
        began = 0.0 if self.bill is None else self._monotonic()
        if out:
            data = out[0] if len(out) == 1 else b"".join(out)
            try:
                sent = self._send(data)
            except BlockingIOError:
                sent = 0
            if sent != len(data):
                out[:] = (memoryview(data)[sent:],)
                if self.bill is not None:
                    self._owed += self._monotonic() - began
                return False
            out.clear()
        activity = self._activity
        done = activity.last
        activity.unsent = 0
        activity.last = now = self._monotonic()
        note_sent(self.answered, self._done_at, received, done, now)
        self.answered.clear()
        self._done_at.clear()
        if self.bill is not None:
            self._owed += now - began
            self._pay()
        return True

    async def send(self, received: float, counted: int = 0) -> None:
        """Send what is left after `send_nowait` has returned False; wait for the peer and the disk.

        `blocked` does not count `counted` bytes of them, because others do.
        """
        self._counted = counted
        activity = self._activity
        done = activity.last
        self._waited = False
        activity.state = State.SENDING
        if self._slices:
            await self._timed(send_pieces(self._stream, self._out, self._disk, self))
            self._slices = False
        else:
            await self._timed(send_all(self._stream, self._out[0], self))
        activity.state = State.BUSY
        activity.unsent = 0
        self._out.clear()
        activity.last = self._monotonic()
        note_sent(self.answered, self._done_at, received, done, activity.last)
        self.answered.clear()
        self._done_at.clear()
        self._pay()

    @staticmethod
    def size_in_memory(route: Route, reply: Any) -> int:
        """Return the bytes that an encoded reply takes, without its slices of files."""
        pieces: list[Any] = []
        try:
            route.build_into(reply, pieces.append)
        except Exception:  # noqa: BLE001 - an error answers it when its turn has come
            return 0
        return sum(len(piece) for piece in pieces if isinstance(piece, BYTES_LIKE))

    def drop(self) -> None:
        """The connection has ended: free the replies that were not sent, with what they hold."""
        self._out.clear()
        self.blocked = _ignore

    async def _timed(self, work: Work[None]) -> None:
        """Do `work`, and add its turns to the bill."""
        if self.bill is None:
            await work
        else:
            watch = Stopwatch(self._monotonic)
            await watch.time(work)
            self._owed += watch.worked_s

    def _pay(self) -> None:
        bill, self.bill = self.bill, None
        if bill is not None:
            bill(self._owed)
            self._owed = 0.0

    # ---- the sender's `SlowPeer`

    def waits(self, size: int) -> None:
        """The client does not take the next bytes, of which `size` are in memory."""
        if self._waited:
            return
        self._waited = True
        if self._slices:  # of files, and pieces in memory that follow
            size += sum(len(piece) for piece in self._out if isinstance(piece, BYTES_LIKE))
        self.blocked(max(size - self._counted, 0))

    def progressed(self) -> None:
        """The client has taken some of the bytes."""
        self._activity.last = self._monotonic()


async def _build_in_turns(route: Route, reply: Any, body: bytearray, room: ReplyRoom) -> None:
    for count, _ in enumerate(route.codec_of_reply.build_steps(reply, body.extend)):
        if not count % BUILT_PER_PAUSE:
            await room.grow(len(body))
            await PAUSE
    await room.grow(len(body))


def _ignore(unsent: int) -> None:
    pass
