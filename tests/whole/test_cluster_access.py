"""Brokers of a cluster authenticate, and only brokers may give orders to brokers."""

from broker.cluster.tree_values import decode_features
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from protocol.messages.alter_partition import AlterPartitionRequest
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.controlled_shutdown import ControlledShutdownRequest
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest
from tests.support.sasl_client import JAAS
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.support.whole_cluster import WholeCluster, whole_cluster

LOGIN = 'username="broker" password="broker-secret" user_broker="broker-secret"'
SECURE = {
    "listeners": "PLAINTEXT://HOST:9092,BETWEEN://HOST:9093",
    "listener__security__protocol__map": "PLAINTEXT:PLAINTEXT,BETWEEN:SASL_PLAINTEXT",
    "inter__broker__listener__name": "BETWEEN",
    "sasl__mechanism__inter__broker__protocol": "PLAIN",
    "sasl__enabled__mechanisms": "PLAIN",
    "listener__name__between__plain__sasl__jaas__config": (
        f"{JAAS.format('plain.Plain')} {LOGIN};"
    ),
    "authorizer__class__name": "kafka.security.authorizer.AclAuthorizer",
    "super__users": "User:broker",
}
ORDERS = {
    ApiKey.LEADER_AND_ISR: (7, LeaderAndIsrRequest(controller_id=9, controller_epoch=99)),
    ApiKey.STOP_REPLICA: (4, StopReplicaRequest(controller_id=9, controller_epoch=99)),
    ApiKey.UPDATE_METADATA: (8, UpdateMetadataRequest(controller_id=9, controller_epoch=99)),
    ApiKey.CONTROLLED_SHUTDOWN: (3, ControlledShutdownRequest(broker_id=2)),
    ApiKey.ALTER_PARTITION: (3, AlterPartitionRequest(broker_id=2)),
    ApiKey.ALLOCATE_PRODUCER_IDS: (0, AllocateProducerIdsRequest(broker_id=2)),
}


@whole_cluster(2, **SECURE)
async def test_only_brokers_give_orders_to_brokers(cluster: WholeCluster) -> None:
    """The cluster runs, so the brokers were let in; a client without a login is refused."""
    client = cluster[1].client()
    for key, (version, request) in ORDERS.items():
        answer = await client.call(key, version, request)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED, key
    image = cluster.images()[1]
    assert image.controller_id in (1, 2)
    assert [broker.broker_id for broker in image.brokers()] == [1, 2]


@whole_broker()
async def test_a_stand_alone_broker_knows_no_orders(broker: WholeBroker) -> None:
    client = broker.client()
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = await client.call(ApiKey.API_VERSIONS, 3, request)
    assert ORDERS.keys().isdisjoint({one.api_key for one in answer.api_keys})


@whole_cluster(1)
async def test_a_member_tells_of_its_orders_and_of_no_finalized_feature(
    cluster: WholeCluster,
) -> None:
    client = cluster[1].client()
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = await client.call(ApiKey.API_VERSIONS, 3, request)
    assert ORDERS.keys() <= {one.api_key for one in answer.api_keys}
    assert answer.finalized_features_epoch == -1
    assert not answer.finalized_features
    node = cluster.zookeeper.nodes.get("/feature")
    assert node is not None
    assert decode_features(node.value) == {}
