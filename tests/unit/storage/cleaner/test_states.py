"""S-CMP-11: the states of a partition, and nothing between them."""

import pytest

from protocol.types import TopicPartition
from storage.cleaner.states import Aborted, CleaningStates, InProgress, Paused

TP = TopicPartition("t", 0)

BEGIN, END, ABORT, PAUSE, RESUME, FORGET = "begin", "end", "abort", "pause", "resume", "forget"


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ((), None),
        ((BEGIN,), InProgress()),
        ((BEGIN, END), None),
        ((BEGIN, ABORT), Aborted()),
        ((BEGIN, ABORT, ABORT), Aborted()),
        ((BEGIN, ABORT, END), None),
        ((ABORT,), None),
        ((PAUSE,), Paused(1)),
        ((PAUSE, PAUSE), Paused(2)),
        ((PAUSE, PAUSE, RESUME), Paused(1)),
        ((PAUSE, PAUSE, PAUSE), Paused(3)),
        ((PAUSE, PAUSE, PAUSE, RESUME), Paused(2)),
        ((PAUSE, RESUME), None),
        ((PAUSE, ABORT), Paused(1)),
        ((BEGIN, PAUSE), Aborted(1)),
        ((BEGIN, PAUSE, PAUSE), Aborted(2)),
        ((BEGIN, PAUSE, END), Paused(1)),
        ((BEGIN, PAUSE, PAUSE, END), Paused(2)),
        ((BEGIN, PAUSE, PAUSE, PAUSE, RESUME), Aborted(2)),
        ((BEGIN, ABORT, PAUSE, PAUSE, END), Paused(2)),
        ((BEGIN, PAUSE, PAUSE, RESUME, END), Paused(1)),
        ((BEGIN, PAUSE, RESUME), Aborted()),
        ((BEGIN, PAUSE, RESUME, END), None),
        ((FORGET,), None),
        ((PAUSE, FORGET), None),
        ((PAUSE, PAUSE, FORGET), None),
        ((BEGIN, PAUSE, PAUSE, FORGET, END), None),
        ((BEGIN, FORGET), Aborted()),
        ((BEGIN, PAUSE, FORGET), Aborted()),
    ],
)
def test_s_cmp_11_a_partition_goes_from_state_to_state(steps, state) -> None:
    states = CleaningStates()
    for step in steps:
        getattr(states, step)(TP)
    assert states.get(TP) == state
    assert list(states) == ([] if state is None else [TP])


@pytest.mark.parametrize(
    "steps",
    [
        (END,),
        (RESUME,),
        (BEGIN, BEGIN),
        (BEGIN, RESUME),
        (BEGIN, ABORT, RESUME),
        (BEGIN, ABORT, BEGIN),
        (PAUSE, BEGIN),
        (PAUSE, END),
    ],
)
def test_s_cmp_11_other_transitions_are_bugs_and_change_nothing(steps) -> None:
    states = CleaningStates()
    *before, last = steps
    for step in before:
        getattr(states, step)(TP)
    state = states.get(TP)
    with pytest.raises(ValueError, match="cannot be"):
        getattr(states, last)(TP)
    assert states.get(TP) == state
