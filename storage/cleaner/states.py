"""Whether a partition is being cleaned, and whether cleaning is paused (S-CMP-11).

    None ----begin----> InProgress ----end----> None
    None ----pause----> Paused(1) <--pause/resume--> Paused(n)      resume from 1 leads to None
    InProgress --abort--> Aborted(0)       ends at its next step, and is then free
    InProgress --pause--> Aborted(1)       ends at its next step, and is then paused
    Aborted(n) --pause/resume--> Aborted(n +/- 1)
    Aborted(n) ---end---> Paused(n), None for 0

Kafka's `LogCleaningState`, with one difference: there whoever aborts waits until the cleaner has
stopped. Here the event loop installs a result only if the log still has the generation that it was
made from, so a late result is dropped and nobody waits. An aborted cleaning keeps the partition
busy until it has ended: two cleanings never write `.cleaned` files into one directory. The classes
have the names above with Kafka's `LogCleaning` in front.

Only `storage.cleaner.manager` changes this.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from protocol.types import TopicPartition


@dataclass(frozen=True, slots=True)
class LogCleaningInProgress:
    """The partition is being cleaned."""


@dataclass(frozen=True, slots=True)
class LogCleaningAborted:
    """The partition is being cleaned, and the cleaning ends at its next step."""

    pauses: int = 0
    """How many pauses hold after that."""


@dataclass(frozen=True, slots=True)
class LogCleaningPaused:
    """No cleaning may begin until `times` pauses are resumed."""

    times: int = 1


LogCleaningState = LogCleaningInProgress | LogCleaningAborted | LogCleaningPaused

_IN_PROGRESS: Final = LogCleaningInProgress()


class CleaningStates:
    """The partitions that are not free. A transition that the table lacks raises ValueError."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: dict[TopicPartition, LogCleaningState] = {}

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def get(self, partition: TopicPartition) -> LogCleaningState | None:
        """The partition's state; None: free."""
        return self._states.get(partition)

    def begin(self, partition: TopicPartition) -> None:
        """Begin a cleaning."""
        if partition in self._states:
            raise self._wrong("begun", partition)
        self._states[partition] = _IN_PROGRESS

    def end(self, partition: TopicPartition) -> None:
        """End a cleaning, successful or not."""
        state = self._states.pop(partition, None)
        if isinstance(state, LogCleaningAborted) and state.pauses:
            self._states[partition] = LogCleaningPaused(state.pauses)
        elif state is None or isinstance(state, LogCleaningPaused):
            if state is not None:
                self._states[partition] = state
            raise self._wrong("ended", partition)

    def abort(self, partition: TopicPartition) -> None:
        """Let a cleaning end at its next step, if there is one."""
        if isinstance(self._states.get(partition), LogCleaningInProgress):
            self._states[partition] = LogCleaningAborted()

    def pause(self, partition: TopicPartition) -> None:
        """Let a cleaning end at its next step, and none begin until `resume`."""
        state = self._states.get(partition)
        if state is None:
            self._states[partition] = LogCleaningPaused()
        elif isinstance(state, LogCleaningInProgress):
            self._states[partition] = LogCleaningAborted(1)
        elif isinstance(state, LogCleaningAborted):
            self._states[partition] = LogCleaningAborted(state.pauses + 1)
        else:
            self._states[partition] = LogCleaningPaused(state.times + 1)

    def resume(self, partition: TopicPartition) -> None:
        """Undo one `pause`."""
        state = self._states.get(partition)
        if isinstance(state, LogCleaningPaused):
            if state.times > 1:
                self._states[partition] = LogCleaningPaused(state.times - 1)
            else:
                del self._states[partition]
        elif isinstance(state, LogCleaningAborted) and state.pauses:
            self._states[partition] = LogCleaningAborted(state.pauses - 1)
        else:
            raise self._wrong("resumed", partition)

    def forget(self, partition: TopicPartition) -> None:
        """Drop all pauses of a partition that is gone, and let a cleaning end at its next step."""
        state = self._states.get(partition)
        if isinstance(state, LogCleaningPaused):
            del self._states[partition]
        elif state is not None:
            self._states[partition] = LogCleaningAborted()

    def _wrong(self, what: str, partition: TopicPartition) -> ValueError:
        state = self._states.get(partition)
        return ValueError(f"The cleaning of {partition} cannot be {what}: its state is {state}")
