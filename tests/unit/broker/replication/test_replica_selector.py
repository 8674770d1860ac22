"""Consumers that read from followers, and leaders that send them there (KIP-392, S-REP-6)."""

from typing import Any

import pytest

from broker.cluster.image import BrokerImage
from broker.replication.replica_selector import RackAwareSelector, selector_for
from config.startup_checks import RACK_AWARE, REPLICA_SELECTORS
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from storage.log.results import FileSlice
from tests.support.broker_bench import batch, context
from tests.support.replication.cluster import SimBroker
from tests.support.replication.pair import FOLLOWER, LEADER, TP, Pair


@pytest.fixture
def made() -> Pair:
    """A leader with ten records, of which the follower in sync has all and shows all."""
    made = Pair([(0, 10)], [(0, 10)])
    for broker in (made.leader, made.follower):
        for known, rack in ((LEADER, "a"), (FOLLOWER, "b")):
            broker.image.set_broker(BrokerImage(broker_id=known, endpoints=(), rack=rack))
    made.begin(1, isr=(LEADER, FOLLOWER))
    made.loop.run(1.0)
    made.leader._fetch._selector = RackAwareSelector(made.leader.image, LEADER)
    return made


def begun(
    broker: SimBroker, offset: int, *, version: int = 13, rack: str = "", max_wait_ms: int = 100
) -> list[Any]:
    """Begin a fetch; return the list that its answer comes to."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        rack_id=rack,
        topics=[FetchTopic(topic=TP.topic, topic_id=b"t" * 16, partitions=[asked])],
    )
    answers: list[Any] = []
    broker.start(broker._fetch(context(version, api_key=ApiKey.FETCH), request), answers.append)
    return answers


def fetched(
    made: Pair, broker: SimBroker, offset: int, *, version: int = 13, rack: str = "b"
) -> Any:
    answers = begun(broker, offset, version=version, rack=rack)
    made.loop.run(0.5)
    return answers[0].responses[0].partitions[0]


def size(records: object) -> int:
    return len(records.read() if isinstance(records, FileSlice) else records)  # type: ignore[arg-type]


def test_s_rep_6_a_leader_sends_a_consumer_to_its_rack(made: Pair) -> None:
    data = fetched(made, made.leader, 3)
    assert (data.preferred_read_replica, size(data.records)) == (FOLLOWER, 0)
    assert data.high_watermark == 10


@pytest.mark.parametrize(
    ("rack", "version", "offset"),
    [("a", 13, 3), ("", 13, 3), ("c", 13, 3), ("b", 10, 3)],
)
def test_s_rep_6_the_leader_answers_others_itself(
    made: Pair, rack: str, version: int, offset: int
) -> None:
    data = fetched(made, made.leader, offset, rack=rack, version=version)
    assert data.preferred_read_replica == -1
    assert size(data.records) > 0


def test_s_rep_6_a_replica_that_is_behind_or_out_of_sync_is_no_choice(made: Pair) -> None:
    selector = RackAwareSelector(made.leader.image, LEADER)
    partition = made.leader.replicas.partition(TP)
    assert selector.select(partition, "b", 10) == FOLLOWER
    assert selector.select(partition, "b", 11) == -1
    made.lead(2, isr=(LEADER,))
    assert selector.select(partition, "b", 3) == -1


def test_s_rep_6_the_furthest_of_several_is_chosen(made: Pair) -> None:
    assert selector_for(None, made.leader.image, LEADER) is None
    for name in REPLICA_SELECTORS:
        selector = selector_for(name, made.leader.image, LEADER)
        assert isinstance(selector, RackAwareSelector) is (name == RACK_AWARE)


def test_s_rep_6_a_follower_serves_consumers_below_its_own_high_watermark(made: Pair) -> None:
    data = fetched(made, made.follower, 3)
    assert (data.error_code, data.high_watermark) == (0, 10)
    assert size(data.records) > 0
    made.log_of(made.follower).update_high_watermark(5)
    made.cluster.links.isolate(LEADER, [FOLLOWER])
    assert size(fetched(made, made.follower, 5).records) == 0


def test_s_rep_6_before_v11_only_the_leader_serves(made: Pair) -> None:
    data = fetched(made, made.follower, 3, version=10)
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_s_rep_6_a_consumer_that_waits_at_a_follower_is_woken_by_its_high_watermark(
    made: Pair,
) -> None:
    answers = begun(made.follower, 10, max_wait_ms=30_000)
    made.loop.run(1.0)
    assert answers == []
    partition = made.leader.replicas.partition(TP)
    partition.append_as_leader_nowait(batch(), required_acks=-1)
    made.leader.replicas.wake(partition)
    made.loop.run(1.0)
    assert len(answers) == 1
