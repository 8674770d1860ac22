"""Which streams in memory are ready; see `broker.world.readiness.Readiness`."""

from itertools import islice

import trio

from broker.world.readiness import BROKEN, ONCE
from tests.support.memory_stream import MemoryStream


class MemoryReadiness:
    """The readiness of one process. Streams come in the order in which they became ready."""

    def __init__(self) -> None:
        self._streams: dict[int, MemoryStream] = {}
        self._masks: dict[int, int] = {}
        self._next_key = 0
        self._changed: dict[int, None] = {}
        """Keys of streams that may be ready."""
        self._told: dict[int, int] = {}
        """Events that `poll` has returned already, of streams with ONCE in their mask."""
        self._asleep = trio.lowlevel.ParkingLot()

    def add(self, stream: MemoryStream, mask: int) -> int:
        """See `Readiness`."""
        self._next_key += 1
        key = self._next_key
        self._streams[key] = stream
        stream.changed = lambda: self._note(key)
        self.modify(key, mask)
        return key

    def modify(self, key: int, mask: int) -> None:
        """See `Readiness`."""
        self._masks[key] = mask
        self._told.pop(key, None)
        self._note(key)

    def forget(self, key: int) -> None:
        """See `Readiness`."""
        self._streams.pop(key).changed = lambda: None
        del self._masks[key]
        self._changed.pop(key, None)
        self._told.pop(key, None)

    def poll(self, _timeout: int, most: int, /) -> list[tuple[int, int]]:
        """See `Readiness`."""
        found = []
        for key in islice(list(self._changed), most):
            del self._changed[key]
            events = self._events(key)
            if not events:
                continue
            found.append((key, events))
            if self._masks[key] & ONCE:
                self._told[key] = self._told.get(key, 0) | events
            else:
                self._changed[key] = None  # behind the others
        return found

    async def wait(self) -> None:
        """See `Readiness`."""
        await trio.lowlevel.checkpoint()
        while not any(map(self._events, self._changed)):
            await self._asleep.park()

    def _events(self, key: int) -> int:
        events = self._streams[key].events() & (self._masks[key] | BROKEN)
        return events & ~self._told.get(key, 0)

    def _note(self, key: int) -> None:
        self._changed[key] = None
        self._asleep.unpark_all()
