"""Parks requests until a partition changes, without holding a handler.

A `DelayedOperation` is one parked request, watched under one or more keys (each a
`TopicPartition`). Code that changes a partition calls `Purgatory.check(key)`, and every operation
watched under that key checks whether it may end. An operation ends exactly once, in one of three
ways:

* completed: its condition holds (`force_complete`, normally from within `try_complete`);
* expired: its time is up; `on_expire` runs first, then `on_complete`;
* abandoned: the client is gone (`abandon`); nothing runs and there is no answer.

In every case its watchers and its deadline are removed at once, so none accumulate under keys that
are never checked (Kafka purges them from time to time instead).

Synchronous; event loop only. Used by `broker.replication`, the coordinators' partition writer and
the handlers in `broker.api`. After Kafka's `DelayedOperation` and `DelayedOperationPurgatory`.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from broker.deadlines import Deadlines, Handle


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


class DelayedOperation:
    """One parked request. Subclasses define when it may end and what happens then."""

    __slots__ = ("_handle", "_keys", "_purgatory", "ended")

    def __init__(self) -> None:
        self.ended = False
        self._purgatory: Purgatory | None = None
        self._keys: tuple[Hashable, ...] = ()
        self._handle: Handle | None = None

    def try_complete(self, key: Hashable | None = None) -> bool:
        """End the operation if its condition holds; return whether it has ended.

        `key` is what has changed; None: check everything.
        """
        raise NotImplementedError

    def on_complete(self) -> None:
        """Answer the request. Runs exactly once, unless the operation was abandoned."""
        raise NotImplementedError

    def on_expire(self) -> None:
        """Called before `on_complete` when the time is up."""

    def force_complete(self) -> bool:
        """End it now, whatever its condition; return False if it had ended before."""
        if self.ended:
            return False
        purgatory = self._purgatory
        self._leave()
        if purgatory is not None:
            purgatory.completed += 1
        self.on_complete()
        return True

    def abandon(self) -> None:
        """The client is gone: end the operation without an answer."""
        if self.ended:
            return
        purgatory = self._purgatory
        self._leave()
        if purgatory is not None:
            purgatory.abandoned += 1

    def _expire(self) -> None:
        if self.ended:
            return
        purgatory = self._purgatory
        self._leave()
        if purgatory is not None:
            purgatory.expired += 1
        self.on_expire()
        self.on_complete()

    def _leave(self) -> None:
        self.ended = True
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._purgatory is not None:
            self._purgatory.forget(self, self._keys)
            self._purgatory = None


class Purgatory:
    """The operations that wait for one kind of event, by key."""

    __slots__ = ("_deadlines", "_parked", "_watchers", "abandoned", "completed", "expired", "name")

    def __init__(self, name: str, deadlines: Deadlines) -> None:
        self.name = name
        self._deadlines = deadlines
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._parked: dict[DelayedOperation, None] = {}
        self.completed = 0
        self.expired = 0
        self.abandoned = 0

    def watch(
        self, operation: DelayedOperation, keys: Iterable[Hashable], timeout_s: float
    ) -> None:
        """Park `operation` under `keys` for at most `timeout_s` seconds.

        The caller has checked, without a checkpoint since, that its condition does not hold yet. An
        operation may be parked only once.
        """
        watchers = self._watchers
        operation._purgatory = self
        operation._keys = tuple(dict.fromkeys(keys))
        for key in operation._keys:
            waiting = watchers.get(key)
            if waiting is None:
                watchers[key] = {operation: None}
            else:
                waiting[operation] = None
        self._parked[operation] = None
        operation._handle = self._deadlines.schedule(timeout_s, operation._expire)

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Iterable[Hashable], timeout_s: float
    ) -> bool:
        """End `operation` if its condition holds, else park it; return whether it has ended."""
        if operation.try_complete():
            return True
        self.watch(operation, keys, timeout_s)
        return False

    def check(self, key: Hashable) -> int:
        """Have all operations watched under `key` try to end; return how many ended."""
        waiting = self._watchers.get(key)
        if waiting is None:
            return 0
        ended = 0
        for operation in list(waiting):
            if not operation.ended and operation.try_complete(key):
                ended += 1
        return ended

    def forget(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        """Drop the watchers of an operation that has ended. For `DelayedOperation` only."""
        self._parked.pop(operation, None)
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
            parked=len(self._parked),
            watched_keys=len(self._watchers),
            watchers=sum(map(len, self._watchers.values())),
            completed=self.completed,
            expired=self.expired,
            abandoned=self.abandoned,
        )
