"""The controller of a stand-alone broker: every change of topics goes through here.

It plans a change, writes the tree, and waits until the `ImageApplier`, which watches the tree, has
applied the write to replicas and image; the outcome is the answer.

Rules
1. One change at a time (`TreeChanges`), so that concurrent creations of one topic, or a config
   change during a creation, have an order (S-CFG-5: the later change wins).
2. Store first, then the disk, then the image: a client never sees a topic that a crash could take
   back, nor one whose partitions cannot be written to yet.
3. A deletion that a crash cuts short is finished at the next start (`topic_deletion`).
4. A change that has begun is finished, even if its client disconnects: requests of APIs that change
   something always are (`broker.network.routes`), so nothing here guards against an early end. The
   stop of the broker may end a change at any wait, as a crash does; the next start reads the tree.
5. At a start a partition whose log cannot be opened (failed disk) has no leader; the others are
   served. New partitions are opened all or none: after a refusal the write is undone and nothing is
   left. If a disk failed they stay, without leaders, and the client gets KAFKA_STORAGE_ERROR.

Start-up, called by `broker.server`: `load` (before the logs are loaded: they need the topics'
configs), `lead` (after), `register` (when the sockets are bound). Refusals are `KafkaError`s. After
Kafka's `KafkaController` and `AdminZkClient`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from broker.cluster.controller_statistics import ControllerStatistics, counted
from broker.cluster.image import BrokerImage, MetadataImage
from broker.cluster.image_applier import ImageApplier
from broker.cluster.image_delta import DeltaOutcome
from broker.cluster.leadership import ElectionStatistics, above_the_logs, elected
from broker.cluster.metadata_store import Create, MetadataStore, Put, TreeOperation
from broker.cluster.refusals import (
    expect_leaders,
    expect_no_logs,
    expect_topic,
    expect_uncordoned_dirs,
    store_errors_told,
)
from broker.cluster.topic_batches import batches
from broker.cluster.topic_creation import TopicCreation
from broker.cluster.topic_deletion import TopicDeletions
from broker.cluster.topic_log_configs import TopicLogConfigs
from broker.cluster.topic_plan import (
    Charge,
    check_config,
    check_partitions_added,
    plan_more_partitions,
)
from broker.cluster.topic_writes import TopicWrites, growth_undone
from broker.cluster.tree_changes import TreeChanges
from broker.cluster.tree_reader import read_controller_epoch
from broker.cluster.tree_values import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    broker_path,
    encode,
    encode_broker,
)
from broker.world.uuids import NewUuid
from config.listener import Listener
from config.topic_config import TopicConfig
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from storage.clock import Clock
    from storage.log_manager import LogManager

log = logging.getLogger(__name__)


class Controller:
    """Changes the topics of the metadata tree; the only one that does while the broker runs."""

    def __init__(
        self,
        *,
        store: MetadataStore,
        image: MetadataImage,
        applier: ImageApplier,
        configs: TopicLogConfigs,
        logs: "LogManager",
        broker_id: int,
        clock: "Clock",
        new_uuid: NewUuid,
    ) -> None:
        self._store = store
        self._image = image
        self._applier = applier
        self._configs = configs
        self._logs = logs
        self._broker_id = broker_id
        self._elections = ElectionStatistics()
        self._clock = clock
        self._changes = TreeChanges(store, applier)
        self._writes = TopicWrites(store, epoch=0)
        self._deletions = TopicDeletions(store, applier)
        creation = TopicCreation(
            changes=self._changes,
            writes=self._writes,
            deletions=self._deletions,
            image=image,
            configs=configs,
            logs=logs,
            new_uuid=new_uuid,
        )
        self.create_topic, self.create_topics = creation.create_topic, creation.create_topics
        self.ensure_topic, self.ensure_topics = creation.ensure_topic, creation.ensure_topics

    # ------------------------------------------------------------------ start

    async def load(self) -> None:
        """Fill the image from the tree that the last run left. Raises BadValueError."""
        self._writes.epoch = await read_controller_epoch(self._store) + 1
        await self._deletions.load()
        self._image.controller_id = self._broker_id
        self._image.set_broker(
            BrokerImage(
                broker_id=self._broker_id,
                endpoints=self._configs.broker.advertised_listeners,
                rack=self._configs.broker.broker_rack,
            )
        )
        await self._applier.load()

    def topic_config(self, name: str) -> TopicConfig:
        """The configuration of a topic's logs; the broker's defaults for an unknown topic."""
        return self._configs.of_topic(name)

    async def topic_defaults_changed(self) -> None:
        """The broker's configuration has changed while it runs: update the logs of all topics."""
        async with self._changes.one_at_a_time:
            await self._configs.defaults_changed()

    async def lead(self) -> None:
        """Elect this broker for every partition of which it has a replica, and have logs opened.

        Finishes the deletions of the last run.
        """
        epoch = str(self._writes.epoch).encode()
        known = await self._store.get(CONTROLLER_EPOCH) is not None
        value = {"version": 1, "brokerid": self._broker_id, "timestamp": str(self._clock.wall_ms())}
        operations: list[TreeOperation] = [
            Put(CONTROLLER_EPOCH, epoch) if known else Create(CONTROLLER_EPOCH, epoch),
            Create(CONTROLLER, encode(value), ephemeral=True),
        ]
        for topic in list(self._image.topics()):
            led = above_the_logs(elected(topic, self._broker_id), self._logs)
            self._elections = self._elections.with_topic(topic, led)
            operations += await self._writes.election(led)
        await self._store.apply(operations)
        await self._applier.open_all()
        await self._deletions.finish_all()

    async def register(self, bound: Sequence[Listener]) -> None:
        """Announce this broker; `bound` are its listeners with the ports that they got."""
        broker = next(b for b in self._image.brokers() if b.broker_id == self._broker_id)
        value = encode_broker(broker, tuple(bound), self._clock.wall_ms())
        await self._store.create(broker_path(self._broker_id), value, ephemeral=True)

    # ------------------------------------------------------------------ topics

    async def delete_topics(
        self, names: Sequence[str], charge: Charge | None = None, *, timeout_ms: int = 0
    ) -> dict[str, KafkaError]:
        """Remove different topics and their logs; return the errors of those that were refused.

        When this returns clients no longer see the topics and their names may be used again; their
        files are removed `file.delete.delay.ms` later (S-RET-8). Other changes may come in between.
        """
        refused: dict[str, KafkaError] = {}
        for some in batches(names, self._partitions_of):
            async with self._changes.one_at_a_time:
                known = []
                for name in some:
                    try:
                        topic = expect_topic(self._image, name)
                        if charge is not None:
                            charge(len(topic.partitions))
                    except KafkaError as error:
                        refused[name] = error.with_traceback(None)
                    else:
                        known.append(name)
                refused |= await self._delete(known)
        return refused

    def _partitions_of(self, name: str) -> int:
        topic = self._image.topic(name)
        return 0 if topic is None else len(topic.partitions)

    async def _delete(self, names: Sequence[str]) -> dict[str, KafkaError]:
        refused: dict[str, KafkaError] = {}
        try:
            with store_errors_told():
                errors = await self._deletions.delete(names) if names else {}
        except KafkaError as error:
            return dict.fromkeys(names, error.with_traceback(None))
        for name in names:
            try:
                with store_errors_told():
                    if name in errors:
                        raise errors[name]
            except KafkaError as error:
                refused[name] = error.with_traceback(None)
            else:
                log.info("Deleted topic %s", name)
        return refused

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[tuple[int, ...]] | None = None,
        *,
        validate_only: bool = False,
        charge: Charge | None = None,
        timeout_ms: int = 0,
    ) -> None:
        """Raise the number of a topic's partitions to `count` (S-META-2). Raises KafkaError."""
        async with self._changes.one_at_a_time:
            topic = expect_topic(self._image, name)
            if assignments is None:
                expect_uncordoned_dirs(self._logs)
            check_partitions_added((count - len(topic.partitions),))
            brokers = [member.broker_id for member in self._image.brokers()]
            added = plan_more_partitions(topic, count, assignments, brokers)
            expect_no_logs(name, added, self._logs)
            if charge is not None:
                charge(len(added))
            if validate_only:
                return
            grown = replace(topic, partitions={**topic.partitions, **added})
            operations = await self._writes.growth(grown, added)
            outcome = (await self._changes.write(operations))[name]
            if outcome.refused is not None:
                await self._changes.write(growth_undone(topic, added))
                raise outcome.refused
            grown = self._image.topic(name) or grown
        log.info("Topic %s has %d partitions now", name, count)
        expect_leaders(grown, added)

    async def alter_topic_config(
        self,
        name: str,
        change: Callable[[Mapping[str, str]], Mapping[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Change a topic's own configs; `change` makes the new ones from the old ones.

        Raises KafkaError: what `change` raises, UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG.
        """
        async with self._changes.one_at_a_time:
            topic = expect_topic(self._image, name, f"The topic '{name}' does not exist.")
            own = check_config(change(topic.config), self._configs.broker)
            if validate_only:
                return
            operations = await self._writes.config(name, own)
            outcome = (await self._changes.write(operations)).get(name, DeltaOutcome())
            if outcome.refused is not None:
                raise outcome.refused
        log.info("Topic %s has the configs %s now", name, own)

    async def statistics(self) -> ControllerStatistics:
        """Gauges for metrics."""
        return await counted(self._image, self._elections, len(self._deletions))
