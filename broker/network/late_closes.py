"""Connections that are not served, and closed only after a while (KIP-612).

A client whose connection is closed at once comes again at once. So that a flood of them takes no
descriptors from others, only `most` wait to be closed; one more closes the one that waited longest.
"""

from collections import OrderedDict
from functools import partial

from broker.deadlines import Deadlines, Handle
from broker.world.transport import Stream


class LateCloses:
    """Streams that wait to be closed. Event loop only."""

    def __init__(self, deadlines: Deadlines, most: int) -> None:
        self._deadlines = deadlines
        self._most = most
        self._waiting: OrderedDict[Stream, Handle] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def close_in(self, seconds: float, stream: Stream) -> None:
        """Close `stream` in so many seconds, or when too many others wait."""
        self._waiting[stream] = self._deadlines.schedule(seconds, partial(self._close, stream))
        if len(self._waiting) > self._most:
            self._close(next(iter(self._waiting)))

    def close_all(self) -> None:
        """Close all of them now."""
        while self._waiting:
            self._close(next(iter(self._waiting)))

    def _close(self, stream: Stream) -> None:
        self._waiting.pop(stream).cancel()
        stream.close()
