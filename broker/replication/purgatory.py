"""Parks requests until a partition changes, without holding a handler.

A `DelayedOperation` is one parked request, watched under one or more keys (each a
`TopicPartition`). Code that changes a partition calls `Purgatory.check(key)`, and every operation
watched under that key checks whether it may end. An operation ends exactly once, in one of three
ways:

* completed: its condition holds (`force_complete`, normally from within `try_complete`);
* expired: its time is up; `on_expire` runs first, then `on_complete`;
* abandoned: the client is gone (`abandon`); nothing runs and there is no answer.

In every case its watchers and its deadline are removed at once, so none accumulate under keys that
are never checked (Kafka purges them from time to time instead). One change may complete thousands:
an operation whose work continues in a turn of its own only announces itself (`announce`) in the
turn of the change, and leaves the purgatory in its own turn (`leave`).

Synchronous; event loop only. Used by `broker.replication`, the coordinators' partition writer and
the handlers in `broker.api`. After Kafka's `DelayedOperation` and `DelayedOperationPurgatory`.
"""

from collections.abc import Collection, Hashable
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
        self._keys: Collection[Hashable] = ()
        self._handle: Handle | None = None

    def try_complete(self, key: Hashable | None = None) -> bool:
        """End the operation if its condition holds; return whether it has ended.

        `key` has changed; if it is None, check everything.
        """
        raise NotImplementedError

    def on_complete(self) -> None:
        """Answer the request. Runs exactly once, unless the operation was abandoned."""
        raise NotImplementedError

    def on_expire(self) -> None:
        """Called before `on_complete` when the time is up."""

    def force_complete(self) -> bool:
        """End it now, even if its condition does not hold; return False if it had ended before."""
        if self.ended:
            return False
        self.ended = True
        purgatory = self._purgatory
        if purgatory is not None:
            purgatory.parked -= 1
            purgatory.completed += 1
        self.leave()
        self.on_complete()
        return True

    def announce(self) -> bool:
        """End it as `force_complete` does, except that `leave` is called later, by its owner."""
        self.ended = True
        purgatory = self._purgatory
        if purgatory is not None:
            purgatory.parked -= 1
            purgatory.completed += 1
        self.on_complete()
        return True

    def abandon(self) -> None:
        """The client is gone: end the operation without an answer."""
        if self.ended:
            return
        self.ended = True
        purgatory = self._purgatory
        if purgatory is not None:
            purgatory.parked -= 1
            purgatory.abandoned += 1
        self.leave()

    def leave(self) -> None:
        """Remove the watchers and the deadline of an operation that has ended."""
        purgatory = self._purgatory
        if purgatory is not None:
            self._purgatory = None
            purgatory.forget(self, self._keys)
            if self._handle is not None:
                self._handle.cancel()
                self._handle = None

    def _expire(self) -> None:
        if self.ended:
            return
        self.ended = True
        purgatory = self._purgatory
        if purgatory is not None:
            purgatory.parked -= 1
            purgatory.expired += 1
        self.leave()
        self.on_expire()
        self.on_complete()


class Purgatory:
    """The operations that wait for one kind of event, by key."""

    __slots__ = ("_deadlines", "_watchers", "abandoned", "completed", "expired", "name", "parked")

    def __init__(self, name: str, deadlines: Deadlines) -> None:
        self.name = name
        self._deadlines = deadlines
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self.parked = 0
        self.completed = 0
        self.expired = 0
        self.abandoned = 0

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

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Collection[Hashable], timeout_s: float
    ) -> bool:
        """End `operation` if its condition holds, else park it; return whether it has ended."""
        if operation.try_complete():
            return True
        self.watch(operation, keys, timeout_s)
        return False

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
        # Those that only announced themselves: the next check does not meet them again.
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
            completed=self.completed,
            expired=self.expired,
            abandoned=self.abandoned,
        )
