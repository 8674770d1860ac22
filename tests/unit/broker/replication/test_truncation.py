"""The cases of `truncation`, one by one; `tests/property/test_truncation_model.py` has all logs."""

from random import Random
from types import SimpleNamespace

import pytest

from broker.replication.truncation import (
    EpochEnd,
    Truncation,
    TruncationReason,
    divergence,
    end_of_epoch,
    truncation_between,
    truncation_for,
)
from protocol.errors import ErrorCode
from storage.epochs import LeaderEpochCache
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.refusals import code_of

UNKNOWN = EpochEnd(-1, -1)


def log(*epochs: tuple[int, int], end: int, start: int = 0) -> SimpleNamespace:
    """With (epoch, first offset) pairs."""
    table = LeaderEpochCache(FaultyFileSystem(), "/d/epochs", Random(1))
    for epoch, first in epochs:
        table.assign(epoch, first)
    return SimpleNamespace(log_start_offset=start, log_end_offset=end, leader_epochs=table)


REPLICA = log((1, 0), (3, 10), (6, 20), end=30)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (UNKNOWN, Truncation(reason=TruncationReason.NO_EPOCHS, offset=25)),  # A
        (EpochEnd(6, 35), Truncation(reason=TruncationReason.AGREES, offset=30)),  # B
        (EpochEnd(6, 30), Truncation(reason=TruncationReason.AGREES, offset=30)),
        (EpochEnd(6, 22), Truncation(reason=TruncationReason.DIVERGED, offset=22)),
        (EpochEnd(3, 15), Truncation(reason=TruncationReason.DIVERGED, offset=15)),
        (EpochEnd(3, 25), Truncation(reason=TruncationReason.DIVERGED, offset=20)),
        (EpochEnd(0, 8), Truncation(reason=TruncationReason.DIVERGED, offset=0)),
        (EpochEnd(5, 50), Truncation(reason=TruncationReason.DIVERGED, offset=20, ask_next=3)),  # C
        (EpochEnd(7, 50), Truncation(reason=TruncationReason.AGREES, offset=30, ask_next=6)),
    ],
)
def test_s_read_13_an_answer_of_the_leader(answer: EpochEnd, expected: Truncation) -> None:
    assert truncation_for(answer, REPLICA, replicated=25) == expected


def test_what_ends_below_the_leaders_start_begins_anew() -> None:
    found = truncation_for(EpochEnd(3, 15), REPLICA, replicated=25, leader_start=16)
    assert found == Truncation(
        reason=TruncationReason.BELOW_LEADER_START, offset=16, starts_anew=True
    )
    found = truncation_for(EpochEnd(3, 15), REPLICA, replicated=25, leader_start=15)
    assert found == Truncation(reason=TruncationReason.DIVERGED, offset=15)


def test_a_replica_without_epochs_keeps_what_is_replicated() -> None:
    old = log(end=9)
    assert truncation_for(EpochEnd(3, 100), old, replicated=4).offset == 4
    found = truncation_for(EpochEnd(3, 100), old, replicated=20)
    assert found == Truncation(reason=TruncationReason.AGREES, offset=9)


def test_two_logs_are_compared_down_to_their_last_common_epoch() -> None:
    leader = log((1, 0), (2, 5), (5, 12), (7, 40), end=60)
    found = truncation_between(leader, REPLICA, replicated=0)
    assert found == Truncation(reason=TruncationReason.DIVERGED, offset=5)


def test_s_read_12_the_current_epoch_ends_at_the_log_end_before_its_first_append() -> None:
    assert end_of_epoch(REPLICA, 9, 9) == (9, 30)
    assert end_of_epoch(REPLICA, 9, 8) == UNKNOWN
    assert end_of_epoch(REPLICA, 9, 4) == (3, 20)


def test_an_empty_leader_agrees_with_a_replica_that_led_and_wrote_nothing() -> None:
    """Kafka's leaders note their epoch at once, and answer from the first one that they know."""
    empty = log(end=0)
    assert end_of_epoch(empty, 5, 3) == (3, 0)
    assert divergence(end_of_epoch(empty, 5, 3), 3, 0) is None
    assert end_of_epoch(empty, 5, -1) == UNKNOWN
    assert end_of_epoch(empty, 5, 6) == UNKNOWN


def test_a_fetching_replica_hears_where_the_leader_parts_from_it() -> None:
    assert divergence(EpochEnd(3, 20), 3, 20) is None
    assert divergence(EpochEnd(3, 20), 3, 21) == (3, 20)
    assert divergence(EpochEnd(2, 20), 3, 20) == (2, 20)
    assert code_of(divergence, UNKNOWN, 3, 20) == ErrorCode.OFFSET_OUT_OF_RANGE
