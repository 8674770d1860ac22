"""The messages that brokers must get after a step of the controller.

A step notes its changes: LeaderAndIsr for replicas, UpdateMetadata for every broker, StopReplica.
`requests` makes the messages at its end, in the order in which a broker must get them: leaders
first, then the metadata that clients see, then the replicas to be stopped. The rules:

* Only registered brokers get requests, each with the epoch of its registration, so that a broker
  refuses a request which was meant for its previous life.
* A LeaderAndIsr also changes what clients see: UpdateMetadata goes to every broker with it.
* In metadata a topic that is being deleted has the leader -2, in the leader epoch 0 and the
  partition epoch 0, so that brokers forget it. In StopReplica its leader epoch is -2, which
  overrides any.
* A partition without a state node has no leader to send: LeaderAndIsr and UpdateMetadata lack it.
* `is_new` says that a replica may be made even while a log directory is offline; set once in a
  step it stays. So does the wish to delete.

All brokers get the same partitions in UpdateMetadata, so these are built once and encoded once. The
requests are split: for a broker that parses them, one of 200,000 partitions is a long standstill.
Only the first LeaderAndIsr to a registration is whole, because Kafka's brokers begin to write their
high watermarks with it, and those of partitions that come later are lost.

Sources: `kafka.controller.AbstractControllerBrokerRequestBatch`,
`ControllerBrokerRequestBatch` (3.9, at the inter-broker protocol 3.9).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from broker.cluster.leader_and_isr import LEADER_DURING_DELETE
from broker.controller.cluster_state import ControllerState, LiveBroker
from broker.controller.forgetting import forgotten
from config.listener import SECURITY_PROTOCOLS, Listener
from protocol.api_keys import ApiKey
from protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from protocol.schema import Codec, Encoded, Message
from protocol.types import TopicPartition
from storage.waits import PAUSE

LEADER_AND_ISR_VERSION: Final = 7
UPDATE_METADATA_VERSION: Final = 8
STOP_REPLICA_VERSION: Final = 4
"""The versions at the inter-broker protocol 3.9."""
MOST_METADATA: Final = 5_000
"""Partitions in one UpdateMetadata: some hundred kilobytes, and less than a tenth of a second for a
broker. A topic is never split."""
MOST_LEADERSHIPS: Final = 2_000
"""Partitions in one LeaderAndIsr but the first, each of which a broker opens a log for."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request for a broker."""

    broker_id: int
    key: ApiKey
    version: int
    message: Message
    deletes: frozenset[TopicPartition] = frozenset()
    """Replicas that a StopReplica has deleted: its answer says whether they are gone."""


