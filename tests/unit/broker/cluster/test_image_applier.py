"""Changes that another writer makes in the tree, perhaps a controller in another process, reach
replicas, image and coordinators by the watch alone."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
import trio
import trio.testing

from broker.cluster.image import NO_LEADER, PartitionImage
from broker.cluster.metadata_store import Create, Delete, Put, TreeOperation
from broker.cluster.topic_plan import NewTopic
from broker.cluster.tree_values import encode_config, encode_partition_state, encode_topic
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.errors import StorageError
from storage.waits import together
from tests.support.cluster_fakes import Cluster, FakeCoordinator
from tests.support.driving import RunWork

ALONE = PartitionImage(leader=0, leader_epoch=0, replicas=(0,), isr=(0,))
ELSEWHERE = PartitionImage(leader=9, leader_epoch=1, replicas=(9, 0), isr=(9, 0))
T = b"t" * 16


def states(name: str, partitions: Mapping[int, PartitionImage]) -> list[tuple[str, bytes]]:
    return [
        (f"/brokers/topics/{name}/partitions/{index}/state", encode_partition_state(one, 1))
        for index, one in partitions.items()
    ]


def creation(name: str, partitions: Mapping[int, PartitionImage], topic_id: bytes = T) -> list:
    return [
        Create(f"/brokers/topics/{name}", encode_topic(topic_id, partitions)),
        *(Create(*state) for state in states(name, partitions)),
    ]


async def write(cluster: Cluster, *operations: TreeOperation) -> None:
    """Write as another writer does, and let the applier catch up."""
    await cluster.store.apply(operations)
    await cluster.applier.catch_up()


async def test_whatever_is_written_is_applied_by_the_task(
    run_work: RunWork, cluster: Cluster
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_work, cluster.applier.run())
        await run_work(cluster.store.apply(creation("t", {0: ALONE, 1: ALONE})))
        await trio.testing.wait_all_tasks_blocked()
        topic = cluster.topic("t")
        assert topic.partitions == {0: ALONE, 1: ALONE}
        assert cluster.replicas.leading[TopicPartition("t", 1)][3] is True
        config = encode_config({"retention.ms": "7"})
        await run_work(cluster.store.create("/config/topics/t", config))
        await trio.testing.wait_all_tasks_blocked()
        assert cluster.controller.topic_config("t").retention_ms == 7
        assert cluster.log_configs.updates[-1][0] == "t"
        await run_work(cluster.store.create("/admin/delete_topics/t"))
        await trio.testing.wait_all_tasks_blocked()
        assert cluster.image.topic("t") is None
        assert cluster.replicas.leading == {}
        nursery.cancel_scope.cancel()


async def test_what_was_written_before_the_applier_looks_is_applied_together(
    cluster: Cluster,
) -> None:
    await cluster.store.apply(creation("t", {0: ALONE}))
    await cluster.store.apply([Delete("/brokers/topics/t", recursive=True)])
    await cluster.store.apply(creation("t", {0: ALONE, 1: ALONE}, b"u" * 16))
    await cluster.applier.catch_up()
    assert {tp: led[0] for tp, led in cluster.replicas.leading.items()} == {
        TopicPartition("t", 0): b"u" * 16,
        TopicPartition("t", 1): b"u" * 16,
    }
    assert cluster.replicas.deleted == []


async def test_a_topic_made_anew_under_its_name_is_deleted_first(cluster: Cluster) -> None:
    heard = cluster.applier.coordinators["t"] = FakeCoordinator()
    await write(cluster, *creation("t", {0: ALONE, 1: ALONE}))
    await write(
        cluster,
        Delete("/brokers/topics/t", recursive=True),
        *creation("t", {0: ALONE}, b"u" * 16),
    )
    assert cluster.replicas.deleted == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert cluster.replicas.leading[TopicPartition("t", 0)][0] == b"u" * 16
    assert len(cluster.replicas.leading) == 1
    assert heard.deleted == [("t",)]
    topic = cluster.topic("t")
    assert topic.topic_id == b"u" * 16


async def test_states_say_which_partitions_are_led_and_coordinators_hear_of_it(
    cluster: Cluster,
) -> None:
    own = cluster.applier.coordinators["t"] = FakeCoordinator()
    other = cluster.applier.coordinators["u"] = FakeCoordinator()
    await write(cluster, *creation("t", {0: ALONE, 1: ALONE, 2: ELSEWHERE}))
    assert own.elected == [(0, 0), (1, 0)]
    assert own.resigned == [2]
    assert TopicPartition("t", 2) not in cluster.replicas.leading
    await write(cluster, *(Put(*state) for state in states("t", {0: ELSEWHERE})))
    assert cluster.replicas.resigned == [TopicPartition("t", 0)]
    assert own.resigned == [2, 0]
    back = replace(ALONE, leader_epoch=2)
    await write(cluster, *(Put(*state) for state in states("t", {0: back, 2: ELSEWHERE})))
    topic_id, epoch, _, is_new = cluster.replicas.leading[TopicPartition("t", 0)]
    assert (topic_id, epoch, is_new) == (T, 2, False)
    assert own.elected == [(0, 0), (1, 0), (0, 2)]
    assert own.resigned == [2, 0]
    assert (other.elected, other.resigned) == ([], [])
    await write(cluster, Create("/admin/delete_topics/t"))
    assert own.deleted == other.deleted == [("t",)]


async def test_the_image_shows_a_topic_only_while_it_can_be_written_to(cluster: Cluster) -> None:
    shown: list[tuple[str, bool]] = []
    make, delete = cluster.replicas.make_leader, cluster.replicas.delete_partition

    def made(tp: TopicPartition, *how: object) -> None:
        shown.append(("made", cluster.image.topic("t") is not None))
        make(tp, *how)  # type: ignore[arg-type]

    def deleted(tp: TopicPartition) -> None:
        shown.append(("deleted", cluster.image.topic("t") is not None))
        delete(tp)

    class Coordinator(FakeCoordinator):
        def on_elected(self, partition: int, leader_epoch: int) -> None:
            shown.append(("elected", cluster.image.topic("t") is not None))

        def on_topics_deleted(self, topics: object) -> None:
            shown.append(("gone", cluster.image.topic("t") is not None))

    cluster.replicas.make_leader = made  # type: ignore[method-assign, assignment]
    cluster.replicas.delete_partition = deleted  # type: ignore[method-assign]
    cluster.applier.coordinators["t"] = Coordinator()
    await write(cluster, *creation("t", {0: ALONE}))
    await write(cluster, Create("/admin/delete_topics/t"))
    assert shown == [("made", False), ("elected", True), ("deleted", False), ("gone", False)]


async def test_a_partition_without_a_leader_is_not_tried_again_because_of_something_else(
    cluster: Cluster,
) -> None:
    cluster.replicas.fail[TopicPartition("t", 1)] = StorageError("/d", "gone")
    with pytest.raises(KafkaError):
        await cluster.controller.create_topic(NewTopic(name="t", partitions=2))
    cluster.replicas.fail.clear()
    await cluster.controller.alter_topic_config("t", lambda old: {"retention.ms": "1"})
    await cluster.controller.create_partitions("t", 3)
    topic = cluster.topic("t")
    assert [topic.partitions[index].leader for index in range(3)] == [0, NO_LEADER, 0]
    assert TopicPartition("t", 1) not in cluster.replicas.leading


async def test_what_is_refused_is_not_in_the_image_and_heard_by_who_asked(cluster: Cluster) -> None:
    refusal = KafkaError(ErrorCode.INVALID_CONFIG)
    await write(cluster, *creation("t", {0: ALONE}))
    cluster.replicas.fail[TopicPartition("t", 2)] = refusal
    grown = dict.fromkeys(range(3), ALONE)
    with cluster.applier.heard() as outcomes, cluster.applier.heard() as others:
        await write(
            cluster,
            Put("/brokers/topics/t", encode_topic(T, grown)),
            *creation("u", {0: ALONE}, b"u" * 16),
        )
    assert outcomes["t"].refused is refusal
    assert outcomes["u"].refused is None
    assert others == outcomes
    topic = cluster.topic("t")
    assert list(topic.partitions) == [0]
    assert list(cluster.replicas.leading) == [TopicPartition("t", 0), TopicPartition("u", 0)]
    await write(cluster, Put("/brokers/topics/t", encode_topic(T, {0: ALONE})))
    assert list(outcomes) == ["t", "u"]
    assert cluster.replicas.leading.keys() == {TopicPartition("t", 0), TopicPartition("u", 0)}


async def test_what_is_refused_of_somebody_elses_is_not_taken_back_by_the_controller(
    driven: None, cluster: Cluster
) -> None:
    cluster.replicas.fail[TopicPartition("theirs", 0)] = KafkaError(ErrorCode.INVALID_CONFIG)
    await together(
        cluster.controller.create_topic(NewTopic(name="ours")),
        cluster.store.apply(creation("theirs", {0: ALONE})),
    )
    await cluster.applier.catch_up()
    assert cluster.image.topic("ours") is not None
    assert cluster.image.topic("theirs") is None
    assert await cluster.store.get("/brokers/topics/theirs") is not None


async def test_each_hears_until_its_own_block_ends(cluster: Cluster) -> None:
    with cluster.applier.heard() as outer:
        with cluster.applier.heard() as inner:
            pass
        await write(cluster, *creation("t", {0: ALONE}))
    assert (list(outer), list(inner)) == (["t"], [])


async def test_what_a_writer_heard_of_and_did_not_have_applied_is_applied_by_the_task(
    run_work: RunWork, cluster: Cluster
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_work, cluster.applier.run())
        await trio.testing.wait_all_tasks_blocked()
        with cluster.applier.heard() as outcomes:
            await run_work(cluster.store.apply(creation("t", {0: ALONE})))
            await trio.testing.wait_all_tasks_blocked()
            assert outcomes == {}
        await trio.testing.wait_all_tasks_blocked()
        assert cluster.image.topic("t") is not None
        nursery.cancel_scope.cancel()


async def test_a_partition_that_the_topic_has_no_more_is_served_no_more_and_its_log_stays(
    cluster: Cluster,
) -> None:
    own = cluster.applier.coordinators["t"] = FakeCoordinator()
    await write(cluster, *creation("t", {0: ALONE, 1: ALONE}))
    await write(cluster, Put("/brokers/topics/t", encode_topic(T, {0: ALONE})))
    assert cluster.replicas.resigned == [TopicPartition("t", 1)]
    assert cluster.replicas.deleted == []
    assert own.resigned == [1]


async def test_a_node_that_cannot_be_read_holds_up_nothing_else(cluster: Cluster) -> None:
    with cluster.applier.heard() as outcomes:
        await write(cluster, Create("/brokers/topics/bad", b"?"), *creation("t", {0: ALONE}))
    assert "cannot be read" in str(outcomes["bad"].refused)
    assert cluster.image.topic("bad") is None
    assert cluster.image.topic("t") is not None


async def test_a_bug_that_nobody_asked_for_ends_the_task(cluster: Cluster) -> None:
    cluster.replicas.fail[TopicPartition("t", 0)] = ValueError("a bug")
    await cluster.store.apply(creation("t", {0: ALONE}))
    with pytest.raises(ValueError, match="a bug"):
        await cluster.applier.run()


async def test_a_marked_topic_does_not_come_back_by_a_change_of_its_other_nodes(
    cluster: Cluster,
) -> None:
    await write(cluster, *creation("t", {0: ALONE}), Create("/admin/delete_topics/t"))
    assert cluster.replicas.leading == {}
    await write(cluster, Create("/config/topics/t", encode_config({})))
    assert cluster.image.topic("t") is None
    assert cluster.replicas.leading == {}
    await write(cluster, Delete("/admin/delete_topics/t"))
    assert cluster.image.topic("t") is not None
