"""Whole brokers of a cluster in virtual time: leaders, followers and the controller."""

import pytest

from broker.cluster.image import MetadataImage
from broker.world.journal_medium import JournalMedia
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.types import TopicPartition
from tests.support.broker_configs import altered, altered_topic
from tests.support.topic_requests import growth
from tests.support.whole_broker import LOG_DIR, WholeBroker
from tests.support.whole_cluster import SESSION_S, WholeCluster, whole_cluster


def leader(image: MetadataImage, topic: str, index: int = 0) -> int:
    found = image.topic(topic)
    return -1 if found is None else found.partitions[index].leader


def isr(image: MetadataImage, topic: str, index: int = 0) -> set[int]:
    found = image.topic(topic)
    return set() if found is None else set(found.partitions[index].isr)


@whole_cluster(3)
async def test_a_topic_is_on_all_its_replicas_and_every_broker_describes_it_alike(
    cluster: WholeCluster,
) -> None:
    assert await cluster.create_topic("t", [[1, 2, 3], [2, 3, 1]]) is ErrorCode.NONE
    assert await cluster.produce(1, "t", 0, "a", "b") is ErrorCode.NONE
    assert await cluster.produce(2, "t", 1, "c") is ErrorCode.NONE
    assert await cluster.produce(3, "t", 1, "c") is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [cluster.log_end(broker, "t", 0) for broker in (1, 2, 3)] == [2, 2, 2]
    assert [cluster.log_end(broker, "t", 1) for broker in (1, 2, 3)] == [1, 1, 1]
    for broker in cluster.brokers.values():
        client = broker.client()
        told = await client.call(ApiKey.METADATA, 9, MetadataRequest(topics=None))
        assert {one.node_id: one.host for one in told.brokers} == {1: "b1", 2: "b2", 3: "b3"}
        assert told.controller_id == 1
        [topic] = told.topics
        assert [one.leader_id for one in topic.partitions] == [1, 2]
        assert [one.isr_nodes for one in topic.partitions] == [[1, 2, 3], [2, 3, 1]]
        described = await client.call(ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest())
        assert described.controller_id == 1
        client.close()


@whole_cluster(3, min__insync__replicas="2")
async def test_after_the_death_of_a_leader_another_one_has_all_acknowledged_records(
    cluster: WholeCluster,
) -> None:
    await cluster.create_topic("t", [[2, 1, 3]])
    assert await cluster.produce(2, "t", 0, "a") is ErrorCode.NONE
    before = cluster.clock.monotonic()
    await cluster.kill(2)
    await cluster.until(lambda image: leader(image, "t") == 1)
    assert cluster.clock.monotonic() - before < SESSION_S + 1
    assert await cluster.produce(1, "t", 0, "b") is ErrorCode.NONE
    await cluster.restart(2)
    await cluster.until_whole()
    assert [cluster.log_end(broker, "t", 0) for broker in (1, 2, 3)] == [2, 2, 2]
    assert leader(cluster.images()[1], "t") == 1


@whole_cluster(3)
async def test_after_the_death_of_the_controller_another_one_takes_over(
    cluster: WholeCluster,
) -> None:
    await cluster.create_topic("t", [[1, 2, 3]])
    assert cluster.controller() == 1
    await cluster.kill(1)
    await cluster.until(lambda image: image.controller_id in (2, 3))
    await cluster.until(lambda image: leader(image, "t") == 2)
    assert await cluster.create_topic("u", [[2, 3]]) is ErrorCode.NONE
    await cluster.restart(1)
    await cluster.until_whole()
    epochs = {
        broker.server.components.cluster.fence.controller_epoch  # type: ignore[union-attr]
        for broker in cluster.brokers.values()
    }
    assert epochs == {2}


@whole_cluster(3)
async def test_a_broker_that_stops_hands_its_partitions_over_first(cluster: WholeCluster) -> None:
    await cluster.create_topic("t", [[3, 1, 2]])
    before = cluster.clock.monotonic()
    await cluster.stop(3)
    assert cluster.clock.monotonic() - before < 1
    image = cluster.images()[1]
    assert (leader(image, "t"), isr(image, "t")) == (1, {1, 2})
    assert await cluster.produce(1, "t", 0, "a") is ErrorCode.NONE
    await cluster.restart(3)
    await cluster.until_whole()
    assert cluster.log_end(3, "t", 0) == 1


