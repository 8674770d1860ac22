"""The bytes that blocked connections keep: replies that clients do not take, requests ahead.

A client may send requests and read no replies. Then its connection keeps bytes in memory until it
has been idle for too long, and three thousand such clients must not cost gigabytes. Rules:

1. A turn ends when its replies have `TURN_REPLY_BYTES`, so a connection keeps that and one reply
   more (large ones have rules of their own, `large_messages`), what one receive has brought, and
   the reply to the request behind, if its work was done meanwhile (`finishing`).
2. While all connections together keep more than `MOST_BYTES`, a turn ends after each reply, and a
   receive brings little (`receive_buffer.FIRST_BYTES`): from there on each keeps hardly more than
   its next reply, which is all that Kafka makes for a connection.
3. Above `MOST_EVER_BYTES`, connections whose clients have taken nothing for `UNREAD_S` are closed
   until there is room. Those of the client that keeps most come first.
4. When most of the bytes are gone, the memory goes back to the system (`return_memory`).
"""

from typing import Final

TURN_REPLY_BYTES: Final = 64 * 1024
MOST_BYTES: Final = 64 * 1024 * 1024
MOST_EVER_BYTES: Final = 256 * 1024 * 1024
UNREAD_S: Final = 10.0
WORTH_RETURNING: Final = 32 * 1024 * 1024
"""Bytes that were kept; less would be used again soon."""


class Backlog:
    """The bytes that all connections of a broker keep. Event loop only."""

    __slots__ = ("_highest", "_most", "bytes", "most_ever", "turn_bytes")

    def __init__(self, most: int = MOST_BYTES, most_ever: int = MOST_EVER_BYTES) -> None:
        self._most = most
        self.most_ever = most_ever
        self.bytes = 0
        self._highest = 0
        """The most since memory was last returned."""
        self.turn_bytes = TURN_REPLY_BYTES
        """Bytes of replies after which a turn ends."""

    @property
    def is_long(self) -> bool:
        """Whether connections keep so much that each takes only its next reply or frame."""
        return not self.turn_bytes

    @property
    def excess(self) -> int:
        """Bytes above the limit `most_ever`; 0 or less if there are none."""
        return self.bytes - self.most_ever

    def add(self, change: int) -> None:
        """A connection keeps `change` bytes more, or fewer."""
        self.bytes = now = self.bytes + change
        self._highest = max(self._highest, now)
        self.turn_bytes = TURN_REPLY_BYTES if now <= self._most else 0

    def is_over(self) -> bool:
        """Whether so much less is kept than before that memory should be returned.

        The next call compares with the present bytes.
        """
        over = self._highest >= WORTH_RETURNING and self.bytes < self._highest // 4
        if over:
            self._highest = self.bytes
        return over


def return_memory() -> None:
    """Return free memory to the system, in a thread: the allocator of glibc keeps what lies below
    memory that is in use. Does nothing with other allocators."""
    import ctypes  # hardly ever needed, and a start need not wait for it

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
