"""The state of a connection, and since when it lasts.

The connection's parts write it. The server's sweeper and its shutdown read it, and may end the
connection, so a receive needs no timer and a request no cancel scope.
"""

import enum


class State(enum.Enum):
    """The present work or wait of a connection."""

    OPENING = "shakes hands"
    IDLE = "waits for the client's next bytes"
    BUSY = "handles requests"
    PARKED = "its request waits for others, and may be ended"
    SENDING = "the client is slow to take a reply"
    MUTED = "waits until less memory is taken by requests"
    THROTTLED = "waits until its client may take more of its quota"


class Ending(enum.Enum):
    """Why no further request of a connection is handled."""

    CLIENT = "the client sends no more"
    BAD_BYTES = "what the client sent is no request"
    HANDLER = "the last request ended it"
    SERVER = "the broker closes its connections"
    IDLE = "nothing happened for too long"
    OVERDUE = "its unfinished request held memory that others waited for"
    UNREAD = "its client took no replies, while connections kept too much"
    OPENING = "it did not shake hands in time"
    GONE = "the client went away while its request was parked"
    STRANGER = "it asked for something before it had authenticated"
    SESSION = "its session has expired"
    LATE = "it did not authenticate in time"
    PUSHED_OUT = "it had not authenticated, and others wanted to"


_MAY_BE_STUCK = frozenset((State.IDLE, State.SENDING, State.THROTTLED))
_IN_WORK = frozenset((State.BUSY, State.SENDING))


class Activity:
    """The activity of one connection, shared by its parts."""

    __slots__ = ("ending", "last", "state", "unsent")

    def __init__(self, now: float) -> None:
        self.state = State.BUSY
        self.last = now
        """Monotonic seconds of the last progress: bytes came, a request was done, a reply left."""
        self.unsent = 0
        """Bytes of the replies of this turn."""
        self.ending: Ending | None = None
        """Why no further request is handled; None while they are. The first reason stays."""

    def end(self, reason: Ending) -> None:
        """Handle no further request."""
        if self.ending is None:
            self.ending = reason

    @property
    def may_end_at_once(self) -> bool:
        """Whether the connection may end at once: no request is in work, or it is only parked."""
        return self.state not in _IN_WORK

    def is_stuck(self, now: float, max_idle_s: float, *, has_sent_all: bool = False) -> bool:
        """Whether nothing happened for `max_idle_s`; a parked or working request is not stuck.

        A throttled connection is, as in Kafka, and a parked one whose client sends no more: that
        client may be gone for good, which only a reset would tell.
        """
        may_be = self.state in _MAY_BE_STUCK or (has_sent_all and self.state is State.PARKED)
        return may_be and now - self.last > max_idle_s
