"""What the cleaner is doing with a partition, and who holds it back (S-CMP-11).

    None ----begin----> InProgress ----end----> None
    None ----pause----> Paused(1) <--pause/resume--> Paused(n)      resume from 1 leads to None
    InProgress --abort--> Aborted(0)       to be ended at its next step, and then free
    InProgress --pause--> Aborted(1)       to be ended at its next step, and then paused
    Aborted(n) --pause/resume--> Aborted(n +/- 1)
    Aborted(n) ---end---> Paused(n), None for 0

Kafka's `LogCleaningState`, but for one thing: there whoever aborts waits until the cleaner has
stopped. Here results are installed on the event loop, with the generation of the log that they were
made from, so a result that comes too late is thrown away and nobody waits. `Aborted` bars the
partition until the cleaning has ended: two never write `.cleaned` files into one directory.

Only `storage.cleaner.manager` changes this.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from protocol.types import TopicPartition


@dataclass(frozen=True, slots=True)
class InProgress:
    """A cleaner is at it."""


@dataclass(frozen=True, slots=True)
class Aborted:
    """A cleaner is at it, and ends at its next step."""

    pauses: int = 0
    """How often it is held back from then on."""


@dataclass(frozen=True, slots=True)
class Paused:
    """Held back by so many."""

    times: int = 1


CleaningState = InProgress | Aborted | Paused

_IN_PROGRESS: Final = InProgress()


class CleaningStates:
    """The partitions that are not free. A transition that the table lacks raises ValueError."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: dict[TopicPartition, CleaningState] = {}

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def get(self, partition: TopicPartition) -> CleaningState | None:
        """None: free."""
        return self._states.get(partition)

    def begin(self, partition: TopicPartition) -> None:
        """A cleaning starts."""
        if partition in self._states:
            raise self._wrong("begun", partition)
        self._states[partition] = _IN_PROGRESS

    def end(self, partition: TopicPartition) -> None:
        """The cleaning is over, well or not."""
        state = self._states.pop(partition, None)
        if isinstance(state, Aborted) and state.pauses:
            self._states[partition] = Paused(state.pauses)
        elif state is None or isinstance(state, Paused):
            if state is not None:
                self._states[partition] = state
            raise self._wrong("ended", partition)

    def abort(self, partition: TopicPartition) -> None:
        """Let a cleaning end at its next step. Nothing, if there is none."""
        if isinstance(self._states.get(partition), InProgress):
            self._states[partition] = Aborted()

    def pause(self, partition: TopicPartition) -> None:
        """Let a cleaning end at its next step, and none begin until `resume`."""
        state = self._states.get(partition)
        if state is None:
            self._states[partition] = Paused()
        elif isinstance(state, InProgress):
            self._states[partition] = Aborted(1)
        elif isinstance(state, Aborted):
            self._states[partition] = Aborted(state.pauses + 1)
        else:
            self._states[partition] = Paused(state.times + 1)

    def resume(self, partition: TopicPartition) -> None:
        """Undo one `pause`."""
        state = self._states.get(partition)
        if isinstance(state, Paused):
            if state.times > 1:
                self._states[partition] = Paused(state.times - 1)
            else:
                del self._states[partition]
        elif isinstance(state, Aborted) and state.pauses:
            self._states[partition] = Aborted(state.pauses - 1)
        else:
            raise self._wrong("resumed", partition)

    def forget(self, partition: TopicPartition) -> None:
        """The partition is gone: a cleaning ends at its next step, and nobody holds it back."""
        state = self._states.get(partition)
        if isinstance(state, Paused):
            del self._states[partition]
        elif state is not None:
            self._states[partition] = Aborted()

    def _wrong(self, what: str, partition: TopicPartition) -> ValueError:
        state = self._states.get(partition)
        return ValueError(f"The cleaning of {partition} cannot be {what}: its state is {state}")
