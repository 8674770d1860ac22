"""Topics are changed as Kafka's tools change them; the controller reacts to the tree."""

import json
from random import Random

import pytest

from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.image import BrokerImage, MetadataImage, TopicImage
from broker.cluster.metadata_store import Create
from broker.cluster.topic_log_configs import TopicLogConfigs
from broker.cluster.topic_plan import NewTopic
from broker.membership.image_changes import ImageChanges
from broker.membership.topic_admin import AdminParts, TopicAdmin
from broker.membership.topic_settings import TopicSettings
from config.broker_config import BrokerConfig
from protocol.errors import ErrorCode, KafkaError
from storage.waits import at_once
from tests.support.cluster_fakes import FakeLogConfigs
from tests.support.manual_clock import PassingClock
from tests.support.membership_fakes import FakeController, code_of, partition
from tests.support.stores import new_uuid, open_store, value_of


class Cluster:
    """A controller's broker, whose image a test sets."""

    def __init__(self, store: EmbeddedStore, configs: DynamicBrokerConfig, brokers: int) -> None:
        self.store = store
        self.image = MetadataImage(controller_id=1)
        for broker_id in range(1, brokers + 1):
            self.image.set_broker(BrokerImage(broker_id=broker_id, endpoints=()))
        self.controller = FakeController()
        self.changes = ImageChanges(PassingClock())
        self.logs = FakeLogConfigs()
        self.settings = TopicSettings(store)
        self.configs = TopicLogConfigs(self.image, configs, self.logs, known=self.settings.own)
        self.settings.changed = self.configs.topic_changed
        self.admin = TopicAdmin(
            AdminParts(
                store=store,
                image=self.image,
                changes=self.changes,
                settings=self.settings,
                configs=self.configs,
                controller=self.controller,
                new_uuid=new_uuid,
                random=Random(1),
            )
        )

    def show(self, name: str, leaders: list[int]) -> None:
        """Let the image show a topic, as an UpdateMetadata would."""
        self.image.set_topic(
            TopicImage(
                name=name,
                topic_id=new_uuid(),
                partitions={i: partition(leader, 0) for i, leader in enumerate(leaders)},
            )
        )
        self.changes.changed()

    async def node(self, path: str) -> dict:
        return json.loads(await value_of(self.store, path))


async def opened(brokers: int = 3, **props: str) -> Cluster:
    store = await open_store()
    await store.apply([Create("/controller_epoch", b"1")])
    config = BrokerConfig.parse(
        {"broker.id": "1", **{name.replace("_", "."): text for name, text in props.items()}}
    )
    configs = await DynamicBrokerConfig.load(config, store)
    return Cluster(store, configs, brokers)


@pytest.fixture
def cluster() -> Cluster:
    """Three brokers."""
    return at_once(opened())


def refusal(answer: object) -> ErrorCode:
    """The code of what is refused."""
    assert isinstance(answer, KafkaError)
    return answer.code


async def test_a_new_topic_is_its_node_and_its_configs_and_nothing_else(cluster: Cluster) -> None:
    wish = NewTopic(name="t", partitions=2, replication_factor=3, config={"retention.ms": "5"})
    made = await cluster.admin.create_topics([wish])
    # Nobody leads it yet, and no time was given.
    assert refusal(made["t"]) is ErrorCode.REQUEST_TIMED_OUT
    node = await cluster.node("/brokers/topics/t")
    assert node["version"] == 3
    assert {len(set(replicas)) for replicas in node["partitions"].values()} == {3}
    config = await cluster.node("/config/topics/t")
    assert config == {"version": 1, "config": {"retention.ms": "5"}}
    assert await cluster.store.children("/brokers/topics/t") == []


async def test_the_answer_waits_until_the_image_shows_leaders(cluster: Cluster) -> None:
    wish = NewTopic(name="t", partitions=1, replication_factor=1)
    looks = 0
    real = cluster.image.topic

    def topic(name: str) -> TopicImage | None:
        nonlocal looks
        looks += 1
        if looks == 4:
            cluster.show("t", [2])
        return real(name)

    cluster.image.topic = topic  # type: ignore[method-assign]
    made = await cluster.admin.create_topics([wish], timeout_ms=60_000)
    assert isinstance(made["t"], TopicImage)


async def test_a_topic_without_a_leader_for_one_partition_is_late(cluster: Cluster) -> None:
    wish = NewTopic(name="t", partitions=2, replication_factor=1)

    def charge(count: int) -> None:
        cluster.show("t", [1, -1])

    made = await cluster.admin.create_topics([wish], charge=charge, timeout_ms=5_000)
    assert refusal(made["t"]) is ErrorCode.REQUEST_TIMED_OUT


