"""Fetches with less than `min.bytes` that are answered at once, and those next to them that wait.

Each case is one of Kafka's `DelayedFetch.tryComplete`; `tests/answers/waits.py` asks Kafka itself.
"""

import pytest

from broker.api import fetch
from config.topic_config import TopicConfig
from protocol.records.batch import iter_batches
from storage.log.results import FetchIsolation
from tests.support.begun import Begun
from tests.support.broker_bench import batch, led
from tests.support.real_bench import RealBench, fetched

PATIENT = {"min_bytes": 1 << 20, "max_wait_ms": 2000}
COMMITTED = {"isolation_level": 1}


class Rolled:
    """A partition whose batches have 100 bytes; a segment holds ten."""

    def __init__(self, **where):
        self.bench = RealBench()
        (self.partition,) = self.bench.topic(
            "t", config=TopicConfig(segment_bytes=10 * len(one())), **where
        )
        self.log = self.partition.log

    def append(self, count=1, **how):
        for _ in range(count):
            self.partition.append_as_leader_nowait(one(**how))
            self.bench.replicas.wake(self.partition)

    def fetch(self, offset, **fields):
        return self.bench.fetch(offset, **{**PATIENT, **fields})

    def waits(self, offset, **fields):
        """Whether it waits for all of its time, and then has what it could have had before."""
        reply = self.fetch(offset, **fields)
        if not isinstance(reply, Begun):
            return False
        assert not reply.done
        self.bench.advance(PATIENT["max_wait_ms"] / 1000 + 0.1)
        assert reply.done
        return True


@pytest.fixture
def rolled():
    return Rolled()


def one(**how):
    return batch([b"x" * 30], **how)


def test_s_read_6_a_fetch_from_an_older_segment_does_not_wait(rolled):
    rolled.append(25)
    assert rolled.log.segments.base_offsets == [0, 10, 20]
    assert [rolled.waits(offset) for offset in (0, 9, 10, 19)] == [False] * 4
    assert [at.base_offset for _, at in iter_batches(rolled.fetch(19).records)] == [19]
    assert [rolled.waits(offset) for offset in (20, 24, 25)] == [True] * 3


def test_s_read_6_a_reader_over_many_small_segments_waits_only_at_the_end(rolled):
    rolled.append(205)
    offset, asked = 0, 0
    while not isinstance(reply := rolled.fetch(offset), Begun):
        asked += 1
        offset = [at.last_offset for _, at in iter_batches(reply.records)][-1] + 1
    assert (offset, asked) == (200, 20)


def test_s_read_6_what_the_budget_leaves_of_an_older_segment_does_not_wait_either(rolled):
    rolled.append(15)
    assert not rolled.waits(0, version=2, max_bytes=0, min_bytes=1)
    assert rolled.waits(10, version=2, max_bytes=0, min_bytes=1)


def test_s_read_6_a_segment_is_old_by_what_the_reader_may_see():
    rolled = Rolled(replicas=(1, 2), isr=(1, 2))
    rolled.append(25)
    rolled.log.update_high_watermark(15)
    assert [rolled.waits(offset) for offset in (9, 10, 15)] == [False, True, True]
    rolled.log.update_high_watermark(10)
    assert [rolled.waits(offset) for offset in (9, 10)] == [False, True]
    followed = {"replica_id": 2}
    assert [rolled.waits(offset, **followed) for offset in (10, 19)] == [False, False]
    assert rolled.waits(20, **followed)


def test_s_read_6_with_read_committed_the_last_stable_offset_counts(rolled):
    rolled.append(12)
    rolled.append(1, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    rolled.append(12)
    assert rolled.log.last_stable_offset == 12
    assert [rolled.waits(offset, **COMMITTED) for offset in (9, 10, 12)] == [False, True, True]
    assert [rolled.waits(offset) for offset in (10, 12, 19)] == [False] * 3


def test_s_read_6_a_fetch_from_above_what_it_may_see_does_not_wait(rolled):
    rolled.append(2)
    rolled.append(1, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    rolled.append(1)
    assert [rolled.waits(offset, **COMMITTED) for offset in (2, 3, 4)] == [True, False, False]
    assert rolled.waits(4)


@pytest.mark.parametrize("start", [7, 9])
def test_s_read_6_a_roll_ends_the_wait_of_those_before_it(rolled, start):
    rolled.append(9)
    parked = rolled.fetch(start)
    rolled.append()
    assert not parked.done
    rolled.append()
    assert rolled.log.segments.base_offsets == [0, 10]
    assert parked.done
    assert [at.base_offset for _, at in iter_batches(answer_of(parked).records)] == list(
        range(start, 10)
    )
    later = rolled.fetch(10)
    rolled.append()
    assert not later.done


def test_s_read_6_a_roll_that_the_reader_does_not_see_ends_nothing():
    rolled = Rolled(replicas=(1, 2), isr=(1, 2))
    rolled.append(9)
    rolled.log.update_high_watermark(8)
    parked = rolled.fetch(8)
    rolled.append(5)
    assert rolled.log.segments.active.base_offset == 10
    assert not parked.done
    for seen, done in ((9, False), (10, True)):
        rolled.log.update_high_watermark(seen)
        rolled.bench.replicas.wake(rolled.partition)
        assert parked.done is done


def test_s_read_6_a_limit_that_falls_below_the_fetch_offset_ends_the_wait():
    rolled = Rolled(replicas=(1, 2), isr=(1, 2))
    rolled.append(5)
    rolled.log.update_high_watermark(4)
    parked = rolled.fetch(4)
    rolled.log.update_high_watermark(3)
    rolled.bench.replicas.wake(rolled.partition)
    assert parked.done


@pytest.mark.parametrize(("epoch", "done"), [(5, True), (0, False)])
def test_s_read_6_a_truncation_that_makes_a_follower_diverge_ends_the_wait(epoch, done):
    rolled = Rolled(replicas=(1, 2), isr=(1,))
    rolled.append(3)
    parked = rolled.fetch(3, replica_id=2, last_fetched_epoch=0)
    assert not parked.done
    rolled.log.truncate_to(1)
    rolled.partition.lead(led(epoch, (1, 2), (1,)))
    rolled.partition.append_as_leader_nowait(
        batch([b"x", b"y"])
    )  # so that 3 is in range all the while
    rolled.bench.replicas.wake(rolled.partition)
    assert rolled.log.log_end_offset == 3
    assert parked.done is done
    if done:
        diverging = answer_of(parked).diverging_epoch
        assert (diverging.epoch, diverging.end_offset) == (0, 1)


def test_s_read_6_one_of_many_partitions_in_an_older_segment_is_enough(monkeypatch):
    monkeypatch.setattr(fetch, "MANY", 0)
    rolled = Rolled()
    rolled.append(15)
    before = rolled.bench.clock.monotonic()
    assert [at.base_offset for _, at in iter_batches(rolled.fetch(9).records)] == [9]
    assert rolled.bench.clock.monotonic() == before
    rolled.fetch(10)
    assert rolled.bench.clock.monotonic() >= before + 2


@pytest.mark.parametrize("isolation", list(FetchIsolation))
def test_the_place_where_the_next_record_will_lie(rolled, isolation):
    bases = []
    for _ in range(11):
        bases.append(rolled.log.reader.end_base(isolation))
        rolled.append()
    assert bases == [0] * 11
    assert rolled.log.reader.end_base(isolation) == 10


def answer_of(parked):
    return fetched(parked.reply)
