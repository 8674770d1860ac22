"""A failover tells little, at Kafka's levels, and one line for all partitions of a reason."""

import logging

import pytest

from broker.replication.fetching.notices import Notices
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from tests.support.replication.pair import TP, Pair


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_one_line_for_many_partitions_of_one_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    notices = Notices()
    for number in range(300):
        notices.add(TopicPartition("t", number), ErrorCode.FENCED_LEADER_EPOCH, "are fenced")
    notices.add(TopicPartition("u", 0), ErrorCode.UNKNOWN_TOPIC_ID, "rest")
    notices.add(TopicPartition("v", 0), ErrorCode.KAFKA_STORAGE_ERROR, "rest")
    notices.tell()
    (fenced_level, fenced), *others = told(caplog)
    assert fenced_level == logging.INFO
    assert fenced.startswith("300 partitions are fenced: t-0, t-1, ")
    assert fenced.endswith(" t-19, …")
    assert others == [
        (logging.WARNING, "1 partitions rest: u-0"),
        (logging.ERROR, "1 partitions rest: v-0"),
    ]
    notices.tell()
    assert len(caplog.records) == 3


@pytest.mark.parametrize(("leads_in", "follows_in"), [(2, 1), (1, 2)])
def test_a_leader_in_another_epoch_is_no_warning(
    leads_in: int, follows_in: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    pair = Pair([(0, 5)], [])
    pair.lead(leads_in)
    pair.follow(follows_in)
    pair.loop.run(1.0)
    mine = [level for level, line in told(caplog) if str(TP) in line and "1 partitions" in line]
    assert mine
    assert max(mine) <= logging.INFO
    assert all(level < logging.WARNING for level, _ in told(caplog))