@whole_cluster(3)
async def test_a_controller_that_stops_is_followed_by_another(cluster: WholeCluster) -> None:
    await cluster.create_topic("t", [[1, 2]])
    await cluster.stop(1)
    await cluster.until(lambda image: image.controller_id in (2, 3))
    await cluster.until(lambda image: leader(image, "t") == 2)


@whole_cluster(3)
async def test_a_session_that_ended_is_begun_anew_while_the_broker_serves(
    cluster: WholeCluster,
) -> None:
    await cluster.create_topic("t", [[1, 2, 3]])
    fence = cluster[1].server.components.cluster.fence  # type: ignore[union-attr]
    epoch = fence.broker_epoch
    cluster.tree_of(1).expire()
    # It may be the next controller, too.
    await cluster.until(lambda image: fence.broker_epoch > epoch and image.controller_id > 0)
    await cluster.until_whole()
    name = leader(cluster.images()[1], "t")
    assert await cluster.produce(name, "t", 0, "a") is ErrorCode.NONE


@whole_cluster(2)
async def test_others_leave_changes_of_topics_to_the_controller(cluster: WholeCluster) -> None:
    await cluster.create_topic("t", [[1, 2]])
    client, controllers = cluster[2].client(), cluster[1].client()
    refused = await client.call(ApiKey.CREATE_PARTITIONS, 2, growth("t", 3))
    assert refused.results[0].error_code == ErrorCode.NOT_CONTROLLER
    grown = await controllers.call(ApiKey.CREATE_PARTITIONS, 2, growth("t", 3))
    assert grown.results[0].error_code == ErrorCode.NONE
    await cluster.until(lambda image: len(image.topic("t").partitions) == 3)  # type: ignore[union-attr]
    delete = DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000)
    refused = await client.call(ApiKey.DELETE_TOPICS, 4, delete)
    assert refused.responses[0].error_code == ErrorCode.NOT_CONTROLLER
    deleted = await controllers.call(ApiKey.DELETE_TOPICS, 4, delete)
    assert deleted.responses[0].error_code == ErrorCode.NONE
    await cluster.until(lambda image: image.topic("t") is None)
    while any(broker.server.log_manager.all_logs() for broker in cluster.brokers.values()):
        await cluster.clock.sleep(0.1)
    assert await cluster.create_topic("t", [[2, 1]]) is ErrorCode.NONE


@whole_cluster(3)
async def test_missing_topics_are_made_through_any_broker(cluster: WholeCluster) -> None:
    client = cluster[3].client()
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True
    )
    told = await client.call(ApiKey.METADATA, 9, request)
    assert told.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    await cluster.until(lambda image: leader(image, "t") > 0)
    told = await client.call(ApiKey.METADATA, 9, request)
    assert told.topics[0].error_code == ErrorCode.NONE
    find = FindCoordinatorRequest(key="g", key_type=0)
    found = await client.call(ApiKey.FIND_COORDINATOR, 3, find)
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    await cluster.until(lambda image: leader(image, "__consumer_offsets") > 0)
    found = await client.call(ApiKey.FIND_COORDINATOR, 3, find)
    assert found.error_code == ErrorCode.NONE
    assert found.node_id == leader(cluster.images()[1], "__consumer_offsets")


@whole_cluster(2)
async def test_producer_ids_of_two_brokers_are_different(cluster: WholeCluster) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    ids = set()
    for broker in cluster.brokers.values():
        client = broker.client()
        for _ in range(3):
            answer = await client.call(ApiKey.INIT_PRODUCER_ID, 3, request)
            assert answer.error_code == ErrorCode.NONE
            ids.add(answer.producer_id)
        client.close()
    assert len(ids) == 6


