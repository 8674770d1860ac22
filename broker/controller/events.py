"""The controller's queue: what happened, handled one after the other, in the order it came.

Everything that changes the controller's state is an event: a change of the tree, a request of a
broker or client, an answer of a broker, a timer. While one is handled, which may take long and lets
others run (`PAUSE`), the next ones wait; so an event finds the state as the last one left it.

An event of which one is waiting already is not queued again if both would do the same (`key`). When
the session with the store ends, what is queued belongs to a term that is over: `clear` answers the
requests among it and drops the rest.

Sources: `kafka.controller.ControllerEventManager`, `ControllerState` (3.9).
"""

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from storage.clock import Clock
from storage.distribution import FOLD, Distribution, DistributionSnapshot
from storage.waits import Signal, Work


class ControllerActivity(Enum):
    """The controller's activity: the number is that of the metric ControllerState."""

    IDLE = 0
    CONTROLLER_CHANGE = 1
    BROKER_CHANGE = 2
    TOPIC_CHANGE = 3
    TOPIC_DELETION = 4
    ALTER_PARTITION_REASSIGNMENT = 5
    AUTO_LEADER_BALANCE = 6
    MANUAL_LEADER_BALANCE = 7
    CONTROLLED_SHUTDOWN = 8
    ISR_CHANGE = 9
    LEADER_AND_ISR_RESPONSE_RECEIVED = 10
    LOG_DIR_CHANGE = 11
    CONTROLLER_SHUTDOWN = 12
    UNCLEAN_LEADER_ELECTION_ENABLE = 13
    TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE = 14
    LIST_PARTITION_REASSIGNMENT = 15
    UPDATE_METADATA_RESPONSE_RECEIVED = 16
    UPDATE_FEATURES = 17


UNTIMED: Final = frozenset(
    (ControllerActivity.IDLE, ControllerActivity.UPDATE_METADATA_RESPONSE_RECEIVED)
)
"""Activities without a metric of their rate and time."""


@dataclass(frozen=True, slots=True)
class ControllerEvent:
    """Something to be handled."""

    activity: ControllerActivity
    handle: Callable[[], Work[None]]
    key: Hashable = None
    """Two events with one key are as good as one; None: like no other."""
    preempt: Callable[[], object] = lambda: None
    """Called instead of `handle` when the term ends first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStatistics:
    """Numbers for metrics."""

    activity: ControllerActivity
    queued: int
    queue_times: DistributionSnapshot
    """How long events have waited."""
    times: dict[ControllerActivity, DistributionSnapshot] = field(default_factory=dict)
    """How long each kind of event took."""


class EventQueue:
    """See the module. Event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: deque[tuple[ControllerEvent, float]] = deque()
        self._keys: set[Hashable] = set()
        self._news: Signal[None] = Signal()
        self._activity = ControllerActivity.IDLE
        self._queue_times = Distribution()
        self._times = {one: Distribution() for one in ControllerActivity if one not in UNTIMED}

    def put(self, event: ControllerEvent) -> None:
        """Queue an event."""
        if event.key is not None:
            if event.key in self._keys:
                return
            self._keys.add(event.key)
        self._queue.append((event, self._clock.monotonic()))
        self._news.fire()

    def clear(self) -> None:
        """Preempt all that is queued."""
        queued, self._queue = self._queue, deque()
        self._keys.clear()
        for event, _ in queued:
            event.preempt()

    async def run(self, guarded: Callable[[ControllerEvent], Work[None]]) -> None:
        """Handle events until ended; `guarded` calls `handle` of each, and knows what may fail."""
        while True:
            while not self._queue:
                self._news = Signal()
                await self._news
            event, since = self._queue.popleft()
            self._keys.discard(event.key)
            began = self._clock.monotonic()
            self._note(self._queue_times, began - since)
            self._activity = event.activity
            try:
                await guarded(event)
            finally:
                self._activity = ControllerActivity.IDLE
                times = self._times.get(event.activity)
                if times is not None:
                    self._note(times, self._clock.monotonic() - began)

    def _note(self, times: Distribution, seconds: float) -> None:
        times.note(seconds)
        if len(times.waiting) >= FOLD:
            times.fold(self._clock.monotonic())

    def statistics(self) -> EventStatistics:
        """A snapshot."""
        now = self._clock.monotonic()
        return EventStatistics(
            activity=self._activity,
            queued=len(self._queue),
            queue_times=self._queue_times.snapshot(now),
            times={one: times.snapshot(now) for one, times in self._times.items()},
        )
