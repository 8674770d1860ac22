import dataclasses

import pytest

from broker.api.metadata import API, MetadataHandler
from broker.cluster.image import BrokerImage, PartitionImage, TopicImage
from broker.cluster.topic_plan import NewTopic
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.types import ZERO_UUID
from tests.support.api_calls import CONNECTION, NO_QUOTAS, acall
from tests.support.cluster_fakes import Cluster, start_cluster

KEY = ApiKey.METADATA
NOT_ASKED = -(1 << 31)
LATEST = API.versions[1]


def handler_of(cluster: Cluster) -> MetadataHandler:
    return MetadataHandler(cluster.image, cluster.config, cluster.controller, NO_QUOTAS)


@pytest.fixture
def handler(cluster: Cluster) -> MetadataHandler:
    return handler_of(cluster)


def names(*topics: str, create: bool = False, **options: bool) -> object:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=create,
        **options,
    )


def codes(response: object) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", range(API.versions[0], LATEST + 1))
async def test_every_version_describes_the_cluster(
    handler: MetadataHandler, cluster: Cluster, version: int
) -> None:
    made = await cluster.controller.create_topic(NewTopic(name="t", partitions=2))
    await cluster.controller.ensure_topic("__transaction_state")
    everything = MetadataRequest(topics=None if version else [])
    response = await acall(handler, KEY, version, everything)
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (0, "127.0.0.1", 9092)
    assert codes(response) == {"t": 0, "__transaction_state": 0}
    topic = next(topic for topic in response.topics if topic.name == "t")
    assert [p.partition_index for p in topic.partitions] == [0, 1]
    partition = topic.partitions[0]
    assert (partition.error_code, partition.leader_id) == (0, 0)
    assert (list(partition.replica_nodes), list(partition.isr_nodes)) == ([0], [0])
    if version >= 1:
        assert response.controller_id == 0
        internal = {topic.name: topic.is_internal for topic in response.topics}
        assert internal == {"t": False, "__transaction_state": True}
    if version >= 2:
        assert response.cluster_id == "c" * 22
    if version >= 7:
        assert partition.leader_epoch == 0
    if version >= 8:
        assert topic.topic_authorized_operations == NOT_ASKED
        assert response.cluster_authorized_operations == NOT_ASKED
    if version >= 10:
        assert topic.topic_id == made.topic_id


async def test_s_meta_1_null_means_all_and_an_empty_list_none(
    handler: MetadataHandler, cluster: Cluster
) -> None:
    await cluster.controller.create_topic(NewTopic(name="t"))
    for version in range(1, LATEST + 1):
        assert codes(await acall(handler, KEY, version, MetadataRequest(topics=None))) == {"t": 0}
        nothing = await acall(handler, KEY, version, MetadataRequest(topics=[]))
        assert codes(nothing) == {}
        assert len(nothing.brokers) == 1
    assert codes(await acall(handler, KEY, 0, MetadataRequest(topics=[]))) == {"t": 0}


async def test_s_meta_1_auto_creation_only_when_request_and_broker_allow_it(
    handler: MetadataHandler,
) -> None:
    handler = handler_of(await start_cluster(num_partitions="3"))
    refused = await acall(handler, KEY, 4, names("a"))
    assert codes(refused) == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    made = await acall(handler, KEY, 4, names("a", create=True))
    assert codes(made) == {"a": 0}
    assert len(made.topics[0].partitions) == 3
    # Before v4 the request cannot say, and the broker's configuration decides.
    assert codes(await acall(handler, KEY, 3, names("b", create=True))) == {"b": 0}
    assert codes(await acall(handler, KEY, 0, names("c", create=True))) == {"c": 0}
    off = await start_cluster(auto_create_topics_enable="false")
    for version in (0, 4, LATEST):
        response = await acall(handler_of(off), KEY, version, names("a", create=True))
        assert codes(response) == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert list(off.image.topics()) == []


