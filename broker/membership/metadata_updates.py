"""Obeys UpdateMetadata: the image becomes what the controller says.

The request has all live brokers, the controller, and the partitions that have changed. A topic is
swapped as a whole; others may run between two partitions. Brokers come first: a leader that the
image does not know would be a topic's fault for a moment. Partitions with equal states share one
value.

Kafka's UpdateMetadata says nothing of a reassignment: who adds and removes replicas is known to the
controller and to the leader of the partition.

Source: `kafka.server.metadata.ZkMetadataCache.updateMetadata` (3.9).
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

from broker.cluster.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from broker.membership.controller_fence import ControllerFence
from broker.membership.image_changes import ImageChanges
from broker.membership.orders import MetadataUpdate, Sender, TopicStates
from broker.membership.topic_settings import TopicSettings
from protocol.types import ZERO_UUID
from storage.waits import PAUSE

log = logging.getLogger(__name__)

FIRST_NEWS_S: Final = 10.0
"""How long a client waits until the controller tells of anything: there may be no controller."""
FIRST_TOPICS_S: Final = 1.0
"""How long it waits for topics after that, if there are any: a new controller tells of brokers
first."""


class MetadataUpdates:
    """Keeps the image."""

    def __init__(
        self,
        *,
        fence: ControllerFence,
        image: MetadataImage,
        configs: TopicSettings,
        changes: ImageChanges,
        deleted: Callable[[Collection[str]], None],
    ) -> None:
        """`deleted` is called with the topics that are gone."""
        self._fence = fence
        self._image = image
        self._configs = configs
        self._changes = changes
        self._deleted = deleted
        self._told = False
        self._told_of_topics = False
        self._may_answer = False

    async def first_news(self) -> None:
        """Wait until the image may be shown to clients, or the time is up."""
        if self._may_answer:
            return
        wait_until = self._changes.wait_until
        if await wait_until(lambda: self._told, FIRST_NEWS_S) and self._configs.are_any:
            await wait_until(lambda: self._told_of_topics, FIRST_TOPICS_S)
        self._may_answer = True

    async def obey(self, sender: Sender, update: MetadataUpdate) -> None:
        """Carry out an order.

        Raises KafkaError STALE_BROKER_EPOCH or STALE_CONTROLLER_EPOCH: nothing is done.
        """
        self._fence.check_broker_epoch(sender.broker_epoch)
        async with self._fence.one_at_a_time:
            self._fence.admit(sender.controller_id, sender.controller_epoch)
            await self._configs.learn(
                [name for name in update.topics if self._image.topic(name) is None]
            )
            self._image.controller_id = sender.controller_id
            self._set_brokers(update.brokers)
            gone = []
            for name, states in update.topics.items():
                if await self._set_topic(name, states):
                    gone.append(name)
                await PAUSE
            if gone:
                self._deleted(gone)
            self._told = True
            self._told_of_topics |= bool(update.topics)
            self._changes.changed()
        if update.topics:
            log.info(
                "Controller %d (epoch %d) told of %d topics; %d of them are gone",
                sender.controller_id,
                sender.controller_epoch,
                len(update.topics),
                len(gone),
            )

    def _set_brokers(self, brokers: Mapping[int, BrokerImage]) -> None:
        for known in self._image.brokers():
            if known.broker_id not in brokers:
                log.info("Broker %d does not live any more", known.broker_id)
                self._image.remove_broker(known.broker_id)
        for broker in brokers.values():
            if self._image.broker(broker.broker_id) != broker:
                self._image.set_broker(broker)

    async def _set_topic(self, name: str, states: TopicStates) -> bool:
        """Swap a topic, which uses `states` up; return whether it is gone."""
        known = self._image.topic(name)
        if known is not None and states.topic_id not in (ZERO_UUID, known.topic_id):
            known = None  # another topic of the name
        partitions: dict[int, PartitionImage] = {} if known is None else dict(known.partitions)
        values: dict[PartitionImage, PartitionImage] = {}
        for partition in list(partitions.values()):
            values[partition] = partition
            await PAUSE
        while states.partitions:  # freed one by one: all at once would stop the loop
            index, state = states.partitions.popitem()
            if state is None:
                partitions.pop(index, None)
            else:
                partitions[index] = values.setdefault(state, state)
            await PAUSE
        if not partitions:
            was_known = self._image.topic(name) is not None
            self._image.remove_topic(name)
            self._configs.forget(name)
            return was_known
        topic = TopicImage(
            name=name,
            topic_id=states.topic_id if known is None else known.topic_id,
            partitions=dict(sorted(partitions.items())),
            config=self._configs.own(name),
        )
        self._image.set_topic(topic)
        return False
