"""The rules of what a connection does next, without a stream, a task or a clock.

Like h11's `Connection` it takes bytes and returns what follows; unlike h11's it never copies them.
`broker.network.connection` carries out a `Step` on a stream and reports the outcome by the event of
that step, which returns the next one; tests do so by hand (decision 76).

    step                event           next step
    RECEIVE             received        whole frames are handled: FINISH if a reply must be waited
                                        for, SEND if replies are ready, else as after `sent`
                        nothing_came    RECEIVE, when something has come
                        client_ended    CLOSE
    FINISH              finished        as after `received`, or THROTTLE
    THROTTLE            finished        as after `received`
    SEND                sent            YIELD if the turn was interrupted between frames, else the
                                        decision
    YIELD               yielded         as after `received` if it was interrupted, else the decision
    WAIT_…              resumed         the decision
    CLOSE

The decision is the step when no whole frame is left (`_next`): CLOSE, WAIT_FOR_MEMORY, YIELD,
WAIT_FOR_WINDOW or RECEIVE.

Rules

* One request is in work at a time, and replies keep the order of requests (S-NET-1): while the
  connection waits for a reply, it hands out no further frame.
* All whole frames of one receive are handled in a row, and their replies leave in one send.
* After `CONNECTION_TURN_S` of work, or some bytes of replies (`backlog`), the replies are sent and
  the other connections get their turn. If the client does not take the replies, no further request
  is handled.
* An invalid frame length ends the connection (S-NET-1), and so does a ProtocolError of `handle`.
* Nothing is received while requests hold too much memory (`request_memory`, `frame_memory`), except
  that a frame which holds memory itself may be received to its end.
* Nothing is received, and no frame handed out, while the client is throttled (KIP-219, S-QTA-3).
  The replies leave before that.
* After the connection has ended (`Activity.ending`), no frame is handed out; replies that are ready
  are still sent, and no throttle is waited for.

The buffer belongs to the request in work until `finished`, or until the request is `parked` and its
handler has released the buffer.
"""

import enum
import struct
from collections.abc import Callable, Sized
from typing import Any, Final

from broker.network.activity import Activity, Ending, State
from broker.network.buffers import STANDARD_BYTES, PoolBuffer
from broker.network.receive_buffer import ReceiveBuffer
from broker.network.request_memory import Claim
from broker.quotas.throttle import Throttle
from protocol.errors import ProtocolError
from protocol.framing import MIN_REQUEST_SIZE, SIZE_BYTES, frame_size

CONNECTION_TURN_S: Final = 0.0005
"""Seconds of work between two yields. A yield costs as much as appending two batches, so the time
that others had to wait ends a turn, not the number of bytes."""

_SIZE: Final = struct.Struct(">i").unpack_from

Handle = Callable[[PoolBuffer, memoryview, int, int, float], Any]
"""(buffer, view of it, start, end, monotonic seconds at which the frame came): handles the frame in
`start .. end`. Returns None if the reply is ready or there is none; the `Throttle` of the client if
it has one besides; otherwise the request whose reply must be waited for."""


class Step(enum.Enum):
    """The next thing that the connection does; an event reports its outcome."""

    RECEIVE = "receive into the buffer: `received`, `nothing_came` or `client_ended`"
    SEND = "send the replies of this turn, which came at `came_at`: `sent`"
    FINISH = "take `waiting`, and wait until its reply stands behind the others: `finished`"
    THROTTLE = "send the replies, `throttled`, and wait until `waiting.until`: `finished`"
    YIELD = "let the other connections have their turn: `yielded`"
    WAIT_FOR_MEMORY = "wait until requests take less memory: `resumed`"
    WAIT_FOR_WINDOW = "wait until it is worth asking for a window again: `resumed`"
    CLOSE = "let go of the stream; `activity.ending` says why"


_BUSY: Final = State.BUSY
# Globals, because looking up an attribute of an enum costs a call.
RECEIVE, SEND, FINISH, THROTTLE = (
    Step.RECEIVE,
    Step.SEND,
    Step.FINISH,
    Step.THROTTLE,
)
YIELD, WAIT_FOR_MEMORY, WAIT_FOR_WINDOW, CLOSE = (
    Step.YIELD,
    Step.WAIT_FOR_MEMORY,
    Step.WAIT_FOR_WINDOW,
    Step.CLOSE,
)


