"""Brings a broker from one image of the metadata to the next, driven by a watch of the tree.

The controller only writes the tree. The watch notifies the applier, which reads what has changed,
computes the delta (`image_delta`), has the files of new logs made, and carries the delta out, topic
by topic, in this order

1. remove a deleted topic from the image, delete its logs, notify the coordinators;
2. make and open logs, lead or resign partitions (`delta_application`);
3. put the topic into the image, so that a client never sees one that cannot be written to yet;
4. update the configuration of the topic's logs, notify the coordinators of elections.

Partitions that could not be opened have no leader in the image; new ones that were refused are not
in it. The tree shows neither: the writer gets the outcome (`heard`) and may undo its write.

A topic exists while it has a node and no mark of deletion. A topic that a crash left marked is
deleted by the first image. A start goes from the empty image to the first: `load` shows the topics,
because loading logs needs their configurations, and `open_all` carries out their first deltas.

A writer of the tree calls `catch_up`, which returns when all writes so far are applied; `run`
applies those of other writers. After Kafka's `BrokerMetadataPublisher` (decision 75).
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from broker.cluster.image import NO_LEADER, MetadataImage, TopicImage
from broker.cluster.image_delta import (
    CarryOut,
    DeltaOutcome,
    TopicDelta,
    first_delta,
    topic_delta,
)
from broker.cluster.metadata_store import MetadataStore, MetadataStoreError, NodeEvent
from broker.cluster.topic_log_configs import TopicLogConfigs
from broker.cluster.topic_news import WATCHED, TopicNews, gather
from broker.cluster.tree_reader import TopicReader
from broker.cluster.tree_values import DELETE_TOPICS, deletion_path
from protocol.errors import KafkaError
from protocol.types import TopicPartition
from storage.waits import Lock, Signal

if TYPE_CHECKING:
    from storage.log_manager import LogManager

log = logging.getLogger(__name__)

_FORESEEN: Final = (MetadataStoreError, KafkaError)


class Coordinator(Protocol):
    """A coordinator, which keeps its state in a topic and serves the partitions led here."""

    def on_elected(self, partition: int, leader_epoch: int) -> None:
        """This broker leads a partition of the topic from now on."""
        ...

    def on_resigned(self, partition: int) -> None:
        """This broker no longer leads the partition."""
        ...

    def on_topics_deleted(self, topics: Collection[str]) -> None:
        """Topics were deleted, perhaps the coordinator's own; the image no longer has them."""
        ...


