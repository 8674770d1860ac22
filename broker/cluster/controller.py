"""The controller of a stand-alone broker: every change of topics goes through here.

Rules
1. One change at a time (`_changing`), so that concurrent creations of one topic, or a config change
   during a creation, have an order (S-CFG-5: the later change wins).
2. Store first, then the disk, then the image: a client never sees a topic that a crash could take
   back, nor one whose partitions cannot be written to yet.
3. A deletion that a crash cuts short is finished at the next start (`topic_deletion`).
4. What has begun is finished: the client's going away does not cancel a change half-way.
5. At a start a partition whose log cannot be opened (failed disk) has no leader; the rest serves on
   (`leadership`). New partitions are opened all or none: the refusal leaves nothing behind. When
   the disk failed they stay, without leaders, and the refusal says so.

Start-up, called by `broker.server`: `load` (before the logs are loaded: they need the topics'
configs), `lead` (after), `register` (when the sockets are bound). Refusals are `KafkaError`s. After
Kafka's `KafkaController` and `AdminZkClient`.
"""

import logging
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

import trio

from broker.cluster.identity import NewUuid
from broker.cluster.image import (
    NO_LEADER,
    BrokerImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from broker.cluster.internal_topics import internal_topic
from broker.cluster.leadership import (
    ElectionStatistics,
    LogEpochs,
    Replicas,
    above_the_logs,
    elected,
    expect_leaders,
    expect_no_logs,
    lead_partitions,
)
from broker.cluster.metadata_store import (
    Create,
    Delete,
    MetadataStore,
    MetadataStoreError,
    Operation,
    Put,
)
from broker.cluster.topic_deletion import TopicDeletions
from broker.cluster.topic_log_configs import LogConfigs, TopicLogConfigs
from broker.cluster.topic_names import CLUSTER_METADATA
from broker.cluster.topic_plan import (
    NewTopic,
    check_config,
    check_partitions_added,
    check_partitions_wished,
    plan_more_partitions,
    plan_topic,
)
from broker.cluster.tree_reader import read_controller_epoch, read_topics
from broker.cluster.tree_values import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    broker_path,
    encode,
    encode_broker,
    encode_config,
    encode_partition_state,
    encode_topic,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from broker.world.turns import Turns, at_once
from config.broker_config import BrokerConfig
from config.listener import Listener
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from storage.clock import Clock

log = logging.getLogger(__name__)

TOPICS_AT_ONCE: Final = 64
PARTITIONS_AT_ONCE: Final = 256
"""New topics that are written together have no more partitions than this, if they are several: one
sync for all of them, and others may change something afterwards."""
_TOPICS_A_TURN: Final = 16
"""To plan a topic with configs of its own takes a good part of a millisecond."""

_PARTITIONS_PER_LOOK: Final = 64
_PARTITIONS_A_STEP: Final = 2000
"""Counted before others have their turn: about half a millisecond."""


class Logs(LogConfigs, LogEpochs, Protocol):
    """What the controller needs of `storage.log_manager.LogManager`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerStatistics:
    """Gauges of `kafka.controller:type=KafkaController`."""

    active_controller_count: int
    global_topic_count: int
    global_partition_count: int
    offline_partitions_count: int
    preferred_replica_imbalance_count: int
    """Partitions that another replica leads than the first of them."""
    topics_to_delete_count: int
    elections: ElectionStatistics
    """Of this start."""


class Controller:
    """Owns the image and the tree."""

    def __init__(
        self,
        *,
        store: MetadataStore,
        image: MetadataImage,
        config: BrokerConfig,
        broker_id: int,
        replicas: Replicas,
        log_configs: Logs,
        clock: "Clock",
        new_uuid: NewUuid,
    ) -> None:
        self._store = store
        self._image = image
        self._broker_id = broker_id
        self._elections = ElectionStatistics()
        self._replicas = replicas
        self._logs = log_configs
        self._log_configs = TopicLogConfigs(image, config, log_configs)
        self._clock = clock
        self._new_uuid = new_uuid
        self._changing = trio.Lock()
        self._epoch = 0
        self._deletions = TopicDeletions(store, image, replicas)

    # ------------------------------------------------------------------ start

    async def load(self) -> None:
        """Fill the image from the tree; this broker leads every partition it has a replica of.

        Raises BadValueError when the tree cannot be read.
        """
        self._epoch = await read_controller_epoch(self._store) + 1
        await self._deletions.load()
        self._image.controller_id = self._broker_id
        self._image.set_broker(
            BrokerImage(
                broker_id=self._broker_id,
                endpoints=self._log_configs.broker.advertised_listeners,
                rack=self._log_configs.broker.broker_rack,
            )
        )
        for topic in await read_topics(self._store):
            if topic.name not in self._deletions:
                led = elected(topic, self._broker_id)
                self._elections = self._elections.with_topic(topic, led)
                self._image.set_topic(led)

    def topic_config(self, name: str) -> TopicConfig:
        """The configuration of a topic's logs; the broker's defaults for an unknown topic."""
        return self._log_configs.of_topic(name)

    async def follow_broker_config(self, before: BrokerConfig, now: BrokerConfig) -> None:
        """The broker's configuration has changed while it runs: topics' defaults follow."""
        async with self._changing:
            await self._log_configs.follow_broker(now)

    async def lead(self) -> None:
        """Write the new leader epochs, lead every partition, finish deletions of the last run."""
        operations: list[Operation] = []
        node = await self._store.get(CONTROLLER_EPOCH)
        epoch = str(self._epoch).encode()
        operations.append(
            Create(CONTROLLER_EPOCH, epoch) if node is None else Put(CONTROLLER_EPOCH, epoch)
        )
        value = {"version": 1, "brokerid": self._broker_id, "timestamp": str(self._clock.wall_ms())}
        operations.append(Create(CONTROLLER, encode(value), ephemeral=True))
        for topic in list(self._image.topics()):
            self._image.set_topic(above_the_logs(topic, self._logs))
        for topic in self._image.topics():
            for index, partition in topic.partitions.items():
                path = partition_state_path(topic.name, index)
                state = encode_partition_state(partition, self._epoch)
                known = await self._store.get(path) is not None
                operations.append(Put(path, state) if known else Create(path, state))
        await self._store.apply(operations)
        for topic in list(self._image.topics()):
            opened = await self._open(topic, topic.partitions, is_new=False)
            if opened is not topic:
                self._image.set_topic(opened)
        await self._deletions.finish_all()

    async def register(self, bound: Sequence[Listener]) -> None:
        """Announce this broker; `bound` are its listeners with the ports that they got."""
        broker = next(b for b in self._image.brokers() if b.broker_id == self._broker_id)
        value = encode_broker(broker, tuple(bound), self._clock.wall_ms())
        await self._store.create(broker_path(self._broker_id), value, ephemeral=True)

    @property
    def deletion_listeners(self) -> list[Callable[[Collection[str]], None]]:
        """Called with the names of deleted topics, after the image has forgotten them."""
        return self._deletions.listeners

    # ------------------------------------------------------------------ topics

    async def create_topic(self, wish: NewTopic, *, validate_only: bool = False) -> TopicImage:
        """Make a topic; when this returns its partitions can be written to. Raises KafkaError."""
        made = await self.create_topics([wish], validate_only=validate_only)
        result = made[wish.name]
        if isinstance(result, KafkaError):
            raise result
        return result

    async def create_topics(
        self, wishes: Sequence[NewTopic], *, validate_only: bool = False
    ) -> "dict[str, TopicImage | KafkaError]":
        """Make topics of different names; of each, what it is now, or why it is not.

        A few are written together, and between them others may change something. Raises KafkaError
        POLICY_VIOLATION when all together have too many partitions.
        """
        check_partitions_wished(wishes, self._log_configs.broker)
        results: dict[str, TopicImage | KafkaError] = {}
        turns = Turns(self._clock, items=_TOPICS_A_TURN)
        for some in _batches(wishes, self._log_configs.broker.num_partitions):
            async with self._changing:
                planned: dict[str, TopicImage] = {}
                for wish in some:
                    try:
                        planned[wish.name] = results[wish.name] = self._plan(wish, planned)
                    except KafkaError as error:
                        results[wish.name] = error
                    await turns.next()
                if planned and not validate_only:
                    with trio.CancelScope(shield=True):
                        await self._make(planned, results, turns)
        return results

    def _plan(self, wish: NewTopic, planned: Mapping[str, TopicImage]) -> TopicImage:
        """Raises KafkaError. `planned` are the topics that will be written with this one."""
        if wish.name in self._deletions:
            raise KafkaError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{wish.name}' is marked for deletion."
            )
        if not wish.assignment:
            self._expect_uncordoned_dirs()
        topic = plan_topic(wish, self._new_topic_id(), self._image, self._log_configs.broker)
        alike = wish.name.replace(".", "_")
        for other in planned:
            if other.replace(".", "_") == alike:
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Topic '{wish.name}' collides with existing topic: {other}",
                )
        expect_no_logs(topic.name, topic.partitions, self._logs)
        return topic

    async def _make(
        self,
        planned: Mapping[str, TopicImage],
        results: "dict[str, TopicImage | KafkaError]",
        turns: Turns,
    ) -> None:
        operations: list[Operation] = []
        for topic in planned.values():
            await self._add_creation(topic, operations, turns)
        try:
            await self._write(operations)
        except KafkaError as error:
            results.update(dict.fromkeys(planned, error))
            return
        for name, topic in planned.items():
            undo = (
                Delete(topic_path(name), recursive=True),
                Delete(topic_config_path(name), recursive=True),
            )
            try:
                opened = await self._open_new(topic, topic.partitions, undo)
            except KafkaError as error:
                results[name] = error
                continue
            self._image.set_topic(opened)
            results[name] = opened
            log.info("Created topic %s with %d partitions", name, len(opened.partitions))
            try:
                expect_leaders(opened, opened.partitions)
            except KafkaError as error:
                results[name] = error

    async def ensure_topics(self, names: Sequence[str]) -> dict[str, KafkaError]:
        """Have topics that are missing made on the broker's defaults; why those that are not.

        For auto-creation (S-META-1). Raises KafkaError POLICY_VIOLATION when they would have too
        many partitions.
        """
        brokers = len(self._image.brokers())
        wishes = [
            internal_topic(name, self._log_configs.broker, brokers) or NewTopic(name=name)
            for name in names
            if name != CLUSTER_METADATA
        ]
        made: dict[str, TopicImage | KafkaError] = {
            name: _unknown_topic() for name in names if name == CLUSTER_METADATA
        }
        made |= await self.create_topics(wishes)
        return {
            name: result
            for name, result in made.items()
            if isinstance(result, KafkaError)
            and not (
                result.code == ErrorCode.TOPIC_ALREADY_EXISTS
                and self._image.topic(name) is not None
            )
        }

    async def ensure_topic(self, name: str) -> TopicImage:
        """The topic, made on the broker's defaults when it is missing. Raises KafkaError.

        For auto-creation (S-META-1) and for the internal topics. Whether a client may have it
        made is for the caller to ask.
        """
        known = self._image.topic(name)
        if known is not None:
            await trio.lowlevel.checkpoint()
            return known
        if name == CLUSTER_METADATA:
            raise _unknown_topic()
        wish = internal_topic(name, self._log_configs.broker, len(self._image.brokers()))
        try:
            return await self.create_topic(wish or NewTopic(name=name))
        except KafkaError as error:
            made = self._image.topic(name)
            if error.code == ErrorCode.TOPIC_ALREADY_EXISTS and made is not None:
                return made  # Somebody else was quicker.
            raise

    async def delete_topic(self, name: str) -> None:
        """Remove a topic and its logs. Raises KafkaError.

        When this returns the topic is gone for clients; the files follow `file.delete.delay.ms`
        later (S-RET-8), and the name may be used again at once.
        """
        if not self._log_configs.broker.delete_topic_enable:
            raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
        async with self._changing:
            if self._image.topic(name) is None:
                raise _unknown_topic()
            with trio.CancelScope(shield=True), _told_as_kafka_error():
                await self._deletions.delete(name)
        log.info("Deleted topic %s", name)

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[tuple[int, ...]] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Let a topic have `count` partitions; only ever more (S-META-2). Raises KafkaError."""
        async with self._changing:
            topic = self._image.topic(name)
            if topic is None:
                raise _unknown_topic()
            if assignments is None:
                self._expect_uncordoned_dirs()
            check_partitions_added((count - len(topic.partitions),))
            brokers = [member.broker_id for member in self._image.brokers()]
            added = plan_more_partitions(topic, count, assignments, brokers)
            expect_no_logs(name, added, self._logs)
            if validate_only:
                return
            grown = replace(topic, partitions={**topic.partitions, **added})
            operations: list[Operation] = [
                Put(topic_path(name), encode_topic(topic.topic_id, grown.partitions))
            ]
            await self._add_states(name, added, operations, Turns(self._clock))
            with trio.CancelScope(shield=True):
                await self._write(operations)
                grown = await self._open_new(
                    grown,
                    added,
                    [
                        Put(topic_path(name), encode_topic(topic.topic_id, topic.partitions)),
                        *(Delete(partition_state_path(name, index)) for index in added),
                    ],
                )
                self._image.set_topic(grown)
        log.info("Topic %s has %d partitions now", name, count)
        expect_leaders(grown, added)

    async def alter_topic_config(
        self,
        name: str,
        change: Callable[[Mapping[str, str]], Mapping[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Change what a topic sets itself; `change` makes the new configs from the old ones.

        Raises KafkaError: what `change` raises, UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG.
        """
        async with self._changing:
            topic = self._image.topic(name)
            if topic is None:
                raise _unknown_topic(f"The topic '{name}' does not exist.")
            own = check_config(change(topic.config), self._log_configs.broker)
            if validate_only:
                return
            path, value = topic_config_path(name), encode_config(own)
            known = await self._store.get(path) is not None
            with trio.CancelScope(shield=True):
                await self._write([Put(path, value) if known else Create(path, value)])
            self._image.set_topic(replace(topic, config=own))
            self._log_configs.topic_changed(name, own)
        log.info("Topic %s has the configs %s now", name, own)

    # ------------------------------------------------------------------ pieces

    def _expect_uncordoned_dirs(self) -> None:
        """For what is placed by us. Raises INVALID_REPLICATION_FACTOR (KIP-1066)."""
        if not self._logs.takes_new_logs:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Unable to replicate the partition: all brokers are currently fenced or have all "
                "their log directories cordoned.",
            )

    def _new_topic_id(self) -> bytes:
        while self._image.topic_by_id(topic_id := self._new_uuid()) is not None:
            pass
        return topic_id

    async def _add_creation(
        self, topic: TopicImage, operations: list[Operation], turns: Turns
    ) -> None:
        node = encode_topic(topic.topic_id, topic.partitions)
        operations.append(Create(topic_config_path(topic.name), encode_config(topic.config)))
        operations.append(Create(topic_path(topic.name), node))
        await self._add_states(topic.name, topic.partitions, operations, turns)

    async def _add_states(
        self,
        name: str,
        partitions: Mapping[int, PartitionImage],
        operations: list[Operation],
        turns: Turns,
    ) -> None:
        last: PartitionImage | None = None
        state = b""
        for count, (index, partition) in enumerate(partitions.items(), 1):
            if partition is not last:  # those of a new topic are one value, mostly
                last, state = partition, encode_partition_state(partition, self._epoch)
            operations.append(Create(partition_state_path(name, index), state))
            if not count % _PARTITIONS_PER_LOOK:
                await turns.next()

    async def _open_new(
        self,
        topic: TopicImage,
        partitions: Mapping[int, PartitionImage],
        undo: Sequence[Operation],
    ) -> TopicImage:
        """Lead new partitions, all or none; `undo` takes them out of the tree. Raises whatever
        went wrong.

        A crash before the undoing leaves a topic that nobody was promised; the next start opens it.
        """
        try:
            return await self._open(topic, partitions, is_new=True)
        except Exception as error:
            log.error("Topic %s could not be opened, and is not made: %s", topic.name, error)
            await self._write(undo)
            raise

    async def _open(
        self, topic: TopicImage, partitions: Mapping[int, PartitionImage], *, is_new: bool
    ) -> TopicImage:
        """Lead `partitions` of `topic`; the topic as it is after failures (rule 5)."""
        config = self._log_configs.resolve(topic.name, topic.config)
        return await lead_partitions(
            self._replicas, topic, partitions, config, self._broker_id, is_new=is_new
        )

    async def _write(self, operations: Sequence[Operation]) -> None:
        with _told_as_kafka_error():
            await self._store.apply(operations)

    def statistics(self) -> ControllerStatistics:
        """Gauges for metrics, all at once."""
        return at_once(self.statistics_in_steps())

    def statistics_in_steps(self) -> Generator[None, None, ControllerStatistics]:
        """The same, some partitions a step."""
        offline = imbalanced = partitions = 0
        for topic in list(self._image.topics()):
            for partition in topic.partitions.values():
                offline += partition.leader == NO_LEADER
                imbalanced += partition.leader not in (NO_LEADER, partition.replicas[0])
            partitions += len(topic.partitions)
            if partitions >= _PARTITIONS_A_STEP:
                yield
                partitions = 0
        return ControllerStatistics(
            active_controller_count=1,
            global_topic_count=self._image.topic_count(),
            global_partition_count=self._image.partition_count(),
            offline_partitions_count=offline,
            preferred_replica_imbalance_count=imbalanced,
            topics_to_delete_count=len(self._deletions),
            elections=self._elections,
        )


def _batches(wishes: Sequence[NewTopic], default: int) -> Iterator[list[NewTopic]]:
    """What is written together."""
    batch: list[NewTopic] = []
    partitions = 0
    for wish in wishes:
        wished = len(wish.assignment) or (default if wish.partitions < 0 else wish.partitions)
        if batch and (len(batch) == TOPICS_AT_ONCE or partitions + wished > PARTITIONS_AT_ONCE):
            yield batch
            batch, partitions = [], 0
        batch.append(wish)
        partitions += wished
    if batch:
        yield batch


@contextmanager
def _told_as_kafka_error() -> Iterator[None]:
    """A change that the store refused is an UNKNOWN_SERVER_ERROR for the client."""
    try:
        yield
    except MetadataStoreError as error:
        log.error("The metadata store refused a change: %s", error)
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"The metadata could not be written: {error}"
        ) from error


def _unknown_topic(message: str | None = None) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        message or "This server does not host this topic-partition.",
    )
