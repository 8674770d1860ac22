"""A whole broker follows all writers of the metadata tree, and a start makes up for a death between
the tree and its logs."""

from broker.cluster.image import PartitionImage
from broker.cluster.metadata_store import Create, Put, TreeOperation
from broker.cluster.tree_values import encode_config, encode_partition_state, encode_topic
from storage.waits import Work, at_once
from tests.support.whole_broker import LOG_DIR, WholeBroker, whole_broker
from tests.whole.plain import fetched, produced

ALONE = PartitionImage(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
TOPIC_ID = b"0123456789abcdef"


def topic_nodes(name: str, partitions: range) -> list[TreeOperation]:
    return [
        Create(f"/brokers/topics/{name}", encode_topic(TOPIC_ID, dict.fromkeys(partitions, ALONE))),
        *(state(name, index) for index in partitions),
    ]


def state(name: str, index: int) -> Create:
    path = f"/brokers/topics/{name}/partitions/{index}/state"
    return Create(path, encode_partition_state(ALONE, 1))


async def write(broker: WholeBroker, change: Work[None]) -> None:
    await broker.server.components.requests.driver.run(change)


def stop_watching(broker: WholeBroker) -> None:
    """Take the broker's watches away, so that it does not act on the next writes of the tree."""
    broker.server.store._watchers.clear()


def directories(broker: WholeBroker, name: str) -> list[str]:
    return [found for found in broker.disk.list_dir(LOG_DIR) if found.startswith(f"{name}-")]


@whole_broker()
async def test_a_topic_that_another_controller_writes_is_served(broker: WholeBroker) -> None:
    client, store = broker.client(), broker.server.store
    await write(broker, store.apply(topic_nodes("t", range(2))))
    await broker.clock.sleep(1)
    assert await produced(client, "t-1", "a") == 0
    grown = encode_topic(TOPIC_ID, dict.fromkeys(range(3), ALONE))
    await write(broker, store.apply([Put("/brokers/topics/t", grown), state("t", 2)]))
    await write(broker, store.create("/config/topics/t", encode_config({"segment.ms": "77"})))
    await broker.clock.sleep(1)
    assert await produced(client, "t-2", "b") == 0
    log = broker.server.components.replica_manager.find(("t", 1))
    assert log is not None
    assert log.log.config.segment_ms == 77
    await write(broker, store.create("/admin/delete_topics/t"))
    await broker.clock.sleep(120)
    assert broker.server.components.image.topic("t") is None
    assert directories(broker, "t") == []
    assert await broker.stop()


@whole_broker()
async def test_a_topic_that_was_written_and_not_opened_is_opened_by_the_next_start(
    broker: WholeBroker,
) -> None:
    await broker.create_topic("old")
    stop_watching(broker)
    await write(broker, broker.server.store.apply(topic_nodes("t", range(2))))
    await broker.clock.sleep(1)
    assert directories(broker, "t") == []
    broker.lose_power()
    await broker.start()
    client = broker.client()
    assert await produced(client, "t-1", "a") == 0
    assert await fetched(client, "t-0") == []
    assert len(directories(broker, "t")) == 2


@whole_broker()
async def test_a_topic_that_was_marked_and_not_deleted_is_deleted_by_the_next_start(
    broker: WholeBroker,
) -> None:
    await broker.create_topic("t", 2)
    assert await produced(broker.client(), "t-1", "a") == 0
    stop_watching(broker)
    await write(broker, broker.server.store.create("/admin/delete_topics/t"))
    await broker.clock.sleep(1)
    assert len(directories(broker, "t")) == 2
    broker.kill()
    await broker.start()
    assert broker.server.components.image.topic("t") is None
    assert at_once(broker.server.store.children("/brokers/topics")) == []
    await broker.clock.sleep(120)
    assert directories(broker, "t") == []
    await broker.create_topic("t", 1)
    assert await fetched(broker.client(), "t-0") == []
