"""Work of a coordinator goes on in the turn in which what it waits for happens."""

from weakref import ref

import pytest

from broker.world.in_turn import begin
from protocol.errors import ErrorCode, KafkaError
from storage.waits import PAUSE, Signal, Until, Wait


async def waited(*signals: Signal[int], diary: list[int]) -> int:
    diary.append(0)
    for signal in signals:
        diary += [await signal]
    return sum(diary)


def test_work_that_waits_for_nothing_is_done_when_it_was_begun() -> None:
    ended = begin(waited(diary=[]))
    assert (ended.fired, ended.value) == (True, 0)


def test_work_goes_on_within_the_turn_of_each_signal() -> None:
    first, second, diary = Signal[int](), Signal[int](), list[int]()
    ended = begin(waited(first, second, diary=diary))
    assert diary == [0]
    first.fire(1)
    assert (diary, ended.fired) == ([0, 1], False)
    second.fire(2)
    assert (diary, ended.value) == ([0, 1, 2], 3)


def test_a_signal_that_was_fired_before_is_no_wait() -> None:
    first, second = Signal[int](), Signal[int]()
    first.fire(1)
    second.fire(2)
    assert begin(waited(first, second, diary=[])).value == 3


def test_work_that_waits_for_other_work_goes_on_in_the_same_turn() -> None:
    signal, inner, outer = Signal[int](), list[int](), list[int]()
    ended = begin(waited(begin(waited(signal, diary=inner)), diary=outer))
    signal.fire(5)
    assert (inner, outer, ended.value) == ([0, 5], [0, 5], 5)


async def fails(signal: Signal[None] | None = None) -> None:
    if signal is not None:
        await signal
    raise KafkaError(ErrorCode.NOT_COORDINATOR)


def test_a_refusal_is_raised_to_the_function_that_begins() -> None:
    with pytest.raises(KafkaError):
        begin(fails())


def test_an_error_after_a_wait_is_raised_to_the_function_that_fires() -> None:
    signal = Signal[None]()
    ended = begin(fails(signal))
    with pytest.raises(KafkaError):
        signal.fire()
    assert not ended.fired


async def awaits(wait: Wait) -> None:
    await wait


@pytest.mark.parametrize("wait", [PAUSE, Until(Signal[None](), 1)], ids=["pause", "sleep"])
def test_what_needs_another_driver_is_a_bug(wait: Wait) -> None:
    with pytest.raises(TypeError):
        begin(awaits(wait))


def test_work_that_is_done_is_not_kept_by_its_signal() -> None:
    class Held(list[int]):
        """Takes weak references."""

    diary = Held()
    kept, signal = ref(diary), Signal[int]()
    begin(waited(signal, diary=diary))
    del diary
    assert kept() is not None
    signal.fire(1)
    assert kept() is None
    assert signal.wake is None
