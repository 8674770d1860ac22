"""S-READ-11: incremental fetch sessions as a client sees them, by topic name and by id.

`replication/test_fetch_session.py` has the rules of the cache: which session a request means.
"""

import pytest

from config.topic_config import TopicConfig
from protocol.errors import ErrorCode
from tests.support.broker_bench import led
from tests.support.fetch_bench import IDS, Asked, partitions_of

BOTH = pytest.mark.parametrize("version", [7, 12, 13, 17])


def told(response):
    return [(p.partition_index, p.error_code, len(p.records) > 0) for p in partitions_of(response)]


def opened(asked, offsets, version):
    response = asked.fetch(offsets, version, session=(0, 0), max_wait=0)
    assert response.session_id > 0
    return response.session_id


@BOTH
def test_a_full_fetch_makes_a_session_and_later_ones_tell_only_news(version):
    asked = Asked(partitions=3)
    session = opened(asked, {0: 0, 1: 0, 2: 0}, version)
    response = asked.fetch({}, version, session=(session, 1), max_wait=0)
    assert (response.session_id, response.responses) == (session, [])
    asked.append(index=1)
    response = asked.fetch({}, version, session=(session, 2), max_wait=0)
    assert told(response) == [(1, 0, True)]


@BOTH
def test_an_incremental_fetch_adds_changes_and_forgets_partitions(version):
    asked = Asked(partitions=3)
    for index in range(3):
        asked.append(index=index)
    session = opened(asked, {0: 1, 1: 1}, version)
    response = asked.fetch({2: 0}, version, session=(session, 1), max_wait=0)
    assert told(response) == [(2, 0, True)]
    response = asked.fetch({2: 1}, version, session=(session, 2), max_wait=0)
    assert told(response) == [(2, 0, False)] or told(response) == []
    asked.append(index=0)
    asked.append(index=1)
    response = asked.fetch({}, version, session=(session, 3), max_wait=0, forget=[("t", 0)])
    assert told(response) == [(1, 0, True)]


def test_a_session_that_is_forgotten_empty_is_closed(asked):
    session = opened(asked, {0: 0}, 12)
    response = asked.fetch({}, session=(session, 1), max_wait=0, forget=[("t", 0)])
    assert (response.session_id, response.responses) == (0, [])
    assert asked.fetch({}, session=(session, 2)).error_code == 70


def test_a_moved_watermark_or_log_start_is_news():
    asked = Asked(replicas=(1, 2), isr=(1, 2))
    asked.append(b"a")
    asked.append(b"b")
    session = opened(asked, {0: 2}, 12)
    assert told(asked.fetch({}, session=(session, 1), max_wait=0)) == []
    asked.partitions[0].record_follower_fetch(2, 1, knows_epoch=True)
    (moved,) = partitions_of(asked.fetch({}, session=(session, 2), max_wait=0))
    assert moved.high_watermark == 1
    assert told(asked.fetch({}, session=(session, 3), max_wait=0)) == []
    asked.partitions[0].delete_records(1)
    (moved,) = partitions_of(asked.fetch({}, session=(session, 4), max_wait=0))
    assert moved.log_start_offset == 1


def test_an_error_is_told_every_time_and_its_end_too():
    asked = Asked(partitions=2)
    session = opened(asked, {0: 0, 1: 9}, 12)
    for epoch in (1, 2):
        response = asked.fetch({}, session=(session, epoch), max_wait=0)
        assert told(response) == [(1, ErrorCode.OFFSET_OUT_OF_RANGE, False)]
    response = asked.fetch({1: 0}, session=(session, 3), max_wait=0)
    assert told(response) == [(1, 0, False)]
    assert told(asked.fetch({}, session=(session, 4), max_wait=0)) == []


def test_a_parked_incremental_fetch_is_woken():
    asked = Asked(partitions=2)
    session = opened(asked, {0: 0, 1: 0}, 12)
    pending = asked.park({}, session=(session, 1))
    asked.append(index=1)
    response = asked.done(pending)
    assert (response.session_id, told(response)) == (session, [(1, 0, True)])
    asked.nothing_is_parked()


def test_unknown_and_wrong_sessions(asked):
    assert asked.fetch({}, session=(99, 1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    session = opened(asked, {0: 0}, 12)
    for epoch in (2, 7):
        response = asked.fetch({}, session=(session, epoch))
        assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert (response.session_id, response.responses) == (0, [])
    assert asked.fetch({}, session=(session, 1), max_wait=0).error_code == 0
    assert asked.fetch({}, session=(session, 1)).error_code == 71
    assert asked.fetch({0: 0}, session=(session, -2)).error_code == 71


def test_partitions_with_data_move_to_the_end():
    asked = Asked(partitions=3)
    session = opened(asked, {0: 0, 1: 0, 2: 0}, 12)
    for index in range(3):
        asked.append(b"x" * 500, index=index)
    seen = []
    for epoch in range(1, 4):
        response = asked.fetch({}, session=(session, epoch), max_wait=0, max_bytes=100)
        seen += [p.partition_index for p in partitions_of(response) if len(p.records)]
    assert seen == [0, 1, 2]


def test_a_session_finds_a_topic_that_comes_up_later_and_loses_one_that_goes(asked):
    response = asked.fetch({"t": {0: 0}, "u": {0: 0}}, IDS, session=(0, 0), max_wait=0)
    assert told(response) == [(0, 0, False), (0, ErrorCode.UNKNOWN_TOPIC_ID, False)]
    session = response.session_id
    (late,) = asked.bench.topic("u")
    response = asked.fetch({}, IDS, session=(session, 1), max_wait=0)
    assert told(response) == [(0, 0, False)]
    asked.bench.image.topics.pop("u")
    asked.bench.replicas.delete_partition(late.topic_partition)
    response = asked.fetch({}, IDS, session=(session, 2), max_wait=0)
    assert told(response) == [(0, ErrorCode.UNKNOWN_TOPIC_ID, False)]


def test_a_session_follows_a_topic_that_is_deleted_and_made_again_by_name(asked):
    asked.append()
    session = opened(asked, {0: 1}, 12)
    tp = asked.partitions[0].topic_partition
    asked.bench.replicas.delete_partition(tp)
    asked.bench.replicas.make_leader(tp, b"n" * 16, led(), TopicConfig(), True)
    response = asked.fetch({}, session=(session, 1), max_wait=0)
    assert told(response) == [(0, ErrorCode.OFFSET_OUT_OF_RANGE, False)]
