"""S-CMP-11: the states of a partition, and nothing between them."""

import pytest

from protocol.types import TopicPartition
from storage.cleaner.states import (
    CleaningStates,
    LogCleaningAborted,
    LogCleaningInProgress,
    LogCleaningPaused,
)

TP = TopicPartition("t", 0)

BEGIN, END, ABORT, PAUSE, RESUME, FORGET = "begin", "end", "abort", "pause", "resume", "forget"


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ((), None),
        ((BEGIN,), LogCleaningInProgress()),
        ((BEGIN, END), None),
        ((BEGIN, ABORT), LogCleaningAborted()),
        ((BEGIN, ABORT, ABORT), LogCleaningAborted()),
        ((BEGIN, ABORT, END), None),
        ((ABORT,), None),
        ((PAUSE,), LogCleaningPaused(1)),
        ((PAUSE, PAUSE), LogCleaningPaused(2)),
        ((PAUSE, PAUSE, RESUME), LogCleaningPaused(1)),
        ((PAUSE, PAUSE, PAUSE), LogCleaningPaused(3)),
        ((PAUSE, PAUSE, PAUSE, RESUME), LogCleaningPaused(2)),
        ((PAUSE, RESUME), None),
        ((PAUSE, ABORT), LogCleaningPaused(1)),
        ((BEGIN, PAUSE), LogCleaningAborted(1)),
        ((BEGIN, PAUSE, PAUSE), LogCleaningAborted(2)),
        ((BEGIN, PAUSE, END), LogCleaningPaused(1)),
        ((BEGIN, PAUSE, PAUSE, END), LogCleaningPaused(2)),
        ((BEGIN, PAUSE, PAUSE, PAUSE, RESUME), LogCleaningAborted(2)),
        ((BEGIN, ABORT, PAUSE, PAUSE, END), LogCleaningPaused(2)),
        ((BEGIN, PAUSE, PAUSE, RESUME, END), LogCleaningPaused(1)),
        ((BEGIN, PAUSE, RESUME), LogCleaningAborted()),
        ((BEGIN, PAUSE, RESUME, END), None),
        ((FORGET,), None),
        ((PAUSE, FORGET), None),
        ((PAUSE, PAUSE, FORGET), None),
        ((BEGIN, PAUSE, PAUSE, FORGET, END), None),
        ((BEGIN, FORGET), LogCleaningAborted()),
        ((BEGIN, PAUSE, FORGET), LogCleaningAborted()),
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
