"""UpdateMetadata (key 6): the controller tells this broker what its clients ask it about.

In a cluster only; between brokers.

Behaviour
* STALE_BROKER_EPOCH for a request to an earlier registration of this broker, and
  STALE_CONTROLLER_EPOCH from a controller that has been succeeded: nothing is done.
* The live brokers are those of the request; a partition with leader -2 is being deleted; partitions
  that are not named stay as they are (`broker.membership.metadata_updates`).

Version notes
* v0 has one address per broker, of a PLAINTEXT listener; before v3 a listener has the name of its
  security protocol.
* v0-v4 list partitions, v5+ topics; v7+ have topic ids.
"""

from typing import Final

from broker.api_facts import MOST_OF_BROKERS, Api, CodeAlone
from broker.cluster.image import BrokerImage, PartitionImage
from broker.cluster.leader_and_isr import LEADER_DURING_DELETE
from broker.membership.metadata_updates import MetadataUpdates
from broker.membership.orders import MetadataUpdate, Sender, TopicStates, partition_states
from broker.quotas.throttle import Charged
from broker.request import RequestContext
from broker.security.access import CLUSTER_ACTION
from config.listener import SECURITY_PROTOCOLS, Listener
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.UPDATE_METADATA,
    versions=(0, 8),
    charged=Charged.NOTHING,
    most_of_brokers=MOST_OF_BROKERS,
    # KafkaApis.handleUpdateMetadataRequest
    accesses=(CLUSTER_ACTION,),
    make=lambda s: UpdateMetadataHandler(s.in_cluster.metadata_updates),
)

FIRST_VERSION_WITH_LISTENERS: Final = 3


class UpdateMetadataHandler(CodeAlone):
    """Has the image changed."""

    response = UpdateMetadataResponse

    def __init__(self, updates: MetadataUpdates) -> None:
        self._updates = updates

    async def __call__(
        self, ctx: RequestContext, request: UpdateMetadataRequest
    ) -> UpdateMetadataResponse:
        """The response, when the image shows it. Raises KafkaError."""
        topics: dict[str, TopicStates] = {}
        for name, topic_id, state in partition_states(request):
            states = topics.get(name)
            if states is None:
                states = topics[name] = TopicStates(topic_id=topic_id)
            states.partitions[state.partition_index] = _partition(state)
            await PAUSE
        brokers = {one.id: _broker(ctx.api_version, one) for one in request.live_brokers}
        await self._updates.obey(
            Sender(request.controller_id, request.controller_epoch, request.broker_epoch),
            MetadataUpdate(brokers=brokers, topics=topics),
        )
        return UpdateMetadataResponse(error_code=ErrorCode.NONE)


def _partition(state: UpdateMetadataPartitionState) -> PartitionImage | None:
    if state.leader == LEADER_DURING_DELETE:
        return None
    return PartitionImage(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        replicas=tuple(state.replicas),
        isr=tuple(state.isr),
        offline_replicas=tuple(state.offline_replicas),
        partition_epoch=state.zk_version,
    )


def _broker(version: int, told: UpdateMetadataBroker) -> BrokerImage:
    """A live broker. Raises KafkaError INVALID_REQUEST for a security protocol that is none."""
    if version == 0:
        plain = SECURITY_PROTOCOLS[0]
        endpoints: tuple[Listener, ...] = (
            Listener(name=plain, host=told.v0_host, port=told.v0_port, protocol=plain),
        )
    else:
        endpoints = tuple(_endpoint(version, endpoint) for endpoint in told.endpoints)
    return BrokerImage(broker_id=told.id, endpoints=endpoints, rack=told.rack)


def _endpoint(version: int, told: UpdateMetadataEndpoint) -> Listener:
    if not 0 <= told.security_protocol < len(SECURITY_PROTOCOLS):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"No security protocol is {told.security_protocol}."
        )
    protocol = SECURITY_PROTOCOLS[told.security_protocol]
    name = told.listener if version >= FIRST_VERSION_WITH_LISTENERS else protocol
    return Listener(name=name, host=told.host, port=told.port, protocol=protocol)
