import errno
from pathlib import Path

import pytest
import trio
import trio.testing

from broker.cluster.image import NO_LEADER, PartitionImage
from broker.cluster.topic_plan import NewTopic
from broker.cluster.tree_values import encode_topic
from config.listener import Listener
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition, uuid_from_text
from storage.errors import OutOfResources, StorageError
from storage.waits import together
from tests.support.cluster_fakes import Cluster, FakeCoordinator, start_cluster
from tests.support.driving import RunWork

ALONE = PartitionImage(leader=0, leader_epoch=0, replicas=(0,), isr=(0,))


async def refused(code: ErrorCode, awaitable: object) -> str:
    with pytest.raises(KafkaError) as caught:
        await awaitable  # type: ignore[misc]
    assert caught.value.code == code
    return str(caught.value)


async def test_a_new_topic_is_stored_led_and_visible(cluster: Cluster) -> None:
    made = await cluster.controller.create_topic(
        NewTopic(name="t", partitions=2, config={"retention.ms": "5"})
    )
    assert cluster.image.topic("t") is made
    assert cluster.image.topic_by_id(made.topic_id) is made
    assert made.partitions[1] == ALONE
    topic_id, epoch, config, is_new = cluster.replicas.leading[TopicPartition("t", 1)]
    assert (topic_id, epoch, config.retention_ms, is_new) == (made.topic_id, 0, 5, True)
    value = await cluster.node("/brokers/topics/t")
    assert value["version"] == 3
    assert value["partitions"] == {"0": [0], "1": [0]}
    assert uuid_from_text(value["topic_id"]) == made.topic_id
    state = await cluster.node("/brokers/topics/t/partitions/1/state")
    alone = {"leader": 0, "leader_epoch": 0, "isr": [0]}
    assert state == {"version": 1, "controller_epoch": 1, **alone}
    config = await cluster.node("/config/topics/t")
    assert config == {"version": 1, "config": {"retention.ms": "5"}}


async def test_the_image_is_rebuilt_after_a_restart_with_new_leader_epochs(tmp_path: Path) -> None:
    path = str(tmp_path / "m.sqlite")
    cluster = await start_cluster(path)
    made = await cluster.controller.create_topic(
        NewTopic(name="t", partitions=12, config={"cleanup.policy": "compact"})
    )
    await cluster.store.close()
    again = await start_cluster(path)
    topic = again.topic("t")
    assert topic.topic_id == made.topic_id
    assert list(topic.partitions) == list(range(12))
    assert topic.config == {"cleanup.policy": "compact"}
    assert again.controller.topic_config("t").compact
    _, epoch, _, is_new = again.replicas.leading[TopicPartition("t", 3)]
    assert (epoch, is_new) == (1, False)
    await again.store.close()
    third = await start_cluster(path)
    assert third.replicas.leading[TopicPartition("t", 3)][1] == 2
    assert (await third.node("/controller"))["brokerid"] == 0


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250, "a/b"])
async def test_s_meta_1_illegal_names_are_refused(cluster: Cluster, name: str) -> None:
    await refused(
        ErrorCode.INVALID_TOPIC_EXCEPTION, cluster.controller.create_topic(NewTopic(name=name))
    )


async def test_s_meta_1_names_that_differ_by_dot_and_underscore_collide(cluster: Cluster) -> None:
    await cluster.controller.create_topic(NewTopic(name="a.b_c"))
    message = await refused(
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        cluster.controller.create_topic(NewTopic(name="a_b.c")),
    )
    assert message == "Topic 'a_b.c' collides with existing topic: a.b_c"
    await cluster.controller.create_topic(NewTopic(name="x" * 249))
    await cluster.controller.create_topic(NewTopic(name="ab.c"))


