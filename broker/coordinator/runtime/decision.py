"""A shard's decision: filled by a pure method of the shard, carried out by the runtime.

Pure data: nothing here blocks, and tests can inspect every part.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from protocol.errors import ErrorCode
from storage.waits import Signal

R = TypeVar("R")
T = TypeVar("T")

Then = Callable[[ErrorCode, Any], None]
"""Called with the code of a write that has ended; fills the `Decision` that follows."""


class Write(Generic[R]):
    """Records of one write, and what depends on its outcome.

    Most writes need only records; the other fields default on the class.
    """

    then: Then | None = None
    translate: Callable[[ErrorCode], ErrorCode] | None = None
    """Maps the code of a failed append to that for the client, in place of `response_code`."""
    producer: Mapping[str, Any] | None = None
    """For records within a transaction: the producer arguments of `build_batch`."""
    splits: bool = False
    """Whether the records (very many tombstones) may be split into batches that fail separately."""
    left: int = 1
    """Batches that have not ended yet; set by the runtime, as is `code`."""
    code: ErrorCode = ErrorCode.NONE
    """The first failure among the batches that have ended."""

    def __init__(self, records: Sequence[R]) -> None:
        self.records = records
        self.ended: Signal[ErrorCode] = Signal()
        """Fired with the code for the client: NONE, or why the write failed."""


class Timer(Protocol):
    """A timer to set; when it fires it is passed to the shard's `on_timer`."""

    @property
    def key(self) -> Hashable:
        """Identity: setting a timer replaces the one of the same key."""
        ...

    @property
    def delay_ms(self) -> int:
        """Counted from when the decision is carried out."""
        ...


class Decision(Generic[R]):
    """Timers and answers that depend on no write, and at most one write."""

    __slots__ = ("answers", "timers", "writing")

    def __init__(self) -> None:
        self.timers: dict[Hashable, Timer | None] = {}
        """By key, the timer to set, or None to cancel it; a later call replaces an earlier one."""
        self.answers: list[tuple[Signal[Any], Any]] = []
        self.writing: Write[R] | None = None

    def schedule(self, timer: Timer) -> None:
        """Set a timer, replacing the one of the same key."""
        self.timers[timer.key] = timer

    def cancel(self, key: Hashable) -> None:
        """Cancel a timer if it is set."""
        self.timers[key] = None

    def answer(self, to: Signal[T] | None, reply: T) -> None:
        """Answer a request now, if there is one."""
        if to is not None:
            self.answers.append((to, reply))

    def write(self, records: Sequence[R], then: Then | None = None) -> Write[R]:
        """Have records appended. A second call adds to the same write, which has one `then`."""
        write = self.writing
        if write is None:
            write = self.writing = Write(records)
        else:
            write.records = [*write.records, *records]
        if then is not None:
            assert write.then is None
            write.then = then
        return write

    @property
    def record_count(self) -> int:
        """How many records are to be written."""
        return 0 if self.writing is None else len(self.writing.records)
