"""Throttled as by Apache Kafka 4.4.0: the same requests of fresh clients, the same times.

A fresh client's first request is measured over exactly all windows but one, so its throttle time is
known to the millisecond, if both count the same bytes. Later times depend on the speed of each
broker, and are compared to some hundred milliseconds.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.fetch import FetchRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import ProduceRequest
from protocol.records.builder import build_batch
from tests.answers.pair import Pair, Side, eventually
from tests.support.produce_requests import one_batch
from tests.support.quota_calls import alteration, described, description, entity
from tests.support.read_requests import one_fetch
from tests.support.topic_requests import creation, growth
from tests.support.wire_client import WireClient, request_frame

pytestmark = pytest.mark.conformance

RATE = 20_000
"""Bytes per second."""
TOPIC = "throttled"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with Pair(tmp_path_factory.mktemp("pair")) as both:
        for side in both.sides:
            side.make_topics([TOPIC])
            with WireClient(side.port) as client:
                for _ in range(8):
                    client.call(ApiKey.PRODUCE, 9, production(50_000))
        yield both


def set_quotas(side: Side, client_id: str, **values: float) -> None:
    """Set quotas; return when they are in force."""
    request = alteration(entity(client_id=client_id), **values)
    answer = side.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)
    assert answer.entries[0].error_code == 0, answer
    asked = description(("client-id", 0, client_id), strict=True)

    def is_told() -> bool:
        answer = side.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, asked)
        return described(answer).get((("client-id", client_id),)) == values

    eventually(is_told)
    time.sleep(0.3)  # Kafka's listener of the metadata tells its managers after what it describes


def production(size: int, acks: int = -1, topic: str = TOPIC) -> ProduceRequest:
    batch = build_batch([(1_700_000_000_000, None, b"x" * size, ())])
    return one_batch(topic, batch, acks=acks)


def fetching(max_bytes: int, **fields: Any) -> FetchRequest:
    return one_fetch(TOPIC, size=max_bytes, max_bytes=max_bytes, **fields)


Scenario = Callable[[WireClient], list[Any]]


def both(pair: Pair, client_id: str, scenario: Scenario, **quotas: float) -> list[list[Any]]:
    """Return the results of a client with this id at Kafka and at this broker."""
    seen = []
    for side in pair.sides:
        set_quotas(side, client_id, **quotas)
        with WireClient(side.port, timeout_s=60, client_id=client_id) as client:
            seen.append(scenario(client))
    return seen


def close(theirs: float, ours: float, ms: float) -> bool:
    return abs(theirs - ours) <= ms


@pytest.mark.parametrize("version", [3, 9, 11])
@pytest.mark.parametrize("size", [190_000, 200_000, 500_000, 900_000])
def test_s_qta_3_bytes_produced_are_counted_as_kafka_does(
    pair: Pair, version: int, size: int
) -> None:
    def scenario(client: WireClient) -> list[Any]:
        answer = client.call(ApiKey.PRODUCE, version, production(size))
        assert answer.responses[0].partition_responses[0].error_code == 0
        return [answer.throttle_time_ms]

    theirs, ours = both(pair, f"p-{version}-{size}", scenario, producer_byte_rate=RATE)
    assert theirs == ours
    assert (theirs[0] > 0) == (size >= 200_000)


@pytest.mark.parametrize("version", [4, 7, 11, 12])
def test_s_qta_3_bytes_fetched_are_counted_as_kafka_does(pair: Pair, version: int) -> None:
    """The first fetch is within the quota, the second would be beyond it and gets nothing."""

    def scenario(client: WireClient) -> list[Any]:
        got = []
        for _ in range(2):
            answer = client.call(ApiKey.FETCH, version, fetching(190_000))
            sizes = [len(bytes(p.records or b"")) for t in answer.responses for p in t.partitions]
            got += [sum(sizes), answer.throttle_time_ms]
        return got

    theirs, ours = both(pair, f"f-{version}", scenario, consumer_byte_rate=RATE)
    assert theirs[:3] == ours[:3] == [190_000, 0, 0]
    # The window has grown by the time between the two, at most a second.
    assert 7_000 < theirs[3] < 9_100
    assert close(theirs[3], ours[3], 300)


def test_s_qta_3_a_fetch_is_cut_to_what_the_quota_lets_through(pair: Pair) -> None:
    def scenario(client: WireClient) -> list[Any]:
        answers = [client.call(ApiKey.FETCH, 11, fetching(1 << 20)) for _ in range(2)]
        return [answers[0].throttle_time_ms, records_of(answers)]

    theirs, ours = both(pair, "cut", scenario, consumer_byte_rate=7_000)
    assert theirs == ours
    assert ours[1] == 70_000


def records_of(answers: list[Any]) -> int:
    return sum(
        len(bytes(part.records or b""))
        for answer in answers
        for topic in answer.responses
        for part in topic.partitions
    )


def test_s_qta_3_a_throttled_fetch_leaves_its_session_alone(pair: Pair) -> None:
    def scenario(client: WireClient) -> list[Any]:
        full = client.call(ApiKey.FETCH, 11, fetching(60_000, session_id=0, session_epoch=0))
        seen = [full.throttle_time_ms, full.session_id > 0]
        for epoch in (1, 2):
            request = fetching(60_000, session_id=full.session_id, session_epoch=epoch)
            answer = client.call(ApiKey.FETCH, 11, request)
            same = answer.session_id == full.session_id
            seen += [same, answer.error_code, len(answer.responses), answer.throttle_time_ms > 0]
        return seen

    theirs, ours = both(pair, "session", scenario, consumer_byte_rate=10_000)
    assert theirs == ours
    assert ours[:6] == [0, True, True, 0, 0, True]


def test_s_qta_3_a_throttled_connection_is_not_received_from(pair: Pair) -> None:
    """The answer comes at once; the next one when the time is over."""

    def scenario(client: WireClient) -> list[Any]:
        began = time.monotonic()
        throttle_ms = client.call(ApiKey.PRODUCE, 9, production(250_000)).throttle_time_ms
        answered = time.monotonic()
        client.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        waited_ms = (time.monotonic() - answered) * 1000
        return [throttle_ms, (answered - began) * 1000, waited_ms]

    for throttle_ms, answered_ms, waited_ms in both(
        pair, "muted", scenario, producer_byte_rate=RATE
    ):
        assert 2_500 < throttle_ms < 2_600
        assert answered_ms < 2_000
        assert throttle_ms - answered_ms - 20 < waited_ms < throttle_ms + 10_000


def test_s_qta_3_acks_0_is_held_back_without_an_answer(pair: Pair) -> None:
    def scenario(client: WireClient) -> list[Any]:
        began = time.monotonic()
        request = production(250_000, acks=0)
        client.send(request_frame(ApiKey.PRODUCE, 9, request, client_id=client.client_id))
        client.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        return [time.monotonic() - began]

    for (waited_s,) in both(pair, "acks-0", scenario, producer_byte_rate=RATE):
        assert 2.4 < waited_s < 20


def test_s_qta_3_time_is_charged_and_throttles_for_a_window_at_most(pair: Pair) -> None:
    """How much time a request takes is each broker's own; that it is charged is not."""

    def scenario(client: WireClient) -> list[Any]:
        seen = []
        for version, key, request in (
            (9, ApiKey.METADATA, MetadataRequest(topics=[])),
            (3, ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g", key_type=0)),
            (9, ApiKey.PRODUCE, production(10)),
            (11, ApiKey.FETCH, fetching(100)),
        ):
            answer = client.call(key, version, request)
            seen.append(answer.throttle_time_ms)
        return seen

    for seen in both(pair, "time", scenario, request_percentage=0.00001):
        assert all(0 < ms <= 1_000 for ms in seen), seen


# ---- changes of topics


CHANGES: dict[str, list[tuple[ApiKey, int, Any]]] = {
    "strict": [
        (ApiKey.CREATE_TOPICS, 6, creation("strict-1", partitions=13)),
        (ApiKey.CREATE_TOPICS, 6, creation("strict-2", partitions=30)),
        (ApiKey.CREATE_TOPICS, 6, creation("strict-3", partitions=1)),
    ],
    "old": [
        (ApiKey.CREATE_TOPICS, 5, creation("old-1", partitions=13)),
        (ApiKey.CREATE_TOPICS, 5, creation("old-2", partitions=3)),
        (ApiKey.DELETE_TOPICS, 4, DeleteTopicsRequest(topic_names=["old-1"], timeout_ms=20_000)),
        (ApiKey.CREATE_PARTITIONS, 2, growth("old-2", 5)),
    ],
    "tried": [
        (ApiKey.CREATE_TOPICS, 7, creation("tried-1", partitions=14, validate_only=True)),
        (ApiKey.CREATE_TOPICS, 7, creation("tried-2", partitions=14, validate_only=True)),
        (ApiKey.CREATE_TOPICS, 7, creation("tried-3", partitions=14, validate_only=True)),
    ],
    "refused": [
        (ApiKey.CREATE_TOPICS, 7, creation(TOPIC, partitions=900)),
        (ApiKey.CREATE_TOPICS, 7, creation("refused-1", partitions=0)),
        (ApiKey.CREATE_PARTITIONS, 3, growth(TOPIC, 1)),
        (ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["refused-1"], timeout_ms=9_000)),
        (ApiKey.CREATE_TOPICS, 7, creation("refused-2", partitions=13)),
    ],
    "grown": [
        (ApiKey.CREATE_TOPICS, 7, creation("grown-1", partitions=2)),
        (ApiKey.CREATE_PARTITIONS, 3, growth("grown-1", 22, validate_only=True)),
        (ApiKey.CREATE_PARTITIONS, 3, growth("grown-1", 22)),
        (ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["grown-1"], timeout_ms=20_000)),
    ],
}


