"""An image that follows the watch, however many changes it hears of at once, is the image that a
start would read; and the broker leads the partitions that the image shows."""

from hypothesis import given
from hypothesis import strategies as st

from broker.cluster.image import PartitionImage, TopicImage
from broker.cluster.metadata_store import Create, Delete, MetadataStoreError, Put, TreeOperation
from broker.cluster.tree_reader import read_topics
from broker.cluster.tree_values import encode_config, encode_partition_state, encode_topic
from protocol.types import TopicPartition
from storage.waits import at_once
from tests.support.cluster_fakes import Cluster, FakeCoordinator, start_cluster

NAMES = st.sampled_from(["t", "u"])
IDS = st.sampled_from([b"1" * 16, b"2" * 16])
STATES = st.builds(
    lambda leader, epoch: PartitionImage(
        leader=leader, leader_epoch=epoch, replicas=(0, 9), isr=(leader,)
    ),
    st.sampled_from([0, 9]),
    st.integers(0, 2),
)
CATCH_UP = "catch up"


def put_topic(name: str, topic_id: bytes, states: list[PartitionImage]) -> list[TreeOperation]:
    node = encode_topic(topic_id, dict(enumerate(states)))
    return [Create(f"/brokers/topics/{name}", node), Put(f"/brokers/topics/{name}", node)]


def put_state(name: str, index: int, partition: PartitionImage) -> list[TreeOperation]:
    path = f"/brokers/topics/{name}/partitions/{index}/state"
    value = encode_partition_state(partition, 1)
    return [Create(path, value), Put(path, value)]


def put_config(name: str, value: int) -> list[TreeOperation]:
    node = encode_config({"retention.ms": str(value)})
    return [Create(f"/config/topics/{name}", node), Put(f"/config/topics/{name}", node)]


CHANGES = st.one_of(
    st.just(CATCH_UP),
    st.builds(put_topic, NAMES, IDS, st.lists(STATES, min_size=1, max_size=3)),
    st.builds(put_state, NAMES, st.integers(0, 2), STATES),
    st.builds(put_config, NAMES, st.integers(1, 2)),
    NAMES.map(lambda name: [Delete(f"/brokers/topics/{name}", recursive=True)]),
    NAMES.map(lambda name: [Delete(f"/config/topics/{name}", recursive=True)]),
    NAMES.map(lambda name: [Create(f"/admin/delete_topics/{name}")]),
    NAMES.map(lambda name: [Delete(f"/admin/delete_topics/{name}", recursive=True)]),
)


async def as_a_start_reads(cluster: Cluster) -> dict[str, TopicImage]:
    marked = await cluster.store.children("/admin/delete_topics")
    return {
        topic.name: topic for topic in await read_topics(cluster.store) if topic.name not in marked
    }


def led(topics: dict[str, TopicImage]) -> dict[TopicPartition, tuple[bytes, int]]:
    return {
        TopicPartition(topic.name, index): (topic.topic_id, partition.leader_epoch)
        for topic in topics.values()
        for index, partition in topic.partitions.items()
        if partition.leader == 0
    }


@given(st.lists(CHANGES, max_size=25))
def test_the_image_becomes_what_the_tree_says(changes: list) -> None:
    async def scenario() -> None:
        cluster = await start_cluster()
        coordinator = cluster.applier.coordinators["t"] = FakeCoordinator()
        for change in [*changes, CATCH_UP]:
            if change != CATCH_UP:
                for operation in change:  # one of them fits
                    topic = operation.path.partition("/partitions/")[0]
                    if topic != operation.path and await cluster.store.get(topic) is None:
                        break  # a state without a topic
                    try:
                        await cluster.store.apply([operation])
                        break
                    except MetadataStoreError:
                        pass
                continue
            coordinator.elected.clear()
            await cluster.applier.catch_up()
            expected = await as_a_start_reads(cluster)
            assert {topic.name: topic for topic in cluster.image.topics()} == expected
            wanted = led(expected)
            assert {tp: one[:2] for tp, one in cluster.replicas.leading.items()} == wanted
            for index, epoch in coordinator.elected:
                assert wanted[TopicPartition("t", index)][1] == epoch
        await cluster.store.close()

    at_once(scenario())
