"""The cache of fetch sessions: who gets a slot, and who loses his (S-READ-11)."""

import random

import pytest

from broker.replication.fetch_session import EVICTION_S, FetchSessionCache, next_epoch
from broker.replication.read_plan import FetchTarget
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.manual_clock import ManualClock
from tests.support.refusals import code_of


def make(slots=2):
    clock = ManualClock()
    return clock, FetchSessionCache(clock, slots, random=random.Random(1))


def create(cache, size=1, privileged=False):
    targets = {("t", index): FetchTarget() for index in range(size)}
    return cache.maybe_create(privileged=privileged, by_id=False, targets=targets)


@pytest.mark.parametrize(("epoch", "following"), [(0, 1), (1, 2), (2**31 - 1, 1), (-1, -1)])
def test_epochs_wrap_around_the_full_fetch(epoch, following):
    assert next_epoch(epoch) == following


def test_ids_are_positive_and_distinct():
    _, cache = make(500)
    ids = {create(cache) for _ in range(500)}
    assert len(ids) == 500
    assert all(0 < session_id < 2**31 for session_id in ids)


def test_young_sessions_are_safe():
    _, cache = make()
    assert create(cache)
    assert create(cache)
    assert create(cache, size=100) == 0
    assert cache.evictions == 0


def test_a_stale_session_makes_room_whatever_its_worth():
    clock, cache = make()
    large = create(cache, size=50, privileged=True)
    clock.advance(EVICTION_S + 1)
    used = create(cache)
    assert create(cache)
    assert cache.get(large) is None
    assert cache.get(used) is not None
    assert cache.evictions == 1


def test_an_old_small_session_in_use_gives_way_to_a_larger_one():
    clock, cache = make()
    small = create(cache, size=1)
    large = create(cache, size=9)
    clock.advance(EVICTION_S + 1)
    for session_id in (small, large):
        cache.get(session_id).last_used = clock.monotonic()
    assert create(cache, size=0) == 0
    assert create(cache, size=5)
    assert cache.get(small) is None
    assert cache.get(large) is not None


def test_a_follower_pushes_out_any_consumer_but_no_consumer_a_follower():
    clock, cache = make(1)
    consumer = create(cache, size=100)
    follower = create(cache, size=1, privileged=True)
    assert follower
    assert cache.get(consumer) is None
    clock.advance(EVICTION_S + 1)
    cache.get(follower).last_used = clock.monotonic()
    assert create(cache, size=1000) == 0


def test_no_slots_no_sessions():
    _, cache = make(0)
    assert create(cache) == 0
    assert opened(cache, 12).answer([])[0] == 0


def test_statistics():
    _, cache = make()
    create(cache, size=3)
    create(cache, size=4)
    statistics = cache.statistics()
    assert (statistics.sessions, statistics.partitions_cached, statistics.evictions) == (2, 7, 0)


ID = b"i" * 16


def fetch(version, *, epoch=0, session_id=0, partitions=(0,)):
    topic = FetchTopic(
        topic="t" if version < 13 else "",
        topic_id=bytes(16) if version < 13 else ID,
        partitions=[FetchPartition(partition=index) for index in partitions],
    )
    return FetchRequest(
        session_id=session_id, session_epoch=epoch, topics=[topic] if partitions else []
    )


def opened(cache, version, **request):
    return cache.open(fetch(version, **request), version, privileged=False)


def refusal(cache, version, **request):
    return code_of(opened, cache, version, **request)


@pytest.mark.parametrize(("version", "key"), [(12, ("t", 0)), (13, (ID, 0)), (18, (ID, 0))])
def test_fetch_13_and_later_name_topics_by_id(version, key):
    _, cache = make()
    context = opened(cache, version)
    assert context.by_id is (version >= 13)
    [target] = context.targets
    assert key == (target.topic_id if context.by_id else target.topic, target.index)
    session_id, _ = context.answer([])
    assert list(cache.get(session_id).targets) == [key]
    again = opened(cache, version, session_id=session_id, epoch=1, partitions=())
    assert list(again.targets) == [target]


@pytest.mark.parametrize(("before", "after"), [(12, 13), (13, 12)])
def test_a_session_of_names_is_not_used_with_ids(before, after):
    _, cache = make()
    session_id, _ = opened(cache, before).answer([])
    code = refusal(cache, after, session_id=session_id, epoch=1)
    assert code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert opened(cache, before, session_id=session_id, epoch=1).targets


def test_a_session_is_used_in_its_epoch_only():
    _, cache = make()
    session_id, _ = opened(cache, 12).answer([])
    for epoch in (2, -2, -(2**31)):
        code = refusal(cache, 12, session_id=session_id, epoch=epoch)
        assert code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    for other, epoch in ((session_id + 1, 1), (0, -2), (0, -(2**31))):
        code = refusal(cache, 12, session_id=other, epoch=epoch)
        assert code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize(("epoch", "sessions"), [(0, 1), (-1, 0)])
def test_a_full_fetch_closes_the_session_that_it_names(epoch, sessions):
    _, cache = make()
    session_id, _ = opened(cache, 13).answer([])
    new_id, _ = opened(cache, 13, session_id=session_id, epoch=epoch).answer([])
    assert cache.get(session_id) is None
    assert new_id != session_id
    assert (cache.statistics().sessions, bool(new_id)) == (sessions, bool(sessions))