class ImageApplier:
    """Keeps image, replicas and coordinators in the state of the tree."""

    def __init__(
        self,
        *,
        store: MetadataStore,
        image: MetadataImage,
        carry_out: CarryOut,
        logs: "LogManager",
        configs: TopicLogConfigs,
        broker_id: int,
    ) -> None:
        self.coordinators: dict[str, Coordinator] = {}
        """By the topic in which each keeps its state; notified of elections while registered."""
        self._store = store
        self._image = image
        self._carry_out = carry_out
        self._logs = logs
        self._configs = configs
        self._broker_id = broker_id
        self._reader = TopicReader(store)
        self._told: list[NodeEvent] = []
        self._woken: Signal[None] = Signal()
        self._applying = Lock()
        self._hearing: list[dict[str, DeltaOutcome]] = []
        for path in WATCHED:
            store.watch(path, self._on_events)

    def _on_events(self, events: Collection[NodeEvent]) -> None:
        self._told.extend(events)
        if not self._hearing:
            self._woken.fire()

    # ------------------------------------------------------------------ start

    async def load(self) -> None:
        """Put the topics of the tree into the image, without opening logs. Raises BadValueError."""
        marked = await self._store.children(DELETE_TOPICS)
        for topic in await self._reader.read_all():
            if topic.name not in marked:
                self._image.set_topic(topic)

    async def open_all(self) -> None:
        """Open the logs led here and delete marked topics. Called once, after `load`.

        Raises BadValueError, and an error of a log unless it is a KafkaError.
        """
        async with self._applying:
            news = {topic.name: TopicNews() for topic in self._image.topics()}
            await self._gather(news)
            for name in await self._store.children(DELETE_TOPICS):
                news.setdefault(name, TopicNews()).deletion = True
            for name, told in news.items():
                await self._apply(await self._delta(name, told, is_first=True))

    # ------------------------------------------------------------------ while running

    async def run(self) -> None:
        """Apply the changes of all writers, until ended."""
        while True:
            await self._woken
            await self.catch_up()

    async def catch_up(self) -> None:
        """Apply all changes that the watch has reported.

        A topic whose change fails (an unreadable node, a log that cannot be deleted) is refused;
        the others are applied.
        """
        async with self._applying:
            while self._told:
                news: dict[str, TopicNews] = {}
                await self._gather(news)
                deltas: list[TopicDelta] = []
                for name, told in news.items():
                    with self._refusing(name):
                        deltas.append(await self._delta(name, told))
                await self._logs.prepare(self._made_here(deltas))
                for delta in deltas:
                    with self._refusing(delta.name):
                        self._tell(delta.name, await self._apply(delta))
                await self._logs.discard_prepared()

    @contextmanager
    def _refusing(self, name: str) -> Iterator[None]:
        """Answer a foreseen error of the block as the outcome of the topic."""
        try:
            yield
        except _FORESEEN as error:
            log.error("Topic %s does not follow the metadata: %s", name, error)
            self._tell(name, DeltaOutcome(refused=error))

    def _made_here(self, deltas: Iterable[TopicDelta]) -> Iterator[tuple[TopicPartition, bytes]]:
        """Yield the new partitions that this broker leads, with their topics' ids."""
        for delta in deltas:
            topic = delta.topic
            if topic is not None:
                for index in delta.new:
                    if topic.partitions[index].leader == self._broker_id:
                        yield TopicPartition(delta.name, index), topic.topic_id

    @contextmanager
    def heard(self) -> Iterator[dict[str, DeltaOutcome]]:
        """Collect the outcomes of topics within the block, by name; unchanged topics have none.

        For a writer that writes the tree and calls `catch_up`, both within the block.
        """
        outcomes: dict[str, DeltaOutcome] = {}
        self._hearing.append(outcomes)
        try:
            yield outcomes
        finally:
            self._hearing = [others for others in self._hearing if others is not outcomes]
            if self._told:
                self._woken.fire()

    # ------------------------------------------------------------------ pieces

    async def _gather(self, news: dict[str, TopicNews]) -> None:
        events, self._told = self._told, []
        self._woken = Signal()
        await gather(events, news)

    async def _delta(self, name: str, news: TopicNews, *, is_first: bool = False) -> TopicDelta:
        """Return the delta from a topic in the image (`is_first`: from nothing) to the tree's."""
        known = self._image.topic(name)
        if known is None and news.is_gone:
            return TopicDelta(name=name)
        if (news.deletion or known is None) and await self._is_marked(name):
            return TopicDelta(name=name, deleted=known or await self._reader.read(name))
        now = await self._reader.read(name, known, news)
        if is_first and now is not None:
            return first_delta(now)
        return topic_delta(name, known, now)

    async def _is_marked(self, name: str) -> bool:
        return await self._store.get(deletion_path(name)) is not None

    async def _apply(self, delta: TopicDelta) -> DeltaOutcome | None:
        if not delta.changes_anything:
            return None
        name, topic = delta.name, delta.topic
        if delta.deleted is not None:
            self._image.remove_topic(name)
        config = None
        if topic is not None and delta.opens_logs:
            config = self._configs.resolve(name, topic.config)
        outcome = await self._carry_out(delta, config)
        if delta.deleted is not None:
            for coordinator in self.coordinators.values():
                coordinator.on_topics_deleted((name,))
        shown = None if topic is None else self._shown(topic, delta, outcome)
        if shown is not None:
            self._image.set_topic(shown)
            if delta.config_changed:
                self._configs.topic_changed(name, shown.config)
            self._tell_coordinator(shown, delta)
        return outcome

    def _tell(self, name: str, outcome: DeltaOutcome | None) -> None:
        if outcome is None:
            return
        for outcomes in self._hearing:
            outcomes[name] = outcome
        refused = outcome.refused
        if not (self._hearing or refused is None or isinstance(refused, _FORESEEN)):
            raise refused  # a bug, and no writer is waiting that would raise it

    def _shown(
        self, topic: TopicImage, delta: TopicDelta, outcome: DeltaOutcome
    ) -> TopicImage | None:
        """Return the topic as clients may see it; None if it must not be in the image."""
        partitions = dict(topic.partitions)
        if outcome.refused is not None:
            for index in delta.new:
                del partitions[index]
            if not partitions:
                return None
        elif not outcome.failed:
            return topic
        for index in outcome.failed:
            partitions[index] = replace(
                partitions[index], leader=NO_LEADER, offline_replicas=(self._broker_id,)
            )
        return replace(topic, partitions=partitions)

    def _tell_coordinator(self, shown: TopicImage, delta: TopicDelta) -> None:
        coordinator = self.coordinators.get(shown.name)
        if coordinator is None:
            return
        for index in (*delta.new, *delta.changed, *delta.lost):
            partition = shown.partitions.get(index)
            if partition is not None and partition.leader == self._broker_id:
                coordinator.on_elected(index, partition.leader_epoch)
            else:
                coordinator.on_resigned(index)