@whole_cluster(2)
async def test_configs_that_were_set_through_one_broker_hold_on_all(cluster: WholeCluster) -> None:
    await cluster.create_topic("t", [[1, 2]])
    await altered_topic(cluster[2], "t", retention__ms="77")
    await altered(cluster[2], background__threads="7")
    await cluster.until(lambda image: image.topic("t").config == {"retention.ms": "77"})  # type: ignore[union-attr]
    for broker in cluster.brokers.values():
        partition = broker.server.components.replica_manager.find(("t", 0))
        assert partition is not None
        assert partition.log.config.retention_ms == 77
        while broker.server.components.configs.current.background_threads != 7:
            await cluster.clock.sleep(0.1)


@whole_cluster(2)
async def test_configs_for_all_brokers_are_changed_through_each(cluster: WholeCluster) -> None:
    """At the same moment: no change is lost, though neither broker knows the other's yet."""
    for broker, name in ((1, "num.io.threads"), (2, "background.threads")):
        configs = cluster[broker].server.components.configs
        await cluster[broker].server._driver.run(
            configs.alter(lambda old, name=name: {**old, name: "7"}, for_cluster=True)  # type: ignore[misc]
        )
    for member in cluster.brokers.values():
        configs = member.server.components.configs
        while (configs.current.num_io_threads, configs.current.background_threads) != (7, 7):
            await cluster.clock.sleep(0.1)


@whole_cluster(3, log__dirs="/d,/e", min__insync__replicas="2")
async def test_others_lead_the_partitions_of_a_failed_disk_and_the_rest_stay(
    cluster: WholeCluster,
) -> None:
    await cluster.create_topic("t", [[1, 2, 3], [1, 2, 3]])
    for index in (0, 1):
        assert await cluster.produce(1, "t", index, "a") is ErrorCode.NONE
    logs = cluster[1].server.log_manager
    [lost] = [index for index in (0, 1) if logs.dir_of(TopicPartition("t", index)) == "/e"]
    cluster[1].disk.fail("pwritev", "/e/*", times=None)
    cluster[1].disk.fail("pwrite", "/e/*", times=None)
    assert await cluster.produce(1, "t", lost, "b") is ErrorCode.KAFKA_STORAGE_ERROR
    await cluster.until(lambda image: leader(image, "t", lost) == 2)
    await cluster.until(lambda image: isr(image, "t", lost) == {2, 3})
    assert await cluster.produce(2, "t", lost, "c") is ErrorCode.NONE
    assert leader(cluster.images()[1], "t", 1 - lost) == 1
    assert await cluster.produce(1, "t", 1 - lost, "d") is ErrorCode.NONE
    topic = cluster.images()[3].topic("t")
    assert topic is not None
    assert topic.partitions[lost].offline_replicas == (1,)


# ---- a member that stands alone

WITHOUT = "zookeeper.connect"
STORE = f"{LOG_DIR}/{JournalMedia.file_name}"


async def refusal(broker: WholeBroker) -> str:
    """Start a broker, which must not start and change nothing; return the reason."""
    files = set(broker.disk.list_dir(LOG_DIR))
    with pytest.raises(AssertionError):
        await broker.start()
    assert set(broker.disk.list_dir(LOG_DIR)) == files
    return str(broker.server.failure)


@whole_cluster(2)
async def test_a_member_does_not_stand_alone_by_mistake(cluster: WholeCluster) -> None:
    """Records that it took alone would be truncated when it is a member again."""
    await cluster.create_topic("t", [[1, 2]])
    assert await cluster.produce(1, "t", 0, "a") is ErrorCode.NONE
    await cluster.stop(1)
    connect = cluster[1].settings.pop(WITHOUT)
    assert "zookeeper.connect is not set" in await refusal(cluster[1])
    cluster[1].settings[WITHOUT] = connect
    await cluster.restart(1)
    await cluster.until_whole()


@whole_cluster(2)
async def test_a_broker_that_stood_alone_does_not_return(cluster: WholeCluster) -> None:
    await cluster.create_topic("t", [[1, 2]])
    await cluster.stop(1)
    cluster[1].disk.write_bytes(STORE, b"")
    told = await refusal(cluster[1])
    assert f"A broker without zookeeper.connect has used {LOG_DIR}" in told
    assert cluster[1].disk.read_bytes(STORE) == b""
