"""Work that may wait, run at once."""

import pytest

from storage.errors import StorageError
from storage.waits import PAUSE, Lock, Signal, Until, at_once, call, compute, sleep, together


def fail(error: Exception) -> None:
    raise error


async def noting(notes: list[str], name: str, error: Exception | None = None) -> None:
    """Two calls, of which the second may fail."""
    await call(notes.append, f"first {name}")
    await PAUSE
    if error is not None:
        await compute(fail, error)
    await compute(notes.append, f"second {name}")


def test_work_is_followed_to_its_end() -> None:
    notes: list[str] = []

    async def work() -> int:
        await noting(notes, "a")
        await sleep(10.0)
        await noting(notes, "b")
        return 7

    assert at_once(work()) == 7
    assert notes == ["first a", "second a", "first b", "second b"]


def test_what_a_call_raises_is_raised_where_it_was_awaited() -> None:
    notes: list[str] = []

    async def careful() -> str:
        try:
            await noting(notes, "a", StorageError("/d", "gone"))
        except StorageError:
            return "failed"
        finally:
            await call(notes.append, "cleaned up")
        return "done"

    assert at_once(careful()) == "failed"
    assert notes == ["first a", "cleaned up"]
    with pytest.raises(ZeroDivisionError):
        at_once(noting(notes, "a", ZeroDivisionError()))


def test_works_together_are_all_run_though_one_fails() -> None:
    notes: list[str] = []

    async def all_of_them() -> None:
        await together(
            noting(notes, "a", StorageError("/d", "gone")), noting(notes, "b"), noting(notes, "c")
        )

    with pytest.raises(StorageError):
        at_once(all_of_them())
    assert notes == ["first a", "first b", "second b", "first c", "second c"]


def test_a_wait_that_nobody_can_end_is_an_error() -> None:
    signal: Signal[int] = Signal()
    held = Lock()

    async def wait() -> int:
        return await signal

    async def once() -> None:
        async with held:
            pass

    async def twice() -> None:
        async with held, held:
            pass

    with pytest.raises(RuntimeError, match="nobody"):
        at_once(wait())
    with pytest.raises(RuntimeError, match="nobody"):
        at_once(twice())
    at_once(once())  # the place was given back
    signal.fire(3)
    assert at_once(wait()) == 3


def test_a_waiter_that_is_ended_after_it_was_called_passes_the_place_on() -> None:
    lock = Lock()
    came: list[str] = []

    async def hold(name: str) -> None:
        async with lock:
            came.append(name)

    at_once(lock.acquire())
    first, second = hold("first"), hold("second")
    waits = [work.send(None) for work in (first, second)]
    assert all(isinstance(wait, Until) for wait in waits)
    lock.release()
    assert [wait.signal.fired for wait in waits] == [True, False]
    first.close()
    assert waits[1].signal.fired
    with pytest.raises(StopIteration):
        second.send(None)
    assert came == ["second"]
