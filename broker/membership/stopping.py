"""Obeys StopReplica: this broker is no longer a replica of a partition, or its topic is deleted.

Source: `kafka.server.ReplicaManager.stopReplicas`, `KafkaApis.handleStopReplicaRequest` (3.9).
"""

import logging
from collections.abc import Mapping

from broker.cluster.image_applier import Coordinator
from broker.cluster.leader_and_isr import EPOCH_DURING_DELETE, NO_EPOCH
from broker.membership.controller_fence import ControllerFence
from broker.membership.orders import Sender, StopOrder, StopOrders
from broker.replication.append_order import between_appends
from broker.replication.partition import Partition
from broker.replication.replica_manager import ReplicaManager
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.waits import PAUSE

log = logging.getLogger(__name__)


def verdict(hosted: Partition | None, order: StopOrder) -> ErrorCode | None:
    """Return why an order is not carried out, or None if it is.

    (a) nothing of the partition is served here: a log that was left is deleted all the same
    (b) KAFKA_STORAGE_ERROR: it lies on a failed disk
    (c) FENCED_LEADER_EPOCH: the order is older than what is known. The end of a topic has no new
        epoch, so it passes.
    """
    if hosted is None:
        return None  # (a)
    if hosted.unavailable == ErrorCode.KAFKA_STORAGE_ERROR:
        return ErrorCode.KAFKA_STORAGE_ERROR  # (b)
    if (
        order.leader_epoch not in (NO_EPOCH, EPOCH_DURING_DELETE)
        and order.leader_epoch < hosted.leader_epoch
    ):
        return ErrorCode.FENCED_LEADER_EPOCH  # (c)
    return None


class Stopping:
    """Stops replicas as the controller says."""

    def __init__(
        self,
        *,
        fence: ControllerFence,
        replicas: ReplicaManager,
        coordinators: Mapping[str, Coordinator],
    ) -> None:
        """`coordinators`: by the topic in which each keeps its state."""
        self._fence = fence
        self._replicas = replicas
        self._coordinators = coordinators

    async def obey(self, sender: Sender, orders: StopOrders) -> dict[TopicPartition, ErrorCode]:
        """Carry out an order; return the code of every partition.

        Raises KafkaError STALE_BROKER_EPOCH or STALE_CONTROLLER_EPOCH: nothing is done.
        """
        self._fence.check_broker_epoch(sender.broker_epoch)
        codes: dict[TopicPartition, ErrorCode] = {}
        async with self._fence.one_at_a_time:
            self._fence.admit(sender.controller_id, sender.controller_epoch)
            for tp, order in orders.items():
                async with between_appends(None if order.delete else self._replicas.find(tp)):
                    codes[tp] = self._stop(tp, order)
                await PAUSE
        log.info(
            "Controller %d (epoch %d): stops %d replicas, deletes %d, refused %d",
            sender.controller_id,
            sender.controller_epoch,
            len(orders),
            sum(order.delete for order in orders.values()),
            sum(code is not ErrorCode.NONE for code in codes.values()),
        )
        return codes

    def _stop(self, tp: TopicPartition, order: StopOrder) -> ErrorCode:
        code = verdict(self._replicas.find(tp), order)
        if code is None:
            try:
                self._replicas.stop_replica(tp, delete=order.delete)
            except KafkaError as error:
                log.error("Could not stop the replica of %s: %s", tp, error)
                return error.code
            code = ErrorCode.NONE
            coordinator = self._coordinators.get(tp.topic)
            if coordinator is not None and order.delete:
                coordinator.on_resigned(tp.partition)
        else:
            log.warning("Not stopped as the controller says: %s: %s", tp, code.name)
        return code