async def test_s_meta_2_counts_and_assignments() -> None:
    cluster = await start_cluster(num_partitions="3")
    create = cluster.controller.create_topic
    message = await refused(
        ErrorCode.INVALID_REPLICATION_FACTOR, create(NewTopic(name="t", replication_factor=2))
    )
    assert message == "Replication factor: 2 larger than available brokers: 1."
    for code, wish in (
        (ErrorCode.INVALID_REPLICATION_FACTOR, {"replication_factor": 0}),
        (ErrorCode.INVALID_PARTITIONS, {"partitions": 0}),
        (ErrorCode.INVALID_REQUEST, {"partitions": 1, "assignment": {0: (0,)}}),
        (ErrorCode.INVALID_REPLICA_ASSIGNMENT, {"assignment": {1: (0,)}}),
        (ErrorCode.INVALID_REPLICA_ASSIGNMENT, {"assignment": {0: (7,)}}),
        (ErrorCode.INVALID_REPLICA_ASSIGNMENT, {"assignment": {0: (0, 0)}}),
        (ErrorCode.INVALID_REPLICA_ASSIGNMENT, {"assignment": {0: ()}}),
    ):
        await refused(code, create(NewTopic(name="t", **wish)))
    assert len((await create(NewTopic(name="by-default"))).partitions) == 3
    manual = await create(NewTopic(name="manual", assignment={1: (0,), 0: (0,)}))
    assert list(manual.partitions) == [0, 1]
    await refused(ErrorCode.TOPIC_ALREADY_EXISTS, create(NewTopic(name="manual")))


async def test_s_cfg_4_bad_configs_are_refused_and_validate_only_changes_nothing(
    cluster: Cluster,
) -> None:
    create = cluster.controller.create_topic
    message = await refused(
        ErrorCode.INVALID_CONFIG, create(NewTopic(name="t", config={"no.such": "1"}))
    )
    assert message == "Unknown topic config name: no.such"
    for value in (None, "soon"):
        bad = NewTopic(name="t", config={"retention.ms": value})
        await refused(ErrorCode.INVALID_CONFIG, create(bad))
    planned = await create(NewTopic(name="t", partitions=4), validate_only=True)
    assert len(planned.partitions) == 4
    assert cluster.image.topic("t") is None
    assert cluster.replicas.leading == {}
    assert await cluster.store.children("/brokers/topics") == []
    made = await create(NewTopic(name="t"))
    await cluster.controller.create_partitions("t", 5, validate_only=True)
    alter = cluster.controller.alter_topic_config
    await alter("t", lambda old: {"retention.ms": "1"}, validate_only=True)
    wrong = alter("t", lambda old: {"retention.ms": "x"}, validate_only=True)
    await refused(ErrorCode.INVALID_CONFIG, wrong)
    assert cluster.image.topic("t") is made


async def test_concurrent_creations_of_one_topic_have_one_winner(
    driven: None, cluster: Cluster
) -> None:
    results: list[object] = []

    async def create() -> None:
        try:
            results.append(await cluster.controller.create_topic(NewTopic(name="t")))
        except KafkaError as error:
            results.append(error.code)

    async def ensure() -> None:
        results.append((await cluster.controller.ensure_topic("auto")).topic_id)

    await together(*(work() for _ in range(5) for work in (create, ensure)))
    assert results.count(ErrorCode.TOPIC_ALREADY_EXISTS) == 4
    assert len({result for result in results if isinstance(result, bytes)}) == 1


async def test_a_client_that_goes_away_does_not_leave_half_a_topic(
    run_work: RunWork, cluster: Cluster
) -> None:
    creation = cluster.controller.create_topic(NewTopic(name="t", partitions=30))
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_work, creation)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    topic = cluster.image.topic("t")
    assert (topic is None) == (await run_work(cluster.store.children("/brokers/topics")) == [])
    assert topic is None or len(cluster.replicas.leading) == 30


