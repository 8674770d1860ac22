"""Two logs that have parted, under Kafka's promise that an epoch has one leader: after its
truncation the replica is a prefix of the leader's log, and no record has gone needlessly."""

from dataclasses import dataclass
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from broker.replication.truncation import (
    EpochEnd,
    Truncation,
    TruncationReason,
    divergence,
    end_of_epoch,
    truncation_between,
    truncation_for,
)
from storage.epochs import LeaderEpochCache
from tests.support.faulty_filesystem import FaultyFileSystem


class ModelLog:
    """The epoch of each record, by offset; some of the first ones may be gone."""

    def __init__(self, epochs: list[int], start: int, elected: int | None = None) -> None:
        self.records = list(enumerate(epochs))
        self.log_start_offset = start
        self.leader_epochs = LeaderEpochCache(FaultyFileSystem(), "/d/epochs", Random(1))
        for offset, epoch in self.records:
            self.leader_epochs.assign(epoch, offset)
        if elected is not None:
            self.leader_epochs.assign(elected, len(epochs))
        self.leader_epochs.truncate_from_start(start)

    @property
    def log_end_offset(self) -> int:
        return self.log_start_offset if self.starts_anew else len(self.records)

    starts_anew = False

    def apply(self, truncation: Truncation) -> None:
        if truncation.starts_anew:
            self.records, self.log_start_offset, self.starts_anew = [], truncation.offset, True
            self.leader_epochs.clear()
        else:
            del self.records[truncation.offset :]
            self.leader_epochs.truncate_from_end(truncation.offset)


@dataclass(frozen=True)
class Parted:
    leader: ModelLog
    replica: ModelLog
    common: int
    """So many first records of both are the same."""
    elected: int


@st.composite
def parted(draw: st.DrawFn, *, whole: bool = False) -> Parted:
    common: list[int] = []
    epoch = 0
    for length in draw(st.lists(st.integers(0, 3), max_size=4)):
        common += [epoch] * length
        epoch += draw(st.integers(1, 2))
    tails: dict[bool, list[int]] = {True: [], False: []}
    if common:  # One of the two went on as a leader in the last common epoch.
        tails[draw(st.booleans())] += [common[-1]] * draw(st.integers(0, 3))
    for of_leader, length in draw(
        st.lists(st.tuples(st.booleans(), st.integers(1, 3)), max_size=6)
    ):
        tails[of_leader] += [epoch] * length
        epoch += draw(st.integers(1, 2))
    logs = [common + tails[True], common + tails[False]]
    starts = [0 if whole else draw(st.integers(0, len(log))) for log in logs]
    elected = epoch if logs[0] else None
    return Parted(
        ModelLog(logs[0], starts[0], elected), ModelLog(logs[1], starts[1]), len(common), epoch
    )


def is_prefix(replica: ModelLog, leader: ModelLog) -> bool:
    shared = max(replica.log_start_offset, leader.log_start_offset)
    end = replica.log_end_offset
    return end <= leader.log_end_offset and replica.records[shared:] == leader.records[shared:end]


@given(parted())
def test_afterwards_the_replica_is_a_prefix_that_the_leader_can_go_on_from(logs: Parted) -> None:
    found = truncation_between(logs.leader, logs.replica, replicated=logs.common)
    before = logs.replica.log_end_offset
    logs.replica.apply(found)
    assert is_prefix(logs.replica, logs.leader)
    assert logs.replica.log_end_offset == found.offset >= logs.leader.log_start_offset
    assert found.changes_log == (found.starts_anew or found.offset < before)


@given(parted(whole=True))
def test_nothing_goes_that_both_have(logs: Parted) -> None:
    was_prefix = is_prefix(logs.replica, logs.leader)
    found = truncation_between(logs.leader, logs.replica, replicated=logs.common)
    assert found.offset >= logs.common
    assert (found.reason is TruncationReason.AGREES) == was_prefix
    assert found.ask_next is None


@given(parted())
def test_asked_over_the_wire_the_same_is_left(logs: Parted) -> None:
    at_once = truncation_between(logs.leader, logs.replica, replicated=logs.common)
    asked: int | None = logs.replica.leader_epochs.latest
    rounds = 0
    while asked is not None:
        answer = end_of_epoch(logs.leader, logs.elected, asked)
        found = truncation_for(
            answer,
            logs.replica,
            replicated=logs.common,
            leader_start=logs.leader.log_start_offset,
        )
        logs.replica.apply(found)
        assert found.ask_next is None or found.ask_next < asked
        asked = found.ask_next
        rounds += 1
    assert logs.replica.log_end_offset == at_once.offset
    assert rounds <= 8


@given(parted(whole=True))
def test_a_fetch_hears_of_a_divergence_when_there_is_one(logs: Parted) -> None:
    last = logs.replica.leader_epochs.latest
    answer = end_of_epoch(logs.leader, logs.elected, last)
    if not answer.is_known:
        return
    told = divergence(answer, last, logs.replica.log_end_offset)
    assert (told is None) == is_prefix(logs.replica, logs.leader)
    assert told is None or told == EpochEnd(*answer)