async def test_s_meta_1_auto_creation_that_is_refused_says_why() -> None:
    handler = handler_of(await start_cluster(default_replication_factor="3"))
    response = await acall(handler, KEY, 9, names("fine", "b@d", "", create=True))
    assert codes(response) == {
        "fine": ErrorCode.INVALID_REPLICATION_FACTOR,
        "b@d": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    response = await acall(handler, KEY, 9, names("b@d"))
    assert codes(response) == {"b@d": ErrorCode.INVALID_TOPIC_EXCEPTION}


async def test_the_group_topic_is_auto_created_as_such(handler: MetadataHandler) -> None:
    response = await acall(handler, KEY, 9, names("__consumer_offsets", create=True))
    assert response.topics[0].is_internal
    assert len(response.topics[0].partitions) == 50


async def test_a_topic_named_twice_is_described_once(handler: MetadataHandler) -> None:
    response = await acall(handler, KEY, 9, names("t", "t", create=True))
    assert [topic.name for topic in response.topics] == ["t"]


async def test_by_id_from_v12(handler: MetadataHandler, cluster: Cluster) -> None:
    made = await cluster.controller.create_topic(NewTopic(name="t"))
    by_id = MetadataRequest(
        topics=[
            MetadataRequestTopic(name=None, topic_id=made.topic_id),
            MetadataRequestTopic(name=None, topic_id=b"?" * 16),
        ]
    )
    for version in (12, 13):
        response = await acall(handler, KEY, version, by_id)
        assert codes(response) == {"t": 0, None: ErrorCode.UNKNOWN_TOPIC_ID}
        unknown = next(topic for topic in response.topics if topic.name is None)
        assert unknown.topic_id == b"?" * 16


async def test_ids_and_null_names_are_an_invalid_request_before_v12(
    handler: MetadataHandler,
) -> None:
    for version in (10, 11):
        for topic in (
            MetadataRequestTopic(name="t", topic_id=b"x" * 16),
            MetadataRequestTopic(name=None),
        ):
            response = await acall(handler, KEY, version, MetadataRequest(topics=[topic]))
            assert [t.error_code for t in response.topics] == [ErrorCode.INVALID_REQUEST]
    neither = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=ZERO_UUID)])
    response = await acall(handler, KEY, 13, neither)
    assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_authorized_operations_when_asked(handler: MetadataHandler, cluster: Cluster) -> None:
    await cluster.controller.create_topic(NewTopic(name="t"))
    asked = names(
        "t",
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    for version in (8, 9, 10):
        response = await acall(handler, KEY, version, asked)
        assert response.topics[0].topic_authorized_operations == 0xDF8
        assert response.cluster_authorized_operations == 0x1FA0


async def test_clients_are_told_the_address_they_connected_to() -> None:
    handler = handler_of(await start_cluster(listeners="PLAINTEXT://:0"))
    for host, told in (("10.1.2.3", "10.1.2.3"), ("::ffff:10.1.2.3", "10.1.2.3"), ("::1",) * 2):
        connection = dataclasses.replace(CONNECTION, local_host=host, local_port=4711)
        response = await acall(handler, KEY, 9, names(), connection=connection)
        assert (response.brokers[0].host, response.brokers[0].port) == (told, 4711)


async def test_advertised_listeners_by_the_listener_of_the_client(
    handler: MetadataHandler, cluster: Cluster
) -> None:
    cluster.image.set_broker(
        BrokerImage(
            broker_id=0,
            rack="r1",
            endpoints=(
                Listener(name="PLAINTEXT", host="inside", port=1, protocol="PLAINTEXT"),
                Listener(name="OUTSIDE", host="outside", port=0, protocol="PLAINTEXT"),
            ),
        )
    )
    await cluster.controller.create_topic(NewTopic(name="t"))
    response = await acall(handler, KEY, 9, names())
    assert (response.brokers[0].host, response.brokers[0].port) == ("inside", 1)
    assert response.brokers[0].rack == "r1"
    outside = dataclasses.replace(CONNECTION, listener_name="OUTSIDE", local_port=77)
    response = await acall(handler, KEY, 9, names(), connection=outside)
    assert (response.brokers[0].host, response.brokers[0].port) == ("outside", 77)
    third = dataclasses.replace(CONNECTION, listener_name="THIRD")
    response = await acall(handler, KEY, 6, names("t"), connection=third)
    assert list(response.brokers) == []
    assert response.topics[0].partitions[0].error_code == ErrorCode.LISTENER_NOT_FOUND
    assert response.topics[0].partitions[0].leader_id == -1
    response = await acall(handler, KEY, 5, names("t"), connection=third)
    assert response.topics[0].partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


async def test_a_partition_without_leader_says_so(
    handler: MetadataHandler, cluster: Cluster
) -> None:
    partition = PartitionImage(
        leader=-1, leader_epoch=3, replicas=(0,), isr=(0,), offline_replicas=(0,)
    )
    cluster.image.set_topic(TopicImage(name="t", topic_id=b"t" * 16, partitions={0: partition}))
    response = await acall(handler, KEY, 9, names("t"))
    (described,) = response.topics[0].partitions
    assert described.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert list(described.offline_replicas) == [0]


@pytest.mark.parametrize(
    ("leader", "isr", "code"),
    [
        (0, (0,), ErrorCode.REPLICA_NOT_AVAILABLE),
        (0, (0, 7), ErrorCode.REPLICA_NOT_AVAILABLE),
        (7, (7,), ErrorCode.LEADER_NOT_AVAILABLE),
    ],
)
async def test_version_0_names_living_replicas_only(
    handler: MetadataHandler,
    cluster: Cluster,
    leader: int,
    isr: tuple[int, ...],
    code: ErrorCode,
) -> None:
    """Its clients know no offline replicas, and look up every broker that is named."""
    partition = PartitionImage(
        leader=leader, leader_epoch=3, replicas=(7, 0), isr=isr, offline_replicas=(7,)
    )
    cluster.image.set_topic(TopicImage(name="t", topic_id=b"t" * 16, partitions={0: partition}))
    (described,) = (await acall(handler, KEY, 0, names("t"))).topics[0].partitions
    assert described.error_code == code
    assert list(described.replica_nodes) == [0]
    assert list(described.isr_nodes) == [one for one in isr if one == 0]
    (described,) = (await acall(handler, KEY, 1, names("t"))).topics[0].partitions
    assert described.error_code == (code if leader == 7 else ErrorCode.NONE)
    assert (list(described.replica_nodes), list(described.isr_nodes)) == ([7, 0], list(isr))


async def test_version_0_knows_a_partition_whose_replicas_all_live(
    handler: MetadataHandler, cluster: Cluster
) -> None:
    await cluster.controller.create_topic(NewTopic(name="t"))
    (described,) = (await acall(handler, KEY, 0, names("t"))).topics[0].partitions
    assert (described.error_code, list(described.replica_nodes)) == (ErrorCode.NONE, [0])


async def test_the_name_of_kafkas_metadata_log_is_never_created(handler: MetadataHandler) -> None:
    response = await acall(handler, KEY, 9, names("__cluster_metadata", "t", create=True))
    assert codes(response) == {
        "__cluster_metadata": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "t": ErrorCode.NONE,
    }


async def test_what_is_kept_of_a_topic_is_told_only_to_those_who_ask_alike(
    handler: MetadataHandler, cluster: Cluster
) -> None:
    await cluster.controller.create_topic(NewTopic(name="t", partitions=3))
    third = dataclasses.replace(CONNECTION, listener_name="THIRD")
    broker = BrokerImage(
        broker_id=0,
        endpoints=(Listener(name="PLAINTEXT", host="h", port=1, protocol="PLAINTEXT"),),
    )
    cluster.image.set_broker(broker)
    asked = [
        (version, connection, names("t", include_topic_authorized_operations=operations))
        for version in (9, 12, 9)
        for connection in (CONNECTION, third)
        for operations in (False, True)
    ]
    for version, connection, request in asked:
        topic = cluster.image.topic("t")
        assert topic is not None
        seen = await acall(handler, KEY, version, request, connection=connection)
        assert len(topic.encoded) <= 4
        cluster.image.set_topic(dataclasses.replace(topic))
        fresh = await acall(handler, KEY, version, request, connection=connection)
        assert seen == fresh
        cluster.image.set_topic(topic)


async def test_what_is_kept_of_a_topic_goes_when_the_topic_changes(
    handler: MetadataHandler, cluster: Cluster
) -> None:
    await cluster.controller.create_topic(NewTopic(name="t"))
    for count in (2, 300):
        assert len((await acall(handler, KEY, 9, names("t"))).topics[0].partitions) < count
        await cluster.controller.create_partitions("t", count)
        (topic,) = (await acall(handler, KEY, 9, names("t"))).topics
        assert [one.partition_index for one in topic.partitions] == list(range(count))
    topic = cluster.image.topic("t")
    assert topic is not None
    before = dict(topic.encoded)
    assert (await acall(handler, KEY, 9, names("t"))).topics[0].error_code == 0
    assert all(topic.encoded[form] is kept for form, kept in before.items())  # not made anew
