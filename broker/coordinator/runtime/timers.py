"""Named timers that are renewed far more often than they fire.

A group member renews its session with every heartbeat and every commit. Cancelling and scheduling
each time would fill the heap of `Deadlines` with dead entries. So a renewal to a later time only
notes the new time; when the entry in the heap is due, it is scheduled again for the rest. Setting a
timer to an earlier time replaces the entry.

Event loop only; used by the coordinators.
"""

from collections.abc import Callable, Hashable

from broker.deadlines import Deadlines, Handle
from storage.clock import Clock

EARLY_S = 0.0005
"""A timer may fire this early, because sums of floats are not exact."""


class _Entry:
    __slots__ = ("callback", "due", "handle")

    def __init__(self, due: float, callback: Callable[[], None], handle: Handle) -> None:
        self.due = due
        self.callback = callback
        self.handle = handle


class Timers:
    """At most one timer per key."""

    def __init__(self, deadlines: Deadlines, clock: Clock) -> None:
        self._deadlines = deadlines
        self._clock = clock
        self._entries: dict[Hashable, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def schedule(self, key: Hashable, delay_s: float, callback: Callable[[], None]) -> None:
        """Call `callback` in `delay_s` seconds, replacing the timer of the same key."""
        due = self._clock.monotonic() + delay_s
        entry = self._entries.get(key)
        if entry is not None:
            if entry.handle.deadline <= due:
                entry.due = due
                entry.callback = callback
                return
            entry.handle.cancel()
        handle = self._deadlines.schedule(delay_s, lambda: self._fire(key))
        self._entries[key] = _Entry(due, callback, handle)

    def cancel(self, key: Hashable) -> None:
        """Cancel the key's timer, if it is set."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            entry.handle.cancel()

    def clear(self) -> None:
        """Cancel all."""
        for entry in self._entries.values():
            entry.handle.cancel()
        self._entries.clear()

    def _fire(self, key: Hashable) -> None:
        entry = self._entries[key]
        left = entry.due - self._clock.monotonic()
        if left > EARLY_S:
            entry.handle = self._deadlines.schedule(left, lambda: self._fire(key))
            return
        del self._entries[key]
        entry.callback()
