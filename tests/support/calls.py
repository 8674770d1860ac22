"""Work that stands still at each of its calls (`storage.waits.call`), for tests that let something
happen before a call, or between a call and the next line.

    flush = Calls(log.flush())      up to its first call, or its end
    flush.run()                     the call, as a thread makes it
    log.truncate_to(3)              something happens meanwhile
    flush.complete()                the work goes on, up to its next call or its end
"""

from typing import Any, Generic, TypeVar

from storage.waits import PAUSE, Call, Together, Work, at_once

T = TypeVar("T")


class Calls(Generic[T]):
    """Work that has come to a call, or to its end. It passes pauses."""

    def __init__(self, work: Work[T]) -> None:
        self._work = work
        self.call: Call[Any] | None = None
        """The call that is to be made; None once the work has ended."""
        self.result: T | None = None
        """The result of the work."""
        self.returned: Any = None
        """The result of the call, between `run` and `complete`."""
        self._raised: Exception | None = None
        self._go_on()

    @property
    def done(self) -> bool:
        """Whether the work has ended."""
        return self.call is None

    def run(self) -> None:
        """Make the call; the work does not hear of it yet."""
        assert self.call is not None
        try:
            self.returned = self.call.work(*self.call.values)
        except Exception as error:  # noqa: BLE001 - for the work
            self._raised = error

    def complete(self) -> None:
        """Give the work the result or the error of `run`. Raises the errors of the work."""
        self._go_on()

    def fail(self, error: Exception) -> None:
        """`complete`, as if the call had raised `error`."""
        self._raised = error
        self._go_on()

    def finish(self) -> T:
        """Make this call and all that follow; return what the work returns."""
        while not self.done:
            self.run()
            self.complete()
        return self.result  # type: ignore[return-value]  # it has ended

    def close(self) -> None:
        """End the work where it stands."""
        self._work.close()
        self.call = None

    def _go_on(self) -> None:
        returned, raised = self.returned, self._raised
        self.returned = self._raised = self.call = None
        try:
            while True:
                wait = self._work.send(returned) if raised is None else self._work.throw(raised)
                returned = raised = None
                if isinstance(wait, Call):
                    self.call = wait
                    return
                if isinstance(wait, Together):
                    for work in wait.works:
                        at_once(work)
                else:
                    assert wait is PAUSE
        except StopIteration as end:
            self.result = end.value
