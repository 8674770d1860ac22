"""Named timers that are renewed far more often than they fire.

A group member renews its session with every heartbeat and every commit. Cancelling and
scheduling anew each time would grow the heap of `Deadlines` with dead entries; here a renewal to a
later time only notes the new time, and the entry in the heap, when it comes up, goes to sleep
again for the rest. Setting a timer to an earlier time replaces the entry.

Belongs to the event loop; used by the coordinators.
"""

from collections.abc import Callable, Hashable

from broker.deadlines import Deadlines, Handle
from storage.clock import Clock

EARLY_S = 0.0005
"""A timer this close to its time fires: sums of floats are not exact."""


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
        """Call `callback` in `delay_s` seconds, instead of what the key was set to before."""
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
        """The key's timer will not fire, if it is set."""
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
