"""Obeys LeaderAndIsr: leads or follows the partitions of which this broker has a replica.

Each partition is judged by itself (`verdict`). Those that pass are led or followed topic by topic;
others may run after each partition. After each topic its coordinator, if any, gets the changes.
Leader, epoch and ISR of a partition that is led here come by these orders only; the image, which
clients see, is another matter (`metadata_updates`).

Source: `kafka.server.ReplicaManager.becomeLeaderOrFollower`, `RequestHandlerHelper
.onLeadershipChange` (3.9).
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from broker.cluster.image import PartitionImage, TopicImage
from broker.cluster.image_applier import Coordinator
from broker.cluster.image_delta import CarryOut, DeltaOutcome, TopicDelta
from broker.cluster.leader_and_isr import NO_EPOCH
from broker.membership.controller_fence import ControllerFence
from broker.membership.orders import Sender, TopicOrders
from broker.membership.topic_settings import TopicSettings
from broker.replication.partition import Partition
from broker.replication.replica_manager import ReplicaManager
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.types import ZERO_UUID, TopicPartition
from storage.log_manager import LogManager
from storage.waits import PAUSE

log = logging.getLogger(__name__)

_MOST_TOLD: Final = 20
"""Partitions that a line of the log names."""

Codes = dict[str, dict[int, ErrorCode]]
"""The outcome for each partition, by topic and number."""


def verdict(
    hosted: Partition | None, topic_id: bytes, order: PartitionImage, broker_id: int
) -> ErrorCode | None:
    """Return why an order is not carried out, or None if it is.

    (a) KAFKA_STORAGE_ERROR: the replica here lies on a failed disk
    (b) INCONSISTENT_TOPIC_ID: the log here belongs to another topic of the name
    (c) STALE_CONTROLLER_EPOCH: the leader epoch is not above the one that is known; only a topic's
        first id comes without a new epoch
    (d) UNKNOWN_TOPIC_OR_PARTITION: this broker is not one of the replicas
    """
    known_epoch, known_id = NO_EPOCH, ZERO_UUID
    if hosted is not None:
        known_epoch, known_id = hosted.leader_epoch, hosted.topic_id
        if hosted.unavailable == ErrorCode.KAFKA_STORAGE_ERROR:
            return ErrorCode.KAFKA_STORAGE_ERROR  # (a)
    if topic_id not in (ZERO_UUID, known_id) and known_id != ZERO_UUID:
        return ErrorCode.INCONSISTENT_TOPIC_ID  # (b)
    gets_its_id = hosted is not None and known_id == ZERO_UUID != topic_id
    if order.leader_epoch < known_epoch or (order.leader_epoch == known_epoch and not gets_its_id):
        return ErrorCode.STALE_CONTROLLER_EPOCH  # (c)
    if broker_id not in order.replicas:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # (d)
    return None


class Leadership:
    """Leads and follows partitions as the controller says."""

    def __init__(
        self,
        *,
        fence: ControllerFence,
        replicas: ReplicaManager,
        carry_out: CarryOut,
        logs: LogManager,
        configs: TopicSettings,
        resolve: Callable[[str, Mapping[str, str]], TopicConfig],
        coordinators: Mapping[str, Coordinator],
        broker_id: int,
    ) -> None:
        """`resolve` lays a topic's own configs over the broker's. `coordinators`: by the topic in
        which each keeps its state."""
        self._fence = fence
        self._replicas = replicas
        self._apply = carry_out
        self._logs = logs
        self._configs = configs
        self._resolve = resolve
        self._coordinators = coordinators
        self._broker_id = broker_id

    async def obey(self, sender: Sender, topics: Mapping[str, TopicOrders]) -> Codes:
        """Carry out an order; return the code of every partition.

        Raises KafkaError STALE_BROKER_EPOCH or STALE_CONTROLLER_EPOCH: nothing is done.
        """
        self._fence.check_broker_epoch(sender.broker_epoch)
        async with self._fence.one_at_a_time:
            self._fence.admit(sender.controller_id, sender.controller_epoch)
            codes: Codes = {}
            accepted = await self._judge(topics, codes)
            new = []
            for name in accepted:
                if self._is_new(name, topics):
                    new.append(name)
                await PAUSE
            await self._configs.learn(new)
            await self._logs.prepare(self._made_here(accepted))
            for name, orders in accepted.items():
                await self._carry_out(name, orders, codes[name])
            await self._logs.discard_prepared()
        await self._tell(sender, accepted, codes)
        return codes

    async def _judge(
        self, topics: Mapping[str, TopicOrders], codes: Codes
    ) -> dict[str, TopicOrders]:
        """Return what is to be carried out; the codes of the rest are entered."""
        accepted: dict[str, TopicOrders] = {}
        for name, orders in topics.items():
            refused = codes[name] = {}
            passed = TopicOrders(topic_id=orders.topic_id, new=orders.new)
            for index, order in orders.partitions.items():
                hosted = self._replicas.find((name, index))
                code = verdict(hosted, orders.topic_id, order, self._broker_id)
                if code is None:
                    passed.partitions[index] = order
                else:
                    refused[index] = code
                    if code is ErrorCode.KAFKA_STORAGE_ERROR:
                        # By this answer the controller has another broker lead: what a coordinator
                        # here remembers will be outdated.
                        self._tell_coordinator(name, index, order, code)
                await PAUSE
            if passed.partitions:
                accepted[name] = passed
        return accepted

    def _is_new(self, name: str, topics: Mapping[str, TopicOrders]) -> bool:
        """Whether no partition of the topic is here yet, so that its configs may be new, too."""
        return all(self._replicas.find((name, i)) is None for i in topics[name].partitions)

    def _made_here(
        self, accepted: Mapping[str, TopicOrders]
    ) -> Iterator[tuple[TopicPartition, bytes]]:
        """Yield partitions that get a log, with their topics' ids."""
        uncertain = bool(self._logs.offline_dirs)  # the log may lie in a failed directory
        for name, orders in accepted.items():
            for index in orders.partitions:
                if self._replicas.find((name, index)) is None and (
                    index in orders.new or not uncertain
                ):
                    yield TopicPartition(name, index), orders.topic_id

    async def _carry_out(self, name: str, orders: TopicOrders, codes: dict[int, ErrorCode]) -> None:
        topic = TopicImage(
            name=name,
            topic_id=orders.topic_id,
            partitions=orders.partitions,
            config=self._configs.own(name),
        )
        delta = TopicDelta(
            name=name,
            topic=topic,
            new=tuple(index for index in orders.partitions if index in orders.new),
            changed=tuple(index for index in orders.partitions if index not in orders.new),
        )
        outcome = await self._apply(delta, self._resolve(name, topic.config))
        for index, order in orders.partitions.items():
            codes[index] = _code(outcome, index)
            self._tell_coordinator(name, index, order, codes[index])
            await PAUSE

    def _tell_coordinator(
        self, name: str, index: int, order: PartitionImage, code: ErrorCode
    ) -> None:
        coordinator = self._coordinators.get(name)
        if coordinator is None:
            return
        if code is ErrorCode.NONE and order.leader == self._broker_id:
            coordinator.on_elected(index, order.leader_epoch)
        else:
            coordinator.on_resigned(index)

    async def _tell(
        self, sender: Sender, accepted: Mapping[str, TopicOrders], codes: Codes
    ) -> None:
        led = followed = known = refused = 0
        named: list[str] = []
        for name, of_topic in codes.items():
            for index, code in of_topic.items():
                if code is ErrorCode.STALE_CONTROLLER_EPOCH:
                    known += 1
                elif code is not ErrorCode.NONE:
                    refused += 1
                    if refused <= _MOST_TOLD:
                        named.append(f"{name}-{index} ({code.name})")
                elif accepted[name].partitions[index].leader == self._broker_id:
                    led += 1
                else:
                    followed += 1
                await PAUSE
        log.info(
            "Controller %d (epoch %d): leads %d partitions, follows %d, knew of %d",
            sender.controller_id,
            sender.controller_epoch,
            led,
            followed,
            known,
        )
        if refused:
            log.warning(
                "%d partitions do not follow the controller: %s",
                refused,
                ", ".join(named),
            )


def _code(outcome: DeltaOutcome, index: int) -> ErrorCode:
    """The code of one partition. Raises an error that nobody has foreseen."""
    error = outcome.refused or outcome.failed.get(index)
    if error is None:
        return ErrorCode.NONE
    if isinstance(error, KafkaError):
        return error.code
    raise error
