"""A controller that never fails: elects from the ISR, answers AlterPartition as Kafka 3.9 does."""

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from broker.cluster.image import NO_LEADER, PartitionImage, TopicImage
from broker.peers.peer import PeerError
from protocol.errors import ErrorCode
from protocol.messages.alter_partition import (
    AlteredPartitionResult,
    AlteredTopicResult,
    AlterPartitionResponse,
)
from storage.waits import sleep

if TYPE_CHECKING:
    from tests.support.replication.cluster import Cluster, SimBroker

CONTROLLER = 0
"""In `Links.cut`."""
SESSION_S = 2.0


class SimController:
    """The state of one topic, and the news that each broker has yet to get."""

    fences = True
    """Sabotage: whether epochs of an AlterPartition are looked at."""

    def __init__(self, cluster: "Cluster", partitions: int) -> None:
        from tests.support.replication.cluster import image_of

        self._image_of = image_of
        self.cluster = cluster
        ids = tuple(cluster.brokers)
        self.live: set[int] = set()
        self.partitions: dict[int, PartitionImage] = {
            index: PartitionImage(
                leader=NO_LEADER,
                leader_epoch=0,
                replicas=ids[index % len(ids) :] + ids[: index % len(ids)],
                isr=ids,
            )
            for index in range(partitions)
        }
        self._unsent: dict[int, deque[tuple[int, TopicImage]]] = {}
        self._sending: set[int] = set()

    # ------------------------------------------------------------------ live brokers

    def registered(self, broker: "SimBroker") -> None:
        """A broker has started."""
        self.live.add(broker.id)
        self._unsent[broker.id] = deque()
        self._elect()
        self._tell_all()

    def unregistered(self, broker_id: int) -> None:
        """A broker's session has ended."""
        if broker_id in self.live:
            self.live.discard(broker_id)
            self._elect()
            self._tell_all()

    def _elect(self) -> None:
        for index, image in self.partitions.items():
            isr = tuple(replica for replica in image.isr if replica in self.live)
            if image.leader in self.live and len(isr) == len(image.isr):
                continue
            leader = image.leader if image.leader in self.live else NO_LEADER
            if leader < 0:
                leader = next((one for one in image.replicas if one in isr), NO_LEADER)
            if leader == image.leader and (not isr or isr == image.isr):
                continue
            self.partitions[index] = replace(
                image,
                leader=leader,
                leader_epoch=image.leader_epoch + 1,
                isr=isr or image.isr,
                partition_epoch=image.partition_epoch + 1,
            )

    def _tell_all(self) -> None:
        """Send all brokers the leaders and the live brokers, as UpdateMetadata does."""
        for broker in self.live:
            self._tell(broker)

    # ------------------------------------------------------------------ telling brokers

    def _tell(self, broker_id: int) -> None:
        """Have a broker hear the state, some time later and in order."""
        broker = self.cluster.brokers[broker_id]
        self._unsent[broker_id].append((broker.epoch, self._image_of(self.partitions)))
        if broker_id not in self._sending:
            self._sending.add(broker_id)
            self.cluster.loop.start(self._send(broker))

    async def _send(self, broker: "SimBroker") -> None:
        unsent = self._unsent[broker.id]
        while unsent:
            slow = self.cluster.random.random() < 0.1
            await sleep(self.cluster.delay() + slow * self.cluster.random.random() * 2)
            if self._unsent[broker.id] is not unsent:
                unsent = self._unsent[broker.id]
                continue
            if (CONTROLLER, broker.id) in self.cluster.links.cut:
                await sleep(0.2)
                continue
            epoch, topic = unsent.popleft()
            if broker.alive and broker.epoch == epoch:
                taken = []
                broker.start(broker.take(topic, tuple(self.live)), taken.append)
                while not taken and broker.alive and broker.epoch == epoch:
                    await sleep(0.002)
        self._sending.discard(broker.id)

    # ------------------------------------------------------------------ AlterPartition

    async def alter(self, broker: "SimBroker", request: Any) -> AlterPartitionResponse:
        loop, links = self.cluster.loop, self.cluster.links
        await sleep(self.cluster.delay())
        if (broker.id, CONTROLLER) in links.cut:
            await sleep(0.5)
            raise PeerError("no answer")
        response = AlterPartitionResponse(topics=[])
        if self.fences and (broker.id not in self.live or request.broker_epoch != broker.epoch):
            response.error_code = ErrorCode.STALE_BROKER_EPOCH
        else:
            for topic in request.topics:
                partitions = [self._altered(broker.id, asked) for asked in topic.partitions]
                response.topics.append(
                    AlteredTopicResult(topic_id=topic.topic_id, partitions=partitions)
                )
        await sleep(self.cluster.delay())
        if (CONTROLLER, broker.id) in links.cut or loop.random.random() < 0.02:
            raise PeerError("the answer is lost")
        return response

    def _altered(self, broker_id: int, asked: Any) -> AlteredPartitionResult:
        index = asked.partition_index
        image = self.partitions[index]
        isr = tuple(state.broker_id for state in asked.new_isr_with_epochs)
        error = ErrorCode.NONE
        if self.fences and (asked.leader_epoch != image.leader_epoch or image.leader != broker_id):
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif isr == image.isr:
            pass
        elif self.fences and asked.partition_epoch != image.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif self.fences and not set(isr) <= self.live:
            error = ErrorCode.INELIGIBLE_REPLICA
        else:
            image = replace(image, isr=isr, partition_epoch=image.partition_epoch + 1)
            self.partitions[index] = image
        if error:
            return AlteredPartitionResult(partition_index=index, error_code=error)
        return AlteredPartitionResult(
            partition_index=index,
            leader_id=image.leader,
            leader_epoch=image.leader_epoch,
            isr=list(image.isr),
            partition_epoch=image.partition_epoch,
        )