class RequestBatch:
    """The requests of one step. Not used again after `requests`."""

    def __init__(self, state: ControllerState, broker_id: int, listener: str) -> None:
        """`broker_id`: the controller's; `listener`: the one on which brokers talk."""
        self._state = state
        self._broker_id = broker_id
        self._listener = listener
        self._leaderships: dict[int, dict[TopicPartition, bool]] = {}
        """By broker, partition: whether its replica is new."""
        self._stops: dict[int, dict[TopicPartition, tuple[int, bool]]] = {}
        """By broker, partition: the leader epoch, and whether to delete."""
        self._metadata: dict[TopicPartition, None] = {}
        self._metadata_brokers: set[int] = set()

    # ------------------------------------------------------------------ what has changed

    def add_leadership(self, brokers: Iterable[int], tp: TopicPartition, *, is_new: bool) -> None:
        """Tell replicas who leads `tp`, and every broker's clients."""
        for broker_id in brokers:
            if broker_id >= 0:
                partitions = self._leaderships.setdefault(broker_id, {})
                partitions[tp] = is_new or partitions.get(tp, False)
        self.add_metadata(self._state.brokers, (tp,))

    def add_metadata(self, brokers: Iterable[int], partitions: Iterable[TopicPartition]) -> None:
        """Tell brokers which brokers live, and the state of `partitions`."""
        self._metadata_brokers.update(brokers)
        self._metadata.update(dict.fromkeys(partitions))

    def add_stop(self, broker_id: int, tp: TopicPartition, *, delete: bool) -> None:
        """Have a replica stopped."""
        if broker_id >= 0:
            partitions = self._stops.setdefault(broker_id, {})
            delete = delete or partitions.get(tp, (0, False))[1]
            partitions[tp] = (self._state.leader_epoch(tp), delete)

    # ------------------------------------------------------------------ requests

    async def requests(self) -> list[Outgoing]:
        """All requests, in the order in which they must be sent."""
        outgoing: list[Outgoing] = []
        states: dict[tuple[TopicPartition, bool], LeaderAndIsrPartitionState] = {}
        for broker_id, leaderships in self._leaderships.items():
            known = self._state.brokers.get(broker_id)
            if known is not None:
                outgoing += await self._leader_and_isr(broker_id, known, leaderships, states)
            await forgotten(leaderships)
        await forgotten(states)
        outgoing += await self._update_metadata()
        for broker_id, stops in self._stops.items():
            known = self._state.brokers.get(broker_id)
            if known is not None:
                outgoing.append(await self._stop_replica(broker_id, known, stops))
        return outgoing

    async def _leader_and_isr(
        self,
        broker_id: int,
        known: LiveBroker,
        leaderships: dict[TopicPartition, bool],
        states: dict[tuple[TopicPartition, bool], LeaderAndIsrPartitionState],
    ) -> list[Outgoing]:
        topics: dict[str, list[LeaderAndIsrPartitionState]] = {}
        for tp, is_new in leaderships.items():
            state = states.get((tp, is_new))
            if state is None:
                made = self._replica_state(tp, is_new)
                if made is None:
                    continue
                state = states[tp, is_new] = made
            topics.setdefault(tp.topic, []).append(state)
            await PAUSE
        populated = self._state.populated
        most = MOST_LEADERSHIPS if populated.get(broker_id) == known.epoch else len(leaderships)
        if topics:
            populated[broker_id] = known.epoch
        return [
            Outgoing(
                broker_id,
                ApiKey.LEADER_AND_ISR,
                LEADER_AND_ISR_VERSION,
                LeaderAndIsrRequest(
                    controller_id=self._broker_id,
                    controller_epoch=self._state.epoch,
                    broker_epoch=known.epoch,
                    topic_states=[
                        LeaderAndIsrTopicState(
                            topic_name=name,
                            topic_id=self._state.topics[name].topic_id,
                            partition_states=topics[name],
                        )
                        for name in some
                    ],
                    live_leaders=self._live_leaders(
                        {one.leader for name in some for one in topics[name]}
                    ),
                ),
            )
            for some in _parts(
                [(name, len(partitions)) for name, partitions in topics.items()], most
            )
        ]

    def _replica_state(self, tp: TopicPartition, is_new: bool) -> LeaderAndIsrPartitionState | None:
        leadership = self._state.leadership(tp)
        if leadership is None:
            return None
        assignment = self._state.assignment(tp)
        return LeaderAndIsrPartitionState(
            partition_index=tp.partition,
            controller_epoch=leadership.controller_epoch,
            leader=leadership.leader,
            leader_epoch=leadership.leader_epoch,
            isr=leadership.isr,
            partition_epoch=leadership.partition_epoch,
            replicas=assignment.replicas,
            adding_replicas=assignment.adding,
            removing_replicas=assignment.removing,
            is_new=is_new,
            leader_recovery_state=int(leadership.recovering),
        )

    def _live_leaders(self, leaders: set[int]) -> list[LeaderAndIsrLiveLeader]:
        found = []
        for broker_id in sorted(leaders):
            known = self._state.brokers.get(broker_id)
            endpoint = None if known is None else endpoint_of(known, self._listener)
            if endpoint is not None:
                found.append(
                    LeaderAndIsrLiveLeader(
                        broker_id=broker_id, host_name=endpoint.host, port=endpoint.port
                    )
                )
        return found

    async def _update_metadata(self) -> list[Outgoing]:
        topics: dict[str, list[UpdateMetadataPartitionState]] = {}
        for tp in self._metadata:
            state = self._metadata_of(tp)
            if state is not None:
                topics.setdefault(tp.topic, []).append(state)
            await PAUSE
        sizes = [(name, len(partitions)) for name, partitions in topics.items()]
        encoded = await self._encoded(topics)
        await forgotten(self._metadata)
        brokers = [_live_broker(known) for _, known in sorted(self._state.brokers.items())]
        parts = _parts(sizes, MOST_METADATA) or [[]]
        outgoing = []
        for broker_id in sorted(self._metadata_brokers):
            known = self._state.brokers.get(broker_id)
            if known is None:
                continue
            for some in parts:
                message = UpdateMetadataRequest(
                    controller_id=self._broker_id,
                    controller_epoch=self._state.epoch,
                    broker_epoch=known.epoch,
                    topic_states=[encoded[name] for name in some],
                    live_brokers=brokers,
                )
                outgoing.append(
                    Outgoing(broker_id, ApiKey.UPDATE_METADATA, UPDATE_METADATA_VERSION, message)
                )
            await PAUSE
        return outgoing

    async def _encoded(
        self, topics: dict[str, list[UpdateMetadataPartitionState]]
    ) -> dict[str, Encoded]:
        """Encode topics, and forget what they were encoded from."""
        codec = _codec_of_topic()
        encoded = {}
        for name in list(topics):
            content = bytearray()
            topic = UpdateMetadataTopicState(
                topic_name=name,
                topic_id=self._state.topics[name].topic_id,
                partition_states=topics.pop(name),
            )
            for _ in codec.build_steps(topic, content.extend):
                await PAUSE
            encoded[name] = Encoded(content)
        return encoded

    def _metadata_of(self, tp: TopicPartition) -> UpdateMetadataPartitionState | None:
        state = self._state
        leadership = state.leadership(tp)
        if leadership is None:
            return None
        leader, leader_epoch, partition_epoch = (
            leadership.leader,
            leadership.leader_epoch,
            leadership.partition_epoch,
        )
        if tp.topic in state.to_delete:
            leader, leader_epoch, partition_epoch = LEADER_DURING_DELETE, 0, 0
        replicas = state.assignment(tp).replicas
        online = state.online(replicas, tp)
        return UpdateMetadataPartitionState(
            partition_index=tp.partition,
            controller_epoch=leadership.controller_epoch,
            leader=leader,
            leader_epoch=leader_epoch,
            isr=leadership.isr,
            zk_version=partition_epoch,
            replicas=replicas,
            offline_replicas=()
            if len(online) == len(replicas)
            else tuple(broker for broker in replicas if broker not in online),
        )

    async def _stop_replica(
        self, broker_id: int, known: LiveBroker, stops: dict[TopicPartition, tuple[int, bool]]
    ) -> Outgoing:
        topics: dict[str, list[StopReplicaPartitionState]] = {}
        for tp, (leader_epoch, delete) in stops.items():
            topics.setdefault(tp.topic, []).append(
                StopReplicaPartitionState(
                    partition_index=tp.partition,
                    leader_epoch=leader_epoch,
                    delete_partition=delete,
                )
            )
            await PAUSE
        message = StopReplicaRequest(
            controller_id=self._broker_id,
            controller_epoch=self._state.epoch,
            broker_epoch=known.epoch,
            topic_states=[
                StopReplicaTopicState(topic_name=name, partition_states=partitions)
                for name, partitions in topics.items()
            ],
        )
        deletes = frozenset(tp for tp, (_, delete) in stops.items() if delete)
        return Outgoing(broker_id, ApiKey.STOP_REPLICA, STOP_REPLICA_VERSION, message, deletes)


def endpoint_of(broker: LiveBroker, listener: str) -> Listener | None:
    """The broker's endpoint of the listener with this name; None if it has no such listener."""
    for endpoint in broker.image.endpoints:
        if endpoint.name == listener:
            return endpoint
    return None


def _live_broker(known: LiveBroker) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=known.image.broker_id,
        endpoints=[
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.name,
                security_protocol=SECURITY_PROTOCOLS.index(endpoint.protocol),
            )
            for endpoint in known.image.endpoints
        ],
        rack=known.image.rack,
    )


def _parts(topics: Sequence[tuple[str, int]], most: int) -> list[list[str]]:
    """Split topics, given with their numbers of partitions, into requests of `most` of these."""
    parts: list[list[str]] = []
    room = 0
    for name, partitions in topics:
        if not parts or partitions > room:
            parts.append([])
            room = most
        parts[-1].append(name)
        room -= partitions
    return parts


@cache
def _codec_of_topic() -> Codec[UpdateMetadataTopicState]:
    codec: Codec[UpdateMetadataTopicState] = UpdateMetadataRequest.element_codec(
        "topic_states", UPDATE_METADATA_VERSION
    )
    return codec