async def test_a_controller_that_was_succeeded_writes_nothing(cluster: Cluster) -> None:
    await cluster.store.put("/controller_epoch", b"2")
    made = await cluster.admin.create_topics([NewTopic(name="t", partitions=1)])
    assert refusal(made["t"]) is ErrorCode.NOT_CONTROLLER
    assert await cluster.store.get("/brokers/topics/t") is None
    assert await cluster.store.get("/config/topics/t") is None
    cluster.show("u", [1])
    refused_too = await cluster.admin.delete_topics(["u"])
    assert refused_too["u"].code is ErrorCode.NOT_CONTROLLER
    assert await cluster.store.children("/admin/delete_topics") == []


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (NewTopic(name="t", replication_factor=4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="in.tree", partitions=1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic(name="in-image", partitions=1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic(name="dying", partitions=1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic(name="a/b", partitions=1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="t", config={"retention.ms": "x"}), ErrorCode.INVALID_CONFIG),
        (NewTopic(name="t", assignment={0: (1, 9)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=lambda value: value.name,
)
async def test_what_cannot_be_is_refused(cluster: Cluster, wish: NewTopic, code: ErrorCode) -> None:
    await cluster.store.create("/brokers/topics/in.tree", b"{}")
    await cluster.store.create("/admin/delete_topics/dying")
    cluster.show("in-image", [1])
    assert refusal((await cluster.admin.create_topics([wish]))[wish.name]) is code


async def test_names_that_differ_by_dots_alone_are_not_made_together(cluster: Cluster) -> None:
    made = await cluster.admin.create_topics(
        [NewTopic(name="a.b", partitions=1), NewTopic(name="a_b", partitions=1)]
    )
    assert [refusal(one) for one in made.values()] == [
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert await cluster.store.children("/brokers/topics") == ["a.b"]


async def test_only_checking_writes_nothing(cluster: Cluster) -> None:
    made = await cluster.admin.create_topics([NewTopic(name="t", partitions=1)], validate_only=True)
    assert isinstance(made["t"], TopicImage)
    assert await cluster.store.children("/brokers/topics") == []


async def test_missing_topics_are_made_by_any_broker_and_clients_ask_again() -> None:
    cluster = await opened(num_partitions="4")
    cluster.controller.is_active = False
    await cluster.store.put("/controller_epoch", b"9")
    errors = await cluster.admin.ensure_topics(["t", "__cluster_metadata"])
    assert errors["t"].code is ErrorCode.LEADER_NOT_AVAILABLE
    assert errors["__cluster_metadata"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len((await cluster.node("/brokers/topics/t"))["partitions"]) == 4
    again = await cluster.admin.ensure_topics(["t"])
    assert again["t"].code is ErrorCode.LEADER_NOT_AVAILABLE


async def test_internal_topics_have_the_configured_replicas_or_are_not_made() -> None:
    cluster = await opened(brokers=2)
    name = "__consumer_offsets"
    work = cluster.admin.ensure_topic(name)
    assert await code_of(work) is ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.image.set_broker(BrokerImage(broker_id=3, endpoints=()))
    work = cluster.admin.ensure_topic(name)
    assert await code_of(work) is ErrorCode.LEADER_NOT_AVAILABLE
    node = await cluster.node(f"/brokers/topics/{name}")
    assert len(node["partitions"]) == 50
    assert {len(replicas) for replicas in node["partitions"].values()} == {3}
    cluster.show(name, [1])
    assert (await cluster.admin.ensure_topic(name)).name == name


async def test_topics_grow_from_what_the_tree_has(cluster: Cluster) -> None:
    await cluster.admin.create_topics([NewTopic(name="t", partitions=2, replication_factor=2)])
    before = await cluster.node("/brokers/topics/t")
    work = cluster.admin.create_partitions("t", 4)
    assert await code_of(work) is ErrorCode.REQUEST_TIMED_OUT
    after = await cluster.node("/brokers/topics/t")
    assert after["topic_id"] == before["topic_id"]
    assert len(after["partitions"]) == 4
    assert all(after["partitions"][p] == before["partitions"][p] for p in ("0", "1"))
    assert {len(set(replicas)) for replicas in after["partitions"].values()} == {2}


async def test_a_topic_that_is_reassigned_or_deleted_does_not_grow(cluster: Cluster) -> None:
    value = {
        "version": 3,
        "partitions": {"0": [1, 2]},
        "adding_replicas": {"0": [2]},
        "removing_replicas": {},
    }
    await cluster.store.create("/brokers/topics/t", json.dumps(value).encode())
    work = cluster.admin.create_partitions("t", 2)
    assert await code_of(work) is ErrorCode.REASSIGNMENT_IN_PROGRESS
    await cluster.store.create("/admin/delete_topics/t")
    work = cluster.admin.create_partitions("t", 2)
    assert await code_of(work) is ErrorCode.INVALID_TOPIC_EXCEPTION
    work = cluster.admin.create_partitions("u", 2)
    assert await code_of(work) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_deletion_is_a_mark_and_ends_when_the_image_has_forgotten_the_topic(
    cluster: Cluster,
) -> None:
    cluster.show("t", [1])
    refused = await cluster.admin.delete_topics(["t", "unknown"], timeout_ms=3_000)
    assert refused["t"].code is ErrorCode.REQUEST_TIMED_OUT
    assert refused["unknown"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await cluster.store.children("/admin/delete_topics") == ["t"]
    charged: list[int] = []

    def charge(count: int) -> None:
        charged.append(count)
        cluster.image.remove_topic("t")

    assert await cluster.admin.delete_topics(["t"], charge, timeout_ms=3_000) == {}
    assert charged == [1]


async def test_configs_are_changed_by_any_broker_and_hold_at_once(cluster: Cluster) -> None:
    cluster.controller.is_active = False
    cluster.show("t", [1])
    await cluster.settings.learn(["t"])
    await cluster.admin.alter_topic_config("t", lambda old: {**old, "retention.ms": "5"})
    assert (await cluster.node("/config/topics/t"))["config"] == {"retention.ms": "5"}
    assert [topic for topic, _ in cluster.logs.updates] == ["t"]
    await cluster.admin.alter_topic_config("t", lambda old: {**old, "segment.ms": "9"})
    assert (await cluster.node("/config/topics/t"))["config"] == {
        "retention.ms": "5",
        "segment.ms": "9",
    }
    work = cluster.admin.alter_topic_config("u", lambda old: old)
    assert await code_of(work) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
