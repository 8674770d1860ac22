"""Work that has begun: runs through calls and pauses at once, and stands still at signals.

For tests of handlers and other work (`storage.waits`) without a network or an event loop.
"""

import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from broker.request import is_reply, reply_of
from storage.waits import Call, Pause, Place, Together, Until, Wait, Work, at_once

T = TypeVar("T")


class Begun(Generic[T]):
    """Work and how far it has come. `done` and `reply` take it as far as it goes."""

    def __init__(self, work: Work[T]) -> None:
        self._work = work
        self._wait: Wait | None = None
        self._result: T | None = None
        self._error: BaseException | None = None
        self._ended = False
        self.pauses = 0
        """How often it let others run."""
        self.calls: list[Callable[..., Any]] = []
        """The functions that it called in threads and child processes."""
        self._send(None)

    @property
    def done(self) -> bool:
        """Whether it has ended, by a result or an error."""
        self._advance()
        return self._ended

    @property
    def reply(self) -> T:
        """Its result; raises its error. It must be done."""
        assert self.done, f"it still waits for {self._wait}"
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # it is done

    @property
    def waits_for(self) -> Wait | None:
        """The wait at which it stands; None once it has ended."""
        self._advance()
        return self._wait

    def leave(self) -> None:
        """The client goes away: the work ends where it waits."""
        assert not self.done
        self._work.close()
        self._ended, self._wait = True, None

    def time_out(self) -> None:
        """The longest wait for its signal is over."""
        assert isinstance(self._wait, Until)
        assert self._wait.seconds is not None
        self._send(None)

    def _advance(self) -> None:
        if isinstance(self._wait, Until) and self._wait.signal.fired:
            self._send(None)

    def _send(self, answer: Any) -> None:
        error: Exception | None = None
        while True:
            try:
                wait = self._work.send(answer) if error is None else self._work.throw(error)
            except StopIteration as end:
                self._result, self._ended, self._wait = end.value, True, None
                return
            except BaseException as failure:  # noqa: BLE001 - raised by `reply`
                self._error, self._ended, self._wait = failure, True, None
                return
            self._wait, answer, error = wait, None, None
            if isinstance(wait, Until) and not wait.signal.fired:
                return
            try:
                answer = self._serve(wait)
            except Exception as failure:  # noqa: BLE001 - whatever it is, it is for the work
                error = failure

    def _serve(self, wait: Wait) -> Any:
        if isinstance(wait, Pause):
            self.pauses += 1
        elif isinstance(wait, Call):
            assert isinstance(wait.place, Place)
            self.calls.append(wait.work)
            return wait.work(*wait.values)
        elif isinstance(wait, Together):
            for work in wait.works:
                at_once(work)
        return None


def slept(begun: Begun[T], advance: Callable[[float], object]) -> Begun[T]:
    """Let the times pass for which it sleeps, until it is done or waits for something else.

    `advance` moves a clock, which counts milliseconds.
    """
    while isinstance(wait := begun.waits_for, Until) and wait.seconds is not None:
        advance(math.ceil(wait.seconds * 1000) / 1000)
        begun.time_out()
    return begun


def begin(work: Work[T]) -> Begun[T]:
    """Begin `work`, or the reply of a handler, and take it as far as it goes."""
    return Begun(reply_of(work) if is_reply(work) else work)