async def test_s_ret_8_a_deleted_topic_is_gone_and_can_be_made_again(cluster: Cluster) -> None:
    heard: list[tuple[str, ...]] = []
    cluster.applier.coordinators["own"] = FakeCoordinator(deleted=heard)
    first = await cluster.controller.create_topic(NewTopic(name="t", partitions=2))
    assert await cluster.controller.delete_topics(["t"]) == {}
    assert cluster.image.topic("t") is None
    assert cluster.image.topic_by_id(first.topic_id) is None
    assert cluster.replicas.deleted == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert cluster.replicas.forgotten == ["t"]
    assert heard == [("t",)]
    for path in ("/brokers/topics", "/config/topics", "/admin/delete_topics"):
        assert await cluster.store.children(path) == []
    gone = (await cluster.controller.delete_topics(["t"]))["t"]
    assert gone.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    again = await cluster.controller.create_topic(NewTopic(name="t"))
    assert again.topic_id != first.topic_id


async def test_a_deletion_that_was_interrupted_is_finished_at_the_next_start(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "m.sqlite")
    cluster = await start_cluster(path)
    await cluster.controller.create_topic(NewTopic(name="t", partitions=2))
    await cluster.store.create("/admin/delete_topics/t")
    await cluster.store.close()
    again = await start_cluster(path, lead=False)
    assert again.image.topic("t") is None
    await refused(ErrorCode.TOPIC_ALREADY_EXISTS, again.controller.create_topic(NewTopic(name="t")))
    await again.controller.lead()
    assert again.replicas.deleted == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert await again.store.children("/brokers/topics") == []
    assert await again.store.children("/admin/delete_topics") == []
    await again.controller.create_topic(NewTopic(name="t"))


async def test_s_meta_2_partitions_only_grow(cluster: Cluster) -> None:
    await cluster.controller.create_topic(NewTopic(name="t", partitions=2))
    grow = cluster.controller.create_partitions
    assert await refused(ErrorCode.INVALID_PARTITIONS, grow("t", 2)) == (
        "Topic already has 2 partition(s)."
    )
    await refused(ErrorCode.INVALID_PARTITIONS, grow("t", 1))
    await refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, grow("u", 1))
    await refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, grow("t", 4, [(0,)]))
    await refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, grow("t", 3, [(5,)]))
    await grow("t", 4, [(0,), (0,)])
    topic = cluster.topic("t")
    assert list(topic.partitions) == [0, 1, 2, 3]
    assert cluster.replicas.leading[TopicPartition("t", 3)][3] is True
    assert (await cluster.node("/brokers/topics/t"))["partitions"]["3"] == [0]
    assert (await cluster.node("/brokers/topics/t/partitions/3/state"))["leader"] == 0


async def test_s_cfg_5_a_config_change_reaches_the_logs_and_the_store(cluster: Cluster) -> None:
    await cluster.controller.create_topic(NewTopic(name="t", partitions=3))
    await cluster.controller.alter_topic_config("t", lambda old: {**old, "max.message.bytes": "77"})
    assert cluster.log_configs.updates[-1][1].max_message_bytes == 77
    assert cluster.topic("t").config == {"max.message.bytes": "77"}
    assert (await cluster.node("/config/topics/t"))["config"] == {"max.message.bytes": "77"}


async def test_s_grp_5_internal_topics_are_clamped_to_the_live_brokers(cluster: Cluster) -> None:
    offsets = await cluster.controller.ensure_topic("__consumer_offsets")
    assert offsets.is_internal
    assert len(offsets.partitions) == 50
    assert offsets.partitions[49].replicas == (0,)
    assert offsets.config == {
        "compression.type": "producer",
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
    }
    state = await cluster.controller.ensure_topic("__transaction_state")
    assert state.config["min.insync.replicas"] == "1"
    assert state.config["compression.type"] == "uncompressed"


async def test_a_partition_whose_disk_failed_has_no_leader_and_the_rest_serves_on() -> None:
    cluster = await start_cluster(lead=False)
    node = encode_topic(bytes(16), dict.fromkeys(range(3), ALONE))
    await cluster.store.create("/brokers/topics/t", node)
    await cluster.controller.load()
    cluster.replicas.fail[TopicPartition("t", 1)] = StorageError("/d", "gone")
    await cluster.controller.lead()
    topic = cluster.topic("t")
    assert [p.leader for p in topic.partitions.values()] == [0, -1, 0]
    assert topic.partitions[1].offline_replicas == (0,)
    assert (await cluster.controller.statistics()).offline_partitions_count == 1


