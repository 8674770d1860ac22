"""What a shard decides: filled by a pure method of the shard, carried out by the runtime.

Pure data: nothing here blocks, and tests can look at every part.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from protocol.errors import ErrorCode

R = TypeVar("R")

Done = Callable[[ErrorCode], None]
"""Takes what the client is told, once: NONE, or why it was not done."""
Then = Callable[[ErrorCode, Any], None]
"""The decision that follows a write, upon how it ended: fills a new `Decision` of the same kind."""


class Write(Generic[R]):
    """Records that stand or fall together, and what depends on them.

    Most writes need no more than records and an answer; the rest are defaults of the class.
    """

    then: Then | None = None
    translate: Callable[[ErrorCode], ErrorCode] | None = None
    """From why the append failed to what the client is told, where `response_code` will not do."""
    producer: Mapping[str, Any] | None = None
    """For records within a transaction: what `build_batch` is to be told of its producer."""
    splits: bool = False
    """Tombstones, which may be very many: several batches, each durable for itself."""
    left: int = 1
    """Batches that have not ended yet; kept by the runtime, as is `code`."""
    code: ErrorCode = ErrorCode.NONE
    """Of those that have ended, the first failure."""

    def __init__(self, records: Sequence[R], answer: Done | None) -> None:
        self.records = records
        self.answer = answer


class Timer(Protocol):
    """What a shard is told when time is up, by its `on_timer`."""

    @property
    def key(self) -> Hashable:
        """Setting a timer replaces the one of the same key."""
        ...

    @property
    def delay_ms(self) -> int:
        """From when the decision is carried out."""
        ...


class Decision(Generic[R]):
    """Timers and answers that depend on no write, and at most one write."""

    __slots__ = ("answers", "timers", "writing")

    def __init__(self) -> None:
        self.timers: dict[Hashable, Timer | None] = {}
        """The last word per key: a timer to set, or None to cancel."""
        self.answers: list[tuple[Callable[[Any], None], Any]] = []
        self.writing: Write[R] | None = None

    def schedule(self, timer: Timer) -> None:
        """Set a timer, replacing the one of the same key."""
        self.timers[timer.key] = timer

    def cancel(self, key: Hashable) -> None:
        """Cancel a timer if it is set."""
        self.timers[key] = None

    def answer(self, to: Callable[[Any], None] | None, reply: Any) -> None:
        """Answer a request now, if there is one."""
        if to is not None:
            self.answers.append((to, reply))

    def write(
        self, records: Sequence[R], answer: Done | None = None, then: Then | None = None
    ) -> Write[R]:
        """Have records appended; `answer` hears how that ended.

        What is said twice in one decision goes into one batch, with one answer and one `then`.
        """
        write = self.writing
        if write is None:
            write = self.writing = Write(records, answer)
        else:
            write.records = [*write.records, *records]
            if answer is not None:
                assert write.answer is None
                write.answer = answer
        if then is not None:
            assert write.then is None
            write.then = then
        return write

    def when_durable(self, answer: Done) -> None:
        """Tell this request how the write ends; if nothing is to be written, NONE now."""
        if self.writing is None:
            self.answers.append((answer, ErrorCode.NONE))
        else:
            assert self.writing.answer is None
            self.writing.answer = answer

    @property
    def record_count(self) -> int:
        """How many records are to be written."""
        return 0 if self.writing is None else len(self.writing.records)
