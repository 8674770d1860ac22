"""Room for large messages: limits their elements and bytes in memory at the same time.

A frame above `socket.request.max.bytes` is refused before (`protocol.framing.frame_size`), and a
request with more elements than its API allows while it is parsed (`Api.most_elements`).

A request of many elements is parsed in turns and becomes objects, some 250 bytes each; a reply of
many elements is built in turns and becomes bytes. Over all connections both are limited:

* A request claims `Room` for as many elements as its frame could hold before it is parsed, and
  gives back what it did not need. Requests wait until there is room; smaller ones may overtake.
* A controller of Kafka tells a broker of all partitions in one request. Those that may do so
  (`Api.most_of_brokers`) have room of their own beyond `MAX_ELEMENTS`: one such request at a time,
  which clients with large requests do not keep waiting.
* Replies larger than `LARGE_REPLY_BYTES` are built one at a time, and only while the replies that
  clients have not taken yet are at most `UNSENT_BYTES`. When a reply has waited `PATIENCE_S` for
  that, clients whose large replies are unsent for at least so long lose their connections, those
  who keep most of it first (`broker.fairness`), until there is room.
* The next reply to be built is that of the client that keeps least unsent.

Event loop only.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from broker.api_facts import MOST_OF_BROKERS
from broker.fairness import CLIENT, FairLock, Shares
from broker.world.clock import TaskClock
from protocol.errors import ProtocolError
from protocol.schema.parse_code import MAX_ELEMENTS
from storage.waits import Signal, Waiters

ELEMENTS_AT_ONCE: Final = MAX_ELEMENTS * 7 // 5
"""Elements of all requests in work: the largest request, and some of ordinary size beside it."""
LEAST_ELEMENT_BYTES: Final = 2
"""Least bytes of a frame per element, except for empty strings and flags."""
LARGE_REPLY_BYTES: Final = 1 << 20
MAX_REPLY_BYTES: Final = 100 << 20
"""A larger reply ends the connection: only a request that repeats the same names leads to one."""
UNSENT_BYTES: Final = 64 << 20
PATIENCE_S: Final = 10.0


class ReplyTooLarge(ProtocolError):
    """The reply would be larger than `MAX_REPLY_BYTES`."""


class Room:
    """The elements that one request has claimed; a context manager that gives them back."""

    __slots__ = ("_of", "elements")

    def __init__(self, of: "Rooms", elements: int) -> None:
        self._of = of
        self.elements = elements

    def shrink(self, elements: int) -> None:
        """Keep room for `elements`, and give back the rest."""
        if elements < self.elements:
            self._of.give_back(self.elements - elements)
            self.elements = elements

    def __enter__(self) -> "Room":
        return self

    def __exit__(self, *_: object) -> None:
        self.shrink(0)


class Rooms:
    """A number of elements that requests share."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._waiting: Waiters[int] = Waiters()
        """Requests that do not fit, with their elements."""

    async def take(self, elements: int) -> Room:
        """Wait until there is room for `elements`; return it."""
        if self._taken + elements <= self._most:
            self._taken += elements
        else:  # `give_back` takes the room for those that it calls
            await self._waiting.wait(elements, partial(self.give_back, elements))
        return Room(self, elements)

    def give_back(self, elements: int) -> None:
        """Give `elements` back, and their room to requests that fit now. Called by `Room`."""
        self._taken -= elements
        for waiter in tuple(self._waiting):
            if self._taken + waiter.who <= self._most:
                self._taken += waiter.who
                self._waiting.admit(waiter)


class ReplyRoom:
    """The room of one reply from its first byte until its client has it; a context manager."""

    __slots__ = ("_all", "_building", "abort", "client", "since", "size")

    def __init__(self, everything: "LargeMessages", abort: Callable[[], None]) -> None:
        self._all = everything
        self._building = False
        self.abort = abort
        """Called to end the connection if its client is too slow to take the reply."""
        self.client = CLIENT.get()
        self.size = 0
        self.since = 0.0

    async def grow(self, size: int) -> None:
        """Wait for room if the reply, now `size` bytes, has become large. Raises ReplyTooLarge."""
        if size > MAX_REPLY_BYTES:
            raise ReplyTooLarge(f"the reply would be larger than {MAX_REPLY_BYTES} bytes")
        if size > LARGE_REPLY_BYTES and not self._building:
            await self._all.begin_reply()
            self._building = True

    def built(self, size: int) -> None:
        """The reply is complete, with `size` bytes, and is sent from now on."""
        if self._building:
            self._building = False
            self.size = size
            self._all.end_reply(self)

    def __enter__(self) -> "ReplyRoom":
        return self

    def __exit__(self, *_: object) -> None:
        if self._building:
            self._building = False
            self._all.end_reply(None)
        self._all.drop_reply(self)


class LargeMessages:
    """The room that large messages take, and the requests that wait for some. One per broker."""

    def __init__(self, clock: TaskClock) -> None:
        self._clock = clock
        self._requests = Rooms(ELEMENTS_AT_ONCE)
        self._of_brokers = Rooms(MOST_OF_BROKERS)
        self._unsent_by = Shares()
        self._building = FairLock(shares=self._unsent_by, parks=True)
        self._unsent: list[ReplyRoom] = []
        self._sent: Signal[None] = Signal()
        """Fires when a client has taken a reply; the one that is to be built next waits for it."""

    # ---- requests

    async def room_for(self, frame_bytes: int, most: int = MAX_ELEMENTS) -> Room:
        """Wait for room for the elements that such a frame may hold, at most `most`; return it."""
        elements = min(frame_bytes // LEAST_ELEMENT_BYTES, most)
        if elements > MAX_ELEMENTS:
            # All of it: what is given back after parsing must not let a second one in.
            return await self._of_brokers.take(MOST_OF_BROKERS)
        return await self._requests.take(elements)

    # ---- replies

    def reply_room(self, abort: Callable[[], None]) -> ReplyRoom:
        """Return the room of one reply, which may become large."""
        return ReplyRoom(self, abort)

    async def begin_reply(self) -> None:
        """Wait until a large reply may be built. Called by `ReplyRoom`."""
        await self._building.acquire()
        try:
            while self._is_full():
                await self._sent.within(PATIENCE_S)
                if self._is_full():  # the timeout was over, or too little was taken
                    self._end_slow()
        except BaseException:
            self._building.release()
            raise

    def _is_full(self) -> bool:
        return self._unsent_bytes() > UNSENT_BYTES

    def _unsent_bytes(self) -> int:
        return sum(reply.size for reply in self._unsent)

    def _end_slow(self) -> None:
        now = self._clock.monotonic()
        slow = [reply for reply in self._unsent if now - reply.since >= PATIENCE_S]
        slow.sort(key=lambda reply: self._unsent_by.rank(reply.client), reverse=True)
        left = self._unsent_bytes()
        for payer in slow:
            if left > UNSENT_BYTES:
                left -= payer.size
                payer.abort()

    def end_reply(self, built: ReplyRoom | None) -> None:
        """The reply is complete (`built`), or was given up (None). Called by `ReplyRoom`."""
        self._building.release()
        if built is not None:
            built.since = self._clock.monotonic()
            self._unsent.append(built)
            self._unsent_by.add(built.client, built.size)

    def drop_reply(self, reply: ReplyRoom) -> None:
        """The client has the reply, or is gone. Called by `ReplyRoom`."""
        if reply in self._unsent:
            self._unsent.remove(reply)
            self._unsent_by.add(reply.client, -reply.size)
            self._sent.fire()
            self._sent = Signal()