@pytest.mark.parametrize(
    "error",
    [
        OutOfResources("/d", OSError(errno.EMFILE, "Too many open files")),
        ValueError("a bug, or a config that nobody checked"),
    ],
)
async def test_a_topic_that_cannot_be_opened_is_not_made(
    cluster: Cluster, error: Exception
) -> None:
    cluster.replicas.fail[TopicPartition("t", 1)] = error
    wish = NewTopic(name="t", partitions=3, config={"retention.ms": "7"})
    with pytest.raises(type(error)):
        await cluster.controller.create_topic(wish)
    assert cluster.image.topic("t") is None
    assert cluster.replicas.leading == {}
    assert await cluster.store.get("/brokers/topics/t") is None
    assert await cluster.store.children("/config/topics") == []
    cluster.replicas.fail.clear()
    assert len((await cluster.controller.create_topic(wish)).partitions) == 3


async def test_what_was_made_on_a_disk_that_failed_stays_and_is_no_success(
    cluster: Cluster,
) -> None:
    """A second directory of the partition, on another disk, would stop the next start."""
    cluster.replicas.fail[TopicPartition("t", 1)] = StorageError("/d", "gone")
    with pytest.raises(KafkaError, match="its disk failed") as refused:
        await cluster.controller.create_topic(NewTopic(name="t", partitions=3))
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    topic = cluster.topic("t")
    assert [topic.partitions[index].leader for index in range(3)] == [0, NO_LEADER, 0]
    assert await cluster.store.get("/brokers/topics/t") is not None
    cluster.replicas.fail[TopicPartition("t", 3)] = StorageError("/d", "gone")
    with pytest.raises(KafkaError, match="t-3 is made, but its disk failed"):
        await cluster.controller.create_partitions("t", 5)
    topic = cluster.topic("t")
    assert [topic.partitions[index].leader for index in (3, 4)] == [NO_LEADER, 0]


async def test_partitions_that_cannot_be_opened_are_not_added(cluster: Cluster) -> None:
    await cluster.controller.create_topic(NewTopic(name="t", partitions=2))
    shortage = OutOfResources("/d", OSError(errno.EMFILE, "Too many open files"))
    cluster.replicas.fail[TopicPartition("t", 3)] = shortage
    with pytest.raises(OutOfResources):
        await cluster.controller.create_partitions("t", 4)
    topic = cluster.topic("t")
    assert sorted(topic.partitions) == [0, 1]
    assert len(cluster.replicas.leading) == 2
    assert list((await cluster.node("/brokers/topics/t"))["partitions"]) == ["0", "1"]
    cluster.replicas.fail.clear()
    await cluster.controller.create_partitions("t", 4)
    assert len(cluster.replicas.leading) == 4


async def test_leading_goes_on_above_the_epochs_that_another_broker_left_in_a_log(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "metadata.sqlite")
    before = await start_cluster(path)
    await before.controller.create_topic(NewTopic(name="t", partitions=2))
    await before.store.close()
    cluster = await start_cluster(path, lead=False)
    cluster.log_configs.epochs[TopicPartition("t", 1)] = 41
    await cluster.controller.lead()
    topic = cluster.topic("t")
    assert [p.leader_epoch for p in topic.partitions.values()] == [1, 42]
    assert cluster.replicas.leading[TopicPartition("t", 1)][1] == 42
    assert (await cluster.node("/brokers/topics/t/partitions/1/state"))["leader_epoch"] == 42


async def test_the_broker_is_registered_with_the_ports_it_got(cluster: Cluster) -> None:
    bound = Listener(name="PLAINTEXT", host="127.0.0.1", port=4711, protocol="PLAINTEXT")
    await cluster.controller.register([bound])
    value = await cluster.node("/brokers/ids/0")
    assert value["endpoints"] == ["PLAINTEXT://127.0.0.1:4711"]
    assert (value["host"], value["port"], value["version"]) == ("127.0.0.1", 4711, 5)
