"""The replicas in sync: decisions as tables, and any history of proposals and answers.

S-REP-1, S-REP-2, S-REP-3, S-REP-4.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.cluster.image import PartitionImage
from broker.replication.follower_progress import NEVER, Follower, FollowerProgress
from broker.replication.isr import (
    ClusterRules,
    IsrAnswer,
    IsrHold,
    IsrOutcome,
    expansion,
    settled,
    shrinking,
)
from broker.replication.partition import Partition
from broker.replication.partition_state import PartitionState, PendingIsr, following, leading
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode
from tests.support.broker_bench import batch
from tests.support.fake_log import led_partition

IMAGE = PartitionImage(leader=1, leader_epoch=4, replicas=(1, 2, 3), isr=(1, 2), partition_epoch=7)
LED = leading(IMAGE)
GROWN = PendingIsr((1, 2, 3), shrinks=False)
SHRUNK = PendingIsr((1,), shrinks=True)


# ---------------------------------------------------------------------- joining and leaving


@pytest.mark.parametrize(
    ("state", "replica", "end", "alive", "expected"),
    [
        (LED, 3, 10, True, (1, 2, 3)),
        (LED, 3, 99, True, (1, 2, 3)),
        (LED, 2, 10, True, IsrHold.MEMBER),
        (replace(LED, pending=SHRUNK), 3, 10, True, IsrHold.IN_FLIGHT),
        (LED, 3, 7, True, IsrHold.BEHIND_WATERMARK),
        (LED, 3, 9, True, IsrHold.BEHIND_EPOCH),
        (LED, 3, 10, False, IsrHold.NOT_ELIGIBLE),
    ],
)
def test_s_rep_3_followers_that_join_the_isr(
    state: PartitionState,
    replica: int,
    end: int,
    alive: bool,
    expected: tuple[int, ...] | IsrHold,
) -> None:
    found = expansion(
        state, replica, end_offset=end, high_watermark=8, epoch_start=10, may_join=lambda _: alive
    )
    assert (found.isr if isinstance(found, PendingIsr) else found) == expected


def test_s_rep_2_followers_that_leave_the_isr() -> None:
    found = shrinking(LED, (2,))
    assert isinstance(found, PendingIsr)
    assert (found.isr, found.shrinks) == ((1,), True)
    assert shrinking(LED, (3,)) is IsrHold.ALL_CAUGHT_UP
    assert shrinking(replace(LED, pending=GROWN), (2,)) is IsrHold.IN_FLIGHT


def test_s_rep_1_the_maximal_isr_has_who_may_be_in_sync() -> None:
    assert LED.maximal_isr == (1, 2)
    assert replace(LED, pending=GROWN).maximal_isr == (1, 2, 3)
    assert replace(LED, pending=SHRUNK).maximal_isr == (1, 2)


# ---------------------------------------------------------------------- answers

DONE = IsrAnswer(leader_epoch=4, isr=(1, 2, 3), partition_epoch=8)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (DONE, IsrOutcome.CONFIRMED),
        (replace(DONE, partition_epoch=7, isr=(1, 2)), IsrOutcome.CONFIRMED),
        (replace(DONE, partition_epoch=6), IsrOutcome.UNKNOWN),
        (replace(DONE, leader_epoch=5), IsrOutcome.UNKNOWN),
        (IsrAnswer(error=ErrorCode.INELIGIBLE_REPLICA), IsrOutcome.REFUSED),
        (IsrAnswer(error=ErrorCode.OPERATION_NOT_ATTEMPTED), IsrOutcome.REFUSED),
        (IsrAnswer(error=ErrorCode.FENCED_LEADER_EPOCH), IsrOutcome.UNKNOWN),
        (IsrAnswer(error=ErrorCode.INVALID_UPDATE_VERSION), IsrOutcome.UNKNOWN),
        (IsrAnswer(error=ErrorCode.INVALID_REQUEST), IsrOutcome.UNKNOWN),
        (IsrAnswer(error=ErrorCode.NEW_LEADER_ELECTED), IsrOutcome.UNKNOWN),
        (IsrAnswer(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), IsrOutcome.UNKNOWN),
        (IsrAnswer(error=ErrorCode.UNKNOWN_TOPIC_ID), IsrOutcome.UNKNOWN),
        (IsrAnswer(error=ErrorCode.NOT_CONTROLLER), IsrOutcome.RETRY),
        (IsrAnswer(error=ErrorCode.UNKNOWN_SERVER_ERROR), IsrOutcome.RETRY),
    ],
)
def test_s_rep_4_what_an_answer_means(answer: IsrAnswer, outcome: IsrOutcome) -> None:
    before = replace(LED, pending=GROWN)
    after, found = settled(before, GROWN, answer)
    assert found is outcome
    if outcome is IsrOutcome.CONFIRMED:
        assert after.pending is None
        assert after.image.isr == answer.isr
        assert after.image.partition_epoch == answer.partition_epoch
    elif outcome is IsrOutcome.REFUSED:
        assert after == LED
    else:
        assert after is before


def test_s_rep_4_what_the_controller_has_told_since_counts_more() -> None:
    for since in (LED, replace(LED, pending=SHRUNK), following(IMAGE)):
        assert settled(since, GROWN, DONE) == (since, IsrOutcome.SUPERSEDED)


# ---------------------------------------------------------------------- how far a follower is


def test_s_rep_2_a_follower_is_caught_up_at_the_leaders_end() -> None:
    follower = Follower()
    assert not follower.is_caught_up(10, 100.0, 30.0)
    follower.note(10, 0, 10, 100.0, 5)
    assert follower.caught_up_at == 100.0
    assert follower.is_caught_up(99, 130.0, 30.0)
    assert not follower.is_caught_up(99, 130.1, 30.0)
    assert follower.is_caught_up(10, 999.0, 30.0), "at the end, however long ago"


def test_s_rep_2_a_follower_that_gets_all_there_was_was_caught_up_at_the_fetch_before() -> None:
    follower = Follower()
    follower.note(5, 0, 10, 100.0, 5)
    assert follower.caught_up_at == NEVER
    follower.note(10, 0, 20, 101.0, 5)
    assert follower.caught_up_at == 100.0
    follower.note(15, 0, 30, 102.0, 5)
    assert follower.caught_up_at == 100.0, "it did not get all"


def test_s_rep_2_an_election_gives_those_in_sync_time_and_the_others_none() -> None:
    progress = FollowerProgress((2, 3))
    for replica in (2, 3):
        follower = progress.get(replica)
        assert follower is not None
        follower.note(8, 0, 8, 50.0, 5)
    progress.restart((1, 2), leader_end=8, now=60.0, new_leader=True)
    ends = {replica: (f.end_offset, f.caught_up_at) for replica, f in progress.items()}
    assert ends == {2: (-1, 60.0), 3: (-1, NEVER)}


# ---------------------------------------------------------------------- a partition


class Led:
    """A partition that broker 1 leads, with proposals kept instead of sent."""

    def __init__(self, isr: tuple[int, ...] = (1, 2), minimum: int = 2) -> None:
        self.now = 1000.0
        self.sent: list[PendingIsr] = []
        self.alive = {1, 2, 3}
        self.partition: Partition = led_partition(
            replace(IMAGE, isr=isr),
            TopicConfig(min_insync_replicas=minimum),
            rules=ClusterRules(
                monotonic=lambda: self.now,
                lag_time_s=30.0,
                may_join=lambda broker: broker in self.alive,
                alter_isr=lambda _, isr: self.sent.append(isr),
            ),
        )

    def append(self, count: int = 1) -> None:
        for _ in range(count):
            self.partition.append_as_leader_nowait(batch())

    def fetch(self, replica: int, offset: int) -> bool:
        return self.partition.record_follower_fetch(replica, offset, knows_epoch=True)

    def answer(self, isr: tuple[int, ...], epoch: int) -> IsrOutcome:
        answer = IsrAnswer(leader_epoch=4, isr=isr, partition_epoch=epoch)
        return self.partition.isr_answered(self.sent[-1], answer)[0]

    @property
    def mark(self) -> int:
        return self.partition.log.high_watermark


def test_s_rep_3_a_follower_that_caught_up_is_proposed_once() -> None:
    led = Led()
    led.append(3)
    led.fetch(2, 3)
    led.fetch(3, 2)
    assert led.sent == []
    led.fetch(3, 3)
    led.fetch(3, 3)
    assert [isr.isr for isr in led.sent] == [(1, 2, 3)]
    led.append()
    led.fetch(2, 4)
    assert led.mark == 3, "the proposed replica bounds the high watermark"
    assert led.partition.isr == (1, 2)
    assert led.answer((1, 2, 3), 8) is IsrOutcome.CONFIRMED
    assert led.partition.isr == (1, 2, 3)
    led.fetch(3, 4)
    assert led.mark == 4


def test_s_rep_1_the_high_watermark_waits_for_who_is_about_to_join() -> None:
    led = Led()
    led.append(2)
    led.fetch(2, 2)
    led.alive.discard(3)
    led.fetch(3, 2)
    assert led.mark == 2
    led.append()
    led.fetch(2, 3)
    assert led.mark == 3, "one that may not join is not waited for"
    led.alive.add(3)
    led.fetch(3, 3)
    led.append()
    led.fetch(2, 4)
    assert led.mark == 3, "one that is caught up and may join is"


def test_s_rep_1_below_min_isr_the_high_watermark_stands_still() -> None:
    led = Led(isr=(1,))
    led.append(2)
    assert led.mark == 0
    led.fetch(2, 2)
    assert led.mark == 0
    assert led.answer((1, 2), 8) is IsrOutcome.CONFIRMED
    assert led.mark == 2


def test_s_rep_2_a_follower_that_lags_is_left_out_and_acks_go_on() -> None:
    led = Led(isr=(1, 2, 3))
    led.append()
    led.fetch(2, 1)
    led.now += 31.0
    led.fetch(2, 1)
    assert led.partition.shrink_isr()
    assert not led.partition.shrink_isr(), "one proposal at a time"
    assert led.mark == 0, "until the controller confirms, it counts"
    assert led.partition.reached(1) == (False, ErrorCode.NONE)
    assert led.answer((1, 2), 8) is IsrOutcome.CONFIRMED
    assert led.mark == 1
    assert led.partition.reached(1) == (True, ErrorCode.NONE)


def test_s_rep_4_an_older_state_of_the_controller_does_not_undo_an_answer() -> None:
    led = Led()
    led.append()
    led.fetch(2, 1)
    led.fetch(3, 1)
    led.answer((1, 2, 3), 9)
    led.partition.lead(replace(IMAGE, partition_epoch=8))
    assert led.partition.isr == (1, 2, 3)
    led.partition.lead(replace(IMAGE, partition_epoch=10))
    assert led.partition.isr == (1, 2)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_s_rep_1_no_history_shows_what_a_replica_in_sync_lacks(data: st.DataObject) -> None:
    """Each replica of the confirmed ISR, and of the proposed one, has what is shown."""
    led = Led(minimum=data.draw(st.sampled_from((1, 2))))
    ends = {2: 0, 3: 0}
    epoch = 7
    for _ in range(data.draw(st.integers(1, 25))):
        what = data.draw(st.sampled_from(("append", "fetch", "fetch", "wait", "shrink", "answer")))
        if what == "append":
            led.append()
        elif what == "fetch":
            replica = data.draw(st.sampled_from((2, 3)))
            end = led.partition.log.log_end_offset
            ends[replica] = data.draw(st.integers(ends[replica], end))
            led.fetch(replica, ends[replica])
        elif what == "wait":
            led.now += data.draw(st.sampled_from((1.0, 31.0)))
        elif what == "shrink":
            led.partition.shrink_isr()
        elif (pending := led.partition.state.pending) is not None:
            epoch += 1
            error = data.draw(st.sampled_from((ErrorCode.NONE, ErrorCode.INELIGIBLE_REPLICA)))
            answer = IsrAnswer(error=error, leader_epoch=4, isr=pending.isr, partition_epoch=epoch)
            led.partition.isr_answered(pending, answer)
        shown = led.mark
        for replica in {*led.partition.isr, *led.partition.state.maximal_isr} - {1}:
            assert ends[replica] >= shown


def test_s_rep_2_a_follower_that_stays_at_the_end_counts_as_caught_up_now() -> None:
    """Fetches without news are noted on a short way; what they prove is the same."""
    led = Led()
    led.append(3)
    led.fetch(2, 3)
    target = SimpleNamespace(
        fetch_offset=3,
        leader_epoch=4,
        log_start_offset=-1,
        known_high_watermark=3,
        known_log_start_offset=0,
    )
    led.now += 100.0
    assert led.partition.is_idle_for(2, target, -1, led.now)
    led.append()
    led.now += 29.0
    assert not led.partition.shrink_isr()
    led.now += 2.0
    assert led.partition.shrink_isr()


@pytest.mark.parametrize(
    "changed",
    [
        {"fetch_offset": 2},
        {"leader_epoch": 3},
        {"log_start_offset": 1},
        {"known_high_watermark": 2},
        {"known_log_start_offset": -1},
    ],
)
def test_s_rep_2_a_fetch_with_news_is_looked_at_closely(changed: dict[str, int]) -> None:
    led = Led()
    led.append(3)
    led.fetch(2, 3)
    usual = {
        "fetch_offset": 3,
        "leader_epoch": 4,
        "log_start_offset": -1,
        "known_high_watermark": 3,
        "known_log_start_offset": 0,
    }
    assert led.partition.is_idle_for(2, SimpleNamespace(**usual), -1, led.now)
    assert not led.partition.is_idle_for(2, SimpleNamespace(**usual), 5, led.now)
    assert not led.partition.is_idle_for(3, SimpleNamespace(**usual), -1, led.now)
    assert not led.partition.is_idle_for(2, SimpleNamespace(**usual | changed), -1, led.now)
    led.partition.close(ErrorCode.KAFKA_STORAGE_ERROR)
    assert not led.partition.is_idle_for(2, SimpleNamespace(**usual), -1, led.now)