class ConnectionState:
    """The state of one connection. Times are monotonic seconds."""

    __slots__ = (
        "_answered",
        "_handle",
        "_large",
        "_least_bytes",
        "_most_bytes",
        "_position",
        "_wanted",
        "activity",
        "ahead",
        "began",
        "came_at",
        "claim",
        "end",
        "incoming",
        "is_interrupted",
        "since",
        "waiting",
    )

    def __init__(
        self,
        activity: Activity,
        incoming: ReceiveBuffer,
        handle: Handle,
        answered: Sized,
        *,
        max_request_bytes: int,
        claim: Claim | None = None,
    ) -> None:
        """`answered` is not empty while a reply is not sent, or a request not counted as done."""
        self.activity = activity
        self.incoming = incoming
        self.claim = claim
        """The connection's share of the memory for requests; None if that is not limited."""
        self._handle = handle
        self._answered = answered
        self._least_bytes = MIN_REQUEST_SIZE
        self._most_bytes = max_request_bytes
        self.end: int | None = None
        """The end of the part of the buffer that may be filled; None: its end."""
        self.came_at = activity.last
        """The time at which bytes last came."""
        self.since = activity.last
        """The time at which the frame came that led to the last FINISH or YIELD: `came_at`, or the
        time at which the request before it was `finished`."""
        self.began = 0.0
        """The time at which this turn began; 0 if it begins with the next bytes."""
        self.waiting: Any = None
        """The request that `handle` returned, for FINISH; for THROTTLE, the throttle."""
        self.ahead = 0
        """Bytes in memory of the reply to `waiting`, if it was made before its turn to be sent; 0
        for one of many elements, which is encoded when its turn has come."""
        self.is_interrupted = False
        """Whether the turn ended after a frame while more bytes follow in the buffer."""
        self._position = 0
        """End of the last frame that was handed out."""
        self._wanted = 0
        """Size of the incomplete frame there; 0 while it is not known."""
        self._large = 0
        """Size of the last large frame of this receive; 0 if there was none."""

    def hand_to(self, handle: Handle, *, least_bytes: int, most_bytes: int) -> None:
        """Have `handle` called with the frames of the next receive and later ones.

        The limits on sizes hold from the next frame on.
        """
        self._handle = handle
        self._least_bytes, self._most_bytes = least_bytes, most_bytes

    # ---- events

    def begin(self) -> Step:
        """Return the first step."""
        return self._next()

    def received(self, count: int, now: float) -> Step:  # noqa: C901 - a call each would cost more
        """At `now`, `count` more bytes came into the buffer. Handle every whole frame until

        (a) the connection has ended, by the frame before or by bad bytes;
        (b) the next frame, or its size, is incomplete;
        (c) a reply must be waited for, or the client is throttled;
        (d) the turn is over while more bytes follow.

        Raises ProtocolError when the bytes are no request.
        """
        incoming, activity = self.incoming, self.activity
        if count:
            incoming.have += count
            activity.last = self.came_at = now
            self._large = 0
            if self.claim is not None:
                self.claim.hold(incoming.have)
            if incoming.hold is not None:
                incoming.hold.received(incoming.have)
        began = self.began
        if not began:
            began = self.began = now
        handle, least, most = self._handle, self._least_bytes, self._most_bytes
        turn_bytes = incoming.backlog.turn_bytes
        buffer, view = incoming.buffer, incoming.view
        have, position = incoming.have, self._position
        self._wanted = 0
        try:
            while have - position >= SIZE_BYTES and activity.ending is None:
                (size,) = _SIZE(buffer, position)
                if size < least or size > most:
                    # (a): raises, with the reason, if it still does not fit
                    frame_size(buffer, position, SIZE_BYTES, self._most_bytes, self._least_bytes)
                start = position + SIZE_BYTES
                end = start + size
                if end > have:  # (b)
                    self._wanted = SIZE_BYTES + size
                    break
                if size > STANDARD_BYTES:
                    self._large = size
                waiting = handle(buffer, view, start, end, now)
                position = end
                if waiting is not None:  # (c)
                    self._position, self.since, self.waiting = position, now, waiting
                    return THROTTLE if waiting.__class__ is Throttle else FINISH
                if position < have and (
                    activity.last - began >= CONNECTION_TURN_S or activity.unsent > turn_bytes
                ):  # (d)
                    self.since, self.is_interrupted = now, True
                    break
        except ProtocolError:
            activity.end(Ending.BAD_BYTES)
            raise
        if position == have:
            incoming.have = self._position = 0
        else:
            self._position = position
        if self._answered:
            return SEND
        del buffer, view  # `sent` may give the buffer back, of which no view may exist then
        return self.sent()

    def nothing_came(self) -> None:
        """There is nothing to receive: give the buffer back, or shrink it, until `resumed`."""
        self.began = 0.0
        self.incoming.shrink_idle()
        self.activity.state = State.IDLE

    def client_ended(self) -> Step:
        """The client sends no more: drop its last, incomplete frame."""
        self.activity.end(Ending.CLIENT)
        return CLOSE

    def resumed(self) -> Step:
        """The awaited condition holds, or may hold."""
        self.activity.state = _BUSY
        return self._next()

    def blocked(self, unsent: int) -> None:
        """The client does not take the replies of this turn, of which `unsent` bytes are kept.

        Free the bytes and memory of the requests, unless one is still to be worked on, or an error
        may refer to them.
        """
        pending = self.waiting is not None and self.waiting.__class__ is not Throttle
        if self.activity.ending is None and not pending:
            self._release(unsent)
        else:
            self.incoming.keep(unsent + self.ahead)

    def made_ahead(self, size: int) -> None:
        """The reply to `waiting`, of `size` bytes in memory, waits for earlier replies to leave."""
        self.ahead = size
        self.incoming.keep(self.incoming.kept + size)

    def sent(self) -> Step:
        """All replies of this turn were sent. Raises OSError if there is no memory for a frame."""
        incoming, claim, handled = self.incoming, self.claim, True
        if incoming.kept:
            incoming.keep(0)
        if self.is_interrupted:
            self._position = incoming.shrink_interrupted(self._position)
            return YIELD
        if incoming.have:
            incoming.keep_rest(self._position, self._wanted, self.came_at)
            handled, self._position = self._position > 0, 0
        elif incoming.hold is not None:
            incoming.frame_is_done()
        if claim is not None and (handled or claim.size != self._wanted):
            claim.release()
        return self._next()

    def yielded(self, now: float) -> Step:
        """The other connections have had a turn. Raises ProtocolError, as `received` does."""
        if self.is_interrupted:
            self.is_interrupted = False
            if self.incoming.kept:
                self.incoming.keep(0)
            self.began = self.activity.last = now
            return self.received(0, self.since)
        self.began = 0.0
        return self._next()

    def parked(self, *, released: bool) -> None:
        """The reply of the request in work comes later.

        Free the request's bytes and memory if its handler has `released` them.
        """
        if released:
            self._release()
        self.activity.state = State.PARKED

    def _release(self, unsent: int = 0) -> None:
        self.incoming.shrink_parked(self._position, unsent)
        self._position = 0
        if self.claim is not None:
            self.claim.release()

    def throttled(self) -> None:
        """The replies were sent: free the bytes and memory of the requests that were handled."""
        self.waiting = None
        self.parked(released=True)
        self.activity.state = State.THROTTLED

    def finished(self, throttle: Throttle | None = None) -> Step:
        """The reply of the request in work was appended to the others, at `activity.last`.

        `throttle` is that of its client; None if the client is not throttled (any more). Raises
        ProtocolError when the next bytes are no request.
        """
        if throttle is not None and self.activity.ending is None:
            self.waiting = throttle
            return THROTTLE
        if self.incoming.kept:
            self.incoming.keep(0)
        self.activity.state = _BUSY
        self.began = now = self.activity.last
        return self.received(0, now)

    def close(self) -> bool:
        """End after the request in work; return whether it may be ended at once."""
        self.activity.end(Ending.SERVER)
        return self.activity.may_end_at_once

    # ---- decisions

    def _next(self) -> Step:
        """Return the step when no whole frame is left, the first of these that applies:

        (a) the connection has ended: CLOSE;
        (b) it has claimed no request memory, and none is left: WAIT_FOR_MEMORY;
        (c) its turn is over: YIELD;
        (d) its large frame may not take more memory now: WAIT_FOR_WINDOW;
        (e) otherwise: RECEIVE.
        """
        activity, incoming = self.activity, self.incoming
        if activity.ending is not None:  # (a)
            return CLOSE
        claim, hold, began = self.claim, incoming.hold, self.began
        if claim is not None and not claim.size:
            if claim.memory.exhausted:  # (b)
                activity.state = State.MUTED
                return WAIT_FOR_MEMORY
            claim.hold(self._wanted)
        if began and activity.last - began >= CONNECTION_TURN_S:  # (c)
            if hold is not None:
                hold.settle()
            return YIELD
        if not incoming.buffer:
            incoming.acquire(self._large)
        if hold is not None:
            self.end = None
            if hold.is_counted:
                self.end = hold.take_window()
                if not self.end:  # (d)
                    activity.state = State.MUTED
                    return WAIT_FOR_WINDOW
        return RECEIVE  # (e)

    # ---- for the sweeper

    def is_stuck(self, now: float, max_idle_s: float, *, has_sent_all: bool = False) -> bool:
        """Whether nothing happened for `max_idle_s`, as `Activity.is_stuck` says.

        A frame that comes too slowly counts as nothing (`FrameHold.is_too_slow`).
        """
        activity, hold = self.activity, self.incoming.hold
        if activity.is_stuck(now, max_idle_s, has_sent_all=has_sent_all):
            return True
        slow = hold is not None and activity.state is State.IDLE
        return slow and hold.is_too_slow(now, max_idle_s)  # type: ignore[union-attr]

    def is_overdue(self, now: float) -> bool:
        """Whether its frame comes too slowly while others wait for the frame's memory."""
        hold = self.incoming.hold
        return hold is not None and self.activity.state is State.IDLE and hold.is_overdue(now)
