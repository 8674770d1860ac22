"""Parks requests until a partition changes, without holding a handler.

A `DelayedOperation` is one parked request, watched under one or more keys (each a
`TopicPartition`). Code that changes a partition calls `Purgatory.check(key)`, and every operation
watched under that key checks whether it may end. An operation ends exactly once, in one of three
ways:

* completed: its condition holds, and its signal fires;
* expired: its time is up; `on_expire` runs first, then its signal fires;
* abandoned: the client is gone (`abandon`); nothing runs and there is no answer.

In every case its watchers and its deadline are removed, so none accumulate under keys that are
never checked (Kafka purges them from time to time instead). One change may complete thousands: an
operation for which a request waits (`Purgatory.wait`) only fires its signal in the turn of the
change, and leaves the purgatory in the request's own turn.

Synchronous; event loop only. Used by `broker.replication`, the coordinators' partition writer and
the handlers in `broker.api`. After Kafka's `DelayedOperation` and `DelayedOperationPurgatory`.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Any, Final

from broker.deadlines import Deadlines, Handle
from storage.waits import Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgatoryStatistics:
    """Kafka's `DelayedOperationPurgatory` metrics, and how parked requests ended."""

    parked: int
    """Operations that are parked now (`NumDelayedOperations`)."""
    watched_keys: int
    watchers: int
    """(operation, key) pairs (`PurgatorySize`)."""
    completed: int
    expired: int
    abandoned: int


COMPLETED: Final = 0
EXPIRED: Final = 1
ABANDONED: Final = 2


class DelayedOperation:
    """One parked request. Subclasses define when it may end."""

    __slots__ = ("_handle", "_is_awaited", "_keys", "_purgatory", "ended", "outcome", "over")

    def __init__(self) -> None:
        self.ended = False
        self.over: Signal[Any] = Signal()
        """Fires with `outcome` when the operation completes or expires."""
        self.outcome: Any = None
        self._purgatory: Purgatory | None = None
        self._keys: Collection[Hashable] = ()
        self._handle: Handle | None = None
        self._is_awaited = False
        """Whether a request waits for `over`, which leaves the purgatory when it goes on."""

    def is_complete(self, key: Hashable | None = None) -> bool:
        """Return whether the condition holds.

        `key` has changed; if it is None, check everything.
        """
        raise NotImplementedError

    def on_expire(self) -> None:
        """Called when the time is up, before the request goes on."""

    def try_complete(self, key: Hashable | None = None) -> bool:
        """End the operation if its condition holds; return whether this call has ended it."""
        if self.ended or not self.is_complete(key):
            return False
        self._end(COMPLETED)
        if not self._is_awaited:
            self.leave()
        self.over.fire(self.outcome)
        return True

    def abandon(self) -> None:
        """The client is gone: end the operation without an answer."""
        if not self.ended:
            self._end(ABANDONED)
            self.leave()

    def _expire(self) -> None:
        if not self.ended:
            self._end(EXPIRED)
            self.leave()
            self.on_expire()
            self.over.fire(self.outcome)

    def _end(self, how: int) -> None:
        self.ended = True
        purgatory = self._purgatory
        if purgatory is not None:
            purgatory.parked -= 1
            purgatory.ended[how] += 1

    def leave(self) -> None:
        """Remove the watchers and the deadline of an operation that has ended."""
        purgatory = self._purgatory
        if purgatory is not None:
            self._purgatory = None
            purgatory.forget(self, self._keys)
            if self._handle is not None:
                self._handle.cancel()
                self._handle = None


class Purgatory:
    """The operations that wait for one kind of event, by key."""

    __slots__ = ("_deadlines", "_watchers", "ended", "name", "parked")

    def __init__(self, name: str, deadlines: Deadlines) -> None:
        self.name = name
        self._deadlines = deadlines
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self.parked = 0
        self.ended = [0, 0, 0]
        """Operations that were parked, by how they ended."""

    def watch(
        self, operation: DelayedOperation, keys: Collection[Hashable], timeout_s: float
    ) -> None:
        """Park `operation` under `keys` for at most `timeout_s` seconds.

        The caller has checked, without a checkpoint since, that its condition does not hold yet. An
        operation may be parked only once.
        """
        watchers = self._watchers
        operation._purgatory = self
        operation._keys = keys
        for key in keys:
            waiting = watchers.get(key)
            if waiting is None:
                watchers[key] = {operation: None}
            else:
                waiting[operation] = None
        self.parked += 1
        operation._handle = self._deadlines.schedule(timeout_s, operation._expire)

    async def wait(
        self, operation: DelayedOperation, keys: Collection[Hashable], timeout_s: float
    ) -> None:
        """Park `operation` as `watch` does, on behalf of a client, until it is over."""
        self.watch(operation, keys, timeout_s)
        operation._is_awaited = True
        try:
            await operation.over.parked()
        finally:
            operation.abandon()  # if the client has gone
            operation.leave()

    def check(self, key: Hashable) -> int:
        """Have all operations watched under `key` try to end; return how many ended."""
        watchers = self._watchers
        waiting = watchers.get(key)
        if waiting is None:
            return 0
        ended = [
            operation
            for operation in list(waiting)
            if not operation.ended and operation.try_complete(key)
        ]
        # Those that leave later: the next check does not meet them again.
        for operation in ended:
            waiting.pop(operation, None)
        if not waiting and watchers.get(key) is waiting:
            del watchers[key]
        return len(ended)

    def forget(self, operation: DelayedOperation, keys: Collection[Hashable]) -> None:
        """Drop the watchers of an operation that has ended. For `DelayedOperation` only."""
        watchers = self._watchers
        for key in keys:
            waiting = watchers.get(key)
            if waiting is not None:
                waiting.pop(operation, None)
                if not waiting:
                    del watchers[key]

    def statistics(self) -> PurgatoryStatistics:
        """Counts for metrics."""
        return PurgatoryStatistics(
            parked=self.parked,
            watched_keys=len(self._watchers),
            watchers=sum(map(len, self._watchers.values())),
            completed=self.ended[COMPLETED],
            expired=self.ended[EXPIRED],
            abandoned=self.ended[ABANDONED],
        )