@pytest.mark.parametrize("name", list(CHANGES))
def test_s_qta_4_changes_of_topics_are_refused_and_throttled_as_by_kafka(
    pair: Pair, name: str
) -> None:
    def scenario(client: WireClient) -> list[Any]:
        seen = []
        for key, version, request in CHANGES[name]:
            answer = client.call(key, version, request)
            results = getattr(
                answer,
                {
                    ApiKey.CREATE_TOPICS: "topics",
                    ApiKey.DELETE_TOPICS: "responses",
                    ApiKey.CREATE_PARTITIONS: "results",
                }[key],
            )
            code = results[0].error_code
            refusal = code == ErrorCode.THROTTLING_QUOTA_EXCEEDED and results[0].error_message
            seen.append(((code, refusal), answer.throttle_time_ms))
        return seen

    theirs, ours = both(pair, name, scenario, controller_mutation_rate=2)
    assert [told for told, _ in theirs] == [told for told, _ in ours], (theirs, ours)
    for (_, kafka_ms), (_, ours_ms) in zip(theirs, ours, strict=True):
        # A request may come a little later than the throttle before it ended.
        assert close(kafka_ms, ours_ms, 400), (theirs, ours)


def test_s_qta_4_topics_of_metadata_are_charged_as_by_kafka(pair: Pair) -> None:
    def made(client: WireClient, name: str) -> bool:
        topics = [MetadataRequestTopic(name=name)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
        for _ in range(10):
            answer = client.call(ApiKey.METADATA, 9, request)
            assert answer.throttle_time_ms == 0
            if answer.topics[0].error_code == 0:
                return True
            time.sleep(0.1)
        return False

    def scenario(client: WireClient) -> list[Any]:
        big = client.call(ApiKey.CREATE_TOPICS, 6, creation("auto-big", partitions=60))
        return [big.topics[0].error_code, made(client, "auto-1")]

    theirs, ours = both(pair, "auto", scenario, controller_mutation_rate=4)
    assert theirs == ours
