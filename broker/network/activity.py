"""What a connection is doing, and since when: written by its parts, read by who may end it.

The server's sweeper and its shutdown look here, so no read needs a timer and no request a cancel
scope.
"""

import enum


class State(enum.Enum):
    """What a connection is doing, for whoever wants to end it."""

    IDLE = "waits for the client's next bytes"
    BUSY = "handles requests"
    PARKED = "waits for a reply and for the client's disconnect"
    PARKED_BLIND = "waits for a reply; bytes sent ahead hide a disconnect"
    SENDING = "the client is slow to take a reply"
    MUTED = "waits until less memory is taken by requests"


_MAY_BE_STUCK = frozenset((State.IDLE, State.SENDING))
_IN_WORK = frozenset((State.BUSY, State.SENDING))


class Activity:
    """Shared by the parts of one connection."""

    __slots__ = ("closing", "last", "state")

    def __init__(self, now: float) -> None:
        self.state = State.BUSY
        self.last = now
        """Monotonic seconds at which bytes came, a request was done or a reply left, lately."""
        self.closing = False
        """No further request is handled."""

    @property
    def may_be_cut(self) -> bool:
        """No request is in work, or it is only parked."""
        return self.state not in _IN_WORK

    def is_stuck(self, now: float, max_idle_s: float) -> bool:
        """Nothing happened for so long; a parked or working request is not stuck."""
        return now - self.last > max_idle_s and self.state in _MAY_BE_STUCK
