"""The comparison with Kafka sees differences, and accepts some. These tests need no Kafka."""

from random import Random
from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from protocol.records.builder import build_batch
from tests.answers.accepted import Asked, accepted_reason
from tests.answers.cases import Case, cases_of, pairs_of
from tests.answers.differences import Difference, differences
from tests.answers.pair import Outcome
from tests.answers.run import Comparison
from tests.frames.valid import Names

NAMES = Names(topic="t", topic_id=b"1" * 16, directory="/a")
OTHERS = Names(topic="t", topic_id=b"2" * 16, directory="/b")


def produced(**partition: Any) -> Outcome:
    one = PartitionProduceResponse(index=0, **partition)
    answer = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[one])])
    return Outcome("answer", answer)


def produce(*names: str) -> Any:
    data = [PartitionProduceData(index=0, records=b"")]
    return ProduceRequest(topic_data=[TopicProduceData(name=n, partition_data=data) for n in names])


def reason(theirs: Outcome, ours: Outcome, request: Any = None, mistakes: int = 1) -> str | None:
    asked = Asked(ApiKey.PRODUCE, 9, request or produce("t"), mistakes, theirs, ours)
    found = differences(theirs, ours)
    assert found
    return accepted_reason(found[0], asked)


def test_fields_are_compared_one_by_one() -> None:
    theirs, ours = produced(base_offset=3), produced(base_offset=4)
    assert differences(theirs, produced(base_offset=3)) == []
    (found,) = differences(theirs, ours)
    assert found == Difference("responses.partition_responses.base_offset", 3, 4)


def test_what_each_broker_chooses_is_compared_by_whether_it_is_there() -> None:
    def described(topic_id: bytes, cluster: str) -> Outcome:
        topic = MetadataResponseTopic(name="t", topic_id=topic_id, partitions=[])
        return Outcome("answer", MetadataResponse(brokers=[], cluster_id=cluster, topics=[topic]))

    assert differences(described(b"1" * 16, "a"), described(b"2" * 16, "b")) == []
    (found,) = differences(described(b"1" * 16, "a"), described(bytes(16), "b"))
    assert found.path == "topics.topic_id"


def test_arrays_in_another_order_are_the_same() -> None:
    def topics(*names: str) -> Outcome:
        made = [MetadataResponseTopic(name=name, partitions=[]) for name in names]
        return Outcome("answer", MetadataResponse(brokers=[], topics=made))

    assert differences(topics("a", "b"), topics("b", "a")) == []
    (found,) = differences(topics("a", "b"), topics("b"))
    assert (found.path, found.theirs, found.ours) == ("topics.length", 2, 1)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (produced(error_code=3), produced(error_code=0)),
        (produced(error_code=0), produced(error_code=3)),
        (produced(error_code=47), produced(error_code=90)),
        (produced(base_offset=3), produced(base_offset=4)),
        (produced(error_code=3), Outcome("closed")),
        (produced(error_code=0), Outcome("silent")),
        (Outcome("closed"), produced(error_code=0)),
        (Outcome("silent"), produced(error_code=0)),
        (produced(error_code=-1), produced(error_code=0)),
        (produced(error_code=3), produced(error_code=-1)),
        (Outcome("silent"), produced(error_code=-1)),
    ],
)
def test_what_matters_is_not_accepted(theirs: Outcome, ours: Outcome) -> None:
    assert reason(theirs, ours) is None
    comparison = Comparison()
    asked = Asked(ApiKey.PRODUCE, 9, produce("t"), 1, theirs, ours)
    assert not comparison.note("a case", asked)
    assert (comparison.same, len(comparison.findings)) == (0, 1)


def test_what_is_accepted_has_a_reason() -> None:
    assert reason(Outcome("closed"), produced(error_code=42))
    assert reason(produced(error_code=-1), produced(error_code=87))
    wording = produced(error_code=3, error_message="one"), produced(error_code=3, error_message="x")
    assert reason(*wording) == "the wording of messages is ours"
    twice = produce("t", "t")
    one, two = produced(), Outcome("answer", ProduceResponse(responses=[1, 2]))
    assert reason(one, two, twice)
    assert reason(one, two, produce("t", "u")) is None
    first, second = produced(error_code=3), produced(error_code=21)
    assert reason(first, second, mistakes=2)
    assert reason(first, second, mistakes=1) is None


@pytest.mark.parametrize(
    ("names", "is_accepted"),
    [(["range"], False), (["range", "sticky"], False), (["range", "range"], True)],
)
def test_kafka_is_silent_to_a_join_that_names_a_protocol_twice_and_to_no_other(
    names: list[str], is_accepted: bool
) -> None:
    protocols = [JoinGroupRequestProtocol(name=name, metadata=b"") for name in names]
    request = JoinGroupRequest(group_id="join-group-v1-1", protocols=protocols)
    joined = Outcome("answer", JoinGroupResponse(members=[]))
    asked = Asked(ApiKey.JOIN_GROUP, 1, request, 1, Outcome("silent"), joined)
    (found,) = differences(asked.theirs, asked.ours)
    assert (accepted_reason(found, asked) is not None) == is_accepted


@pytest.mark.parametrize(
    ("theirs", "ours", "is_accepted"),
    [
        ("PreparingRebalance", "Empty", True),
        ("PreparingRebalance", "CompletingRebalance", True),
        ("PreparingRebalance", "Stable", False),
        ("Empty", "PreparingRebalance", False),
        ("CompletingRebalance", "Empty", False),
    ],
)
def test_only_a_rebalance_that_kafka_cannot_end_may_be_over_here(
    theirs: str, ours: str, is_accepted: bool
) -> None:
    def listed(state: str) -> Outcome:
        group = ListedGroup(group_id="join-group-v1-1", group_state=state)
        return Outcome("answer", ListGroupsResponse(groups=[group]))

    asked = Asked(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(), 0, listed(theirs), listed(ours))
    (found,) = differences(asked.theirs, asked.ours)
    assert (accepted_reason(found, asked) is not None) == is_accepted


def test_a_case_is_the_same_for_both_though_their_ids_differ() -> None:
    cases = cases_of(ApiKey.METADATA, 12, NAMES)
    assert [one.text(NAMES) for one in cases] == [one.text(OTHERS) for one in cases]
    pairs = pairs_of(ApiKey.METADATA, 12, NAMES, Random(1), 20)
    assert len(pairs) == 20
    for case in (*cases, *pairs):
        theirs, ours = case.request(NAMES), case.request(OTHERS)
        assert type(theirs) is type(ours)
    valid = Case(ApiKey.METADATA, 12).request(NAMES)
    assert valid == MetadataRequest(topics=valid.topics, allow_auto_topic_creation=False)
    assert valid.topics[0].name == "t"


def test_a_marker_is_the_same_whenever_it_was_written() -> None:
    def fetched(time_ms: int, *, control: bool) -> Outcome:
        batch = build_batch([(time_ms, b"k", b"v", ())], producer_id=5, control=control)
        part = PartitionData(partition_index=0, records=batch)
        topics = [FetchableTopicResponse(topic="t", partitions=[part])]
        return Outcome("answer", FetchResponse(responses=topics))

    assert differences(fetched(1, control=True), fetched(2, control=True)) == []
    assert differences(fetched(1, control=False), fetched(2, control=False))
    assert differences(fetched(1, control=True), fetched(1, control=False))
