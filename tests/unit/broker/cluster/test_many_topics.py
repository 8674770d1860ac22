"""Many topics and partitions in one request: made together, in turns, up to Kafka's limit."""

import pytest
import trio

from broker.cluster.image import MetadataImage, TopicImage
from broker.cluster.image_delta import DeltaOutcome, TopicDelta
from broker.cluster.metadata_store import Create, StoreUnavailableError, TreeOperation
from broker.cluster.topic_batches import PARTITIONS_AT_ONCE, TOPICS_AT_ONCE
from broker.cluster.topic_plan import MAX_PARTITIONS_PER_REQUEST, NewTopic
from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from tests.support.cluster_fakes import Cluster
from tests.support.driving import RunWork


def count_writes(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes each change of the store makes, from now on."""
    writes: list[int] = []
    apply = cluster.store.apply

    async def counted(operations: list[TreeOperation]) -> None:
        writes.append(sum(isinstance(one, Create) for one in operations))
        await apply(operations)

    monkeypatch.setattr(cluster.store, "apply", counted)
    return writes


def fail_write(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let one change of the store fail: the first from now on is number 1."""
    apply, calls = cluster.store.apply, 0

    async def fails_once(operations: list[TreeOperation]) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            raise StoreUnavailableError("/", "full")
        await apply(operations)

    monkeypatch.setattr(cluster.store, "apply", fails_once)


async def test_small_topics_share_a_sync(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = count_writes(cluster, monkeypatch)
    wishes = [NewTopic(name=f"t{number}") for number in range(2 * TOPICS_AT_ONCE + 1)]
    made = await cluster.controller.create_topics(wishes)
    assert list(made) == [wish.name for wish in wishes]
    assert all(cluster.image.topic(name) is topic for name, topic in made.items())
    assert writes == [3 * TOPICS_AT_ONCE, 3 * TOPICS_AT_ONCE, 3]
    assert len(cluster.replicas.leading) == len(wishes)


async def test_topics_with_many_partitions_are_written_alone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = count_writes(cluster, monkeypatch)
    size = PARTITIONS_AT_ONCE // 2 + 1
    await cluster.controller.create_topics(
        [NewTopic(name=f"t{number}", partitions=size) for number in range(3)]
    )
    assert writes == [size + 2] * 3
    assert cluster.image.partition_count() == 3 * size


@pytest.mark.parametrize(
    "wishes",
    [
        [NewTopic(name="t", partitions=2**31 - 1)],
        [NewTopic(name="t", partitions=MAX_PARTITIONS_PER_REQUEST), NewTopic(name="u")],
        [NewTopic(name="t", assignment=dict.fromkeys(range(MAX_PARTITIONS_PER_REQUEST + 1), (0,)))],
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
async def test_more_partitions_than_a_request_may_make(
    cluster: Cluster, wishes: list[NewTopic], validate_only: bool
) -> None:
    with pytest.raises(KafkaError) as caught:
        await cluster.controller.create_topics(wishes, validate_only=validate_only)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    assert str(caught.value) == "Excessively large number of partitions per request."
    assert cluster.image.topic_count() == 0


async def test_numbers_that_are_no_number_of_partitions_do_not_count(cluster: Cluster) -> None:
    made = await cluster.controller.create_topics(
        [
            NewTopic(name="bad", partitions=-2),
            NewTopic(name="most", partitions=MAX_PARTITIONS_PER_REQUEST),
        ],
        validate_only=True,
    )
    refused, planned = made["bad"], made["most"]
    assert isinstance(refused, KafkaError)
    assert refused.code == ErrorCode.INVALID_PARTITIONS
    assert isinstance(planned, TopicImage)
    assert len(planned.partitions) == MAX_PARTITIONS_PER_REQUEST


async def test_a_topic_gets_no_more_partitions_at_once_than_a_request_may_make(
    cluster: Cluster,
) -> None:
    await cluster.controller.create_topic(NewTopic(name="t", partitions=2))
    most = MAX_PARTITIONS_PER_REQUEST + 2
    with pytest.raises(KafkaError) as caught:
        await cluster.controller.create_partitions("t", most + 1, validate_only=True)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    await cluster.controller.create_partitions("t", most, validate_only=True)


async def test_names_that_collide_within_a_request(cluster: Cluster) -> None:
    made = await cluster.controller.create_topics([NewTopic(name="a.b"), NewTopic(name="a_b")])
    second = made["a_b"]
    assert isinstance(made["a.b"], TopicImage)
    assert isinstance(second, KafkaError)
    assert second.code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_what_cannot_be_written_is_refused_together_and_the_rest_is_made(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_write(cluster, monkeypatch, 1)
    wishes = [NewTopic(name=f"t{number}") for number in range(TOPICS_AT_ONCE + 1)]
    made = await cluster.controller.create_topics(wishes)
    refused = [name for name, result in made.items() if isinstance(result, KafkaError)]
    assert refused == [wish.name for wish in wishes[:TOPICS_AT_ONCE]]
    assert cluster.image.topic_count() == 1


async def test_what_cannot_be_taken_back_is_refused_and_the_rest_is_made(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_write(cluster, monkeypatch, 2)
    cluster.replicas.fail[TopicPartition("b", 0)] = KafkaError(ErrorCode.INVALID_CONFIG)
    made = await cluster.controller.create_topics([NewTopic(name="a"), NewTopic(name="b")])
    assert made["a"] is cluster.image.topic("a")
    refused = made["b"]
    assert isinstance(refused, KafkaError)
    assert refused.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert cluster.image.topic("b") is None


def topic(name: str) -> TopicImage:
    return TopicImage(name=name, topic_id=name.encode().ljust(16), partitions={})


def test_the_image_knows_which_names_are_alike_without_looking_at_all() -> None:
    image = MetadataImage()
    for name in ("a.b", "c", "d_e.f"):
        image.set_topic(topic(name))
    image.set_topic(topic("c"))
    assert image.colliding_name("a_b") == "a.b"
    assert image.colliding_name("d.e_f") == "d_e.f"
    assert image.colliding_name("a.b") is None
    assert image.colliding_name("c") is None
    image.remove_topic("a.b")
    image.remove_topic("c")
    assert image.colliding_name("a_b") is None
    assert image.topic_count() == 1
    assert list(image._names_by_metric) == ["d_e_f"]


async def test_a_large_change_of_the_tree_gives_way_to_others(
    run_work: RunWork, cluster: Cluster
) -> None:
    """Ten thousand partitions are ten thousand nodes of the store."""
    passes = 0
    done = False

    async def other() -> None:
        nonlocal passes
        while not done:
            passes += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await run_work(cluster.store.apply([Create(f"/many/{number}") for number in range(5_000)]))
        done = True
    assert passes >= 2 * 5_000 // 512


async def test_topics_deleted_together_share_syncs_and_are_refused_each_for_itself(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{number}" for number in range(TOPICS_AT_ONCE + 1)]
    await cluster.controller.create_topics([NewTopic(name=name) for name in names])
    writes = count_writes(cluster, monkeypatch)
    carry_out = cluster.applier._carry_out

    async def stuck(delta: TopicDelta, config: TopicConfig | None) -> DeltaOutcome:
        if delta.name == "t1":
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return await carry_out(delta, config)

    monkeypatch.setattr(cluster.applier, "_carry_out", stuck)
    refused = await cluster.controller.delete_topics(["nothing", *names])
    assert {name: error.code for name, error in refused.items()} == {
        "nothing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "t1": ErrorCode.KAFKA_STORAGE_ERROR,
    }
    # A mark for each topic; then those that are gone go from the tree, with their marks.
    assert writes == [TOPICS_AT_ONCE - 1, 0, 2, 0]
    assert await cluster.store.children("/brokers/topics") == ["t1"]
    assert await cluster.store.children("/admin/delete_topics") == ["t1"]
    assert cluster.image.topic_count() == 0


async def test_a_store_that_fails_leaves_the_other_topics_to_be_deleted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{number}" for number in range(TOPICS_AT_ONCE + 1)]
    await cluster.controller.create_topics([NewTopic(name=name) for name in names])
    fail_write(cluster, monkeypatch, 1)
    refused = await cluster.controller.delete_topics(names)
    assert list(refused) == names[:TOPICS_AT_ONCE]
    assert {error.code for error in refused.values()} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert cluster.image.topic_count() == TOPICS_AT_ONCE


def test_topics_without_configs_of_their_own_share_the_brokers() -> None:
    broker = BrokerConfig.parse({"broker.id": "1", "log.retention.ms": "5"})
    other = BrokerConfig.parse({"broker.id": "1", "log.retention.ms": "6"})
    assert TopicConfig.from_broker(broker, {}) is TopicConfig.from_broker(broker, {})
    assert TopicConfig.from_broker(other, {}).retention_ms == 6
    assert TopicConfig.from_broker(broker, {}).retention_ms == 5
    assert TopicConfig.from_broker(broker, {"retention.ms": "7"}).retention_ms == 7
