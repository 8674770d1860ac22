"""Changes topics in a cluster, in the place of `broker.cluster.controller.Controller`.

* Topics are made, deleted and grown by the controller's broker only; others answer NOT_CONTROLLER
  before they look at a request (`broker.membership.only_controller`). It writes the nodes that
  Kafka's tools write, under a check of the controller's epoch, and the controller reacts to the
  tree. The client gets its answer when the image shows the leaders, or REQUEST_TIMED_OUT.
* Missing topics that clients ask for are made by the broker that gets the request, as Kafka 3.9 on
  ZooKeeper does, and the clients ask again (LEADER_NOT_AVAILABLE).
* Configs of topics are changed by the broker that gets the request.

The rules for new topics are those of a stand-alone broker (`broker.cluster.topic_plan`). Refusals
are `KafkaError`s.

Source: `kafka.server.ZkAdminManager`, `kafka.zk.AdminZkClient`,
`kafka.server.DefaultAutoTopicCreationManager` (3.9).
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from broker.cluster.controller_statistics import ControllerStatistics
from broker.cluster.image import MetadataImage, TopicImage
from broker.cluster.internal_topics import topic_wished
from broker.cluster.metadata_store import (
    Check,
    Create,
    MetadataStore,
    NodeExistsError,
    Put,
    StoreUnavailableError,
    TreeOperation,
    VersionMismatchError,
)
from broker.cluster.placement import Start
from broker.cluster.planned_write import write_planned
from broker.cluster.refusals import expect_topic, store_errors_told, unknown_topic
from broker.cluster.topic_batches import batches
from broker.cluster.topic_log_configs import TopicLogConfigs
from broker.cluster.topic_names import CLUSTER_METADATA
from broker.cluster.topic_plan import (
    Charge,
    NewTopic,
    check_config,
    check_partitions_added,
    check_partitions_wished,
    new_partition,
    plan_each,
    plan_more_partitions,
    plan_topic,
)
from broker.cluster.tree_values import (
    CONTROLLER_EPOCH,
    decode_config,
    decode_topic,
    deletion_path,
    encode_config,
    encode_topic,
    topic_config_path,
    topic_path,
)
from broker.controller.cluster_controller import ClusterController
from broker.membership.image_changes import ImageChanges
from broker.membership.topic_settings import TopicSettings
from broker.world.uuids import NewUuid
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.types import ZERO_UUID
from storage.waits import PAUSE, together

log = logging.getLogger(__name__)

_MANY: Final = 1 << 30
"""In the place of the number of live brokers: internal topics get the replicas that are configured,
or are not made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminParts:
    """The parts that changes of topics need."""

    store: MetadataStore
    image: MetadataImage
    changes: ImageChanges
    settings: TopicSettings
    configs: TopicLogConfigs
    controller: ClusterController
    new_uuid: NewUuid
    random: Random


class TopicAdmin:
    """Changes the topics of the cluster's tree."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts
        self._store = parts.store
        self._image = parts.image
        self._configs = parts.configs
        self._making: set[str] = set()
        """Topics that are being made because clients asked for them."""

    # ---- configs

    def topic_config(self, name: str) -> TopicConfig:
        """The configuration of a topic's logs; the broker's defaults for an unknown topic."""
        return self._configs.of_topic(name)

    async def topic_defaults_changed(self) -> None:
        """The broker's configuration has changed while it runs: update the logs of all topics."""
        await self._configs.defaults_changed()

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
        expect_topic(self._image, name, f"The topic '{name}' does not exist.")
        path = topic_config_path(name)
        own: dict[str, str] = {}

        async def plan() -> list[TreeOperation]:
            nonlocal own
            node = await self._store.get(path)
            old = {} if node is None else decode_config(path, node.value)
            own = check_config(change(old), self._configs.broker)
            if validate_only:
                return []
            value = encode_config(own)
            return [Create(path, value) if node is None else Put(path, value, node.version)]

        with store_errors_told():
            await write_planned(self._store, plan)
        if validate_only:
            return
        self._parts.settings.note(name, own)
        log.info("Topic %s has the configs %s now", name, own)

    # ---- creation

    async def create_topics(
        self,
        wishes: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        charge: Charge | None = None,
        timeout_ms: int = 0,
    ) -> "dict[str, TopicImage | KafkaError]":
        """Make topics of different names; return each by name, or the error that refused it.

        Topics whose leaders are not known after `timeout_ms` are REQUEST_TIMED_OUT; the controller
        still elects the leaders. Raises KafkaError POLICY_VIOLATION if the topics have too many
        partitions together.
        """
        check_partitions_wished(wishes, self._configs.broker)
        results = await self._create(
            wishes, charge, validate_only=validate_only, by_controller=True
        )
        if not validate_only:
            made = {one.name: one for one in results.values() if isinstance(one, TopicImage)}
            late = await self._wait_led(made, timeout_ms)
            results |= {name: KafkaError(ErrorCode.REQUEST_TIMED_OUT) for name in late}
        return results

    async def _create(
        self,
        wishes: Sequence[NewTopic],
        charge: Charge | None,
        *,
        validate_only: bool = False,
        by_controller: bool,
    ) -> "dict[str, TopicImage | KafkaError]":
        """Plan topics, and write into the tree those that are not refused, side by side."""
        results = await plan_each(wishes, self._plan, charge)
        planned = [one for one in results.values() if isinstance(one, TopicImage)]

        async def write(topic: TopicImage) -> None:
            try:
                await self._write(topic, by_controller=by_controller)
            except KafkaError as error:
                results[topic.name] = error.with_traceback(None)

        if not validate_only:
            for some in batches(planned, lambda topic: len(topic.partitions)):
                await together(*map(write, some))
        return results

    def _plan(self, wish: NewTopic) -> TopicImage:
        """Return the topic as it will be. Raises KafkaError."""
        return plan_topic(
            wish,
            self._parts.new_uuid,
            self._image,
            self._configs.broker,
            Start.drawn(self._parts.random),
        )

    async def _write(self, topic: TopicImage, *, by_controller: bool) -> None:
        """Write a topic into the tree. Raises KafkaError."""
        path, config_path = topic_path(topic.name), topic_config_path(topic.name)
        with _store_errors_told():
            marked, known = await self._store.get_many([deletion_path(topic.name), config_path])
            if marked is not None:
                raise KafkaError(
                    ErrorCode.TOPIC_ALREADY_EXISTS,
                    f"Topic '{topic.name}' is marked for deletion.",
                )
            config = encode_config(topic.config)
            operations: list[TreeOperation] = [
                *self._checked(by_controller),
                Create(config_path, config) if known is None else Put(config_path, config),
                Create(path, encode_topic(topic.topic_id, topic.partitions)),
            ]
            try:
                await self._store.apply(operations)
            except NodeExistsError as error:
                raise KafkaError(
                    ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists."
                ) from error
        log.info("Made topic %s with %d partitions", topic.name, len(topic.partitions))

    def _checked(self, by_controller: bool) -> list[TreeOperation]:
        """The check that refuses a write of a controller that has been succeeded."""
        if not by_controller:
            return []
        return [Check(CONTROLLER_EPOCH, self._parts.controller.epoch_version)]

    async def _wait_led(self, topics: Mapping[str, TopicImage], timeout_ms: int) -> list[str]:
        """Wait until all partitions have leaders; return the topics that have not."""
        if topics:
            await self._parts.changes.wait_until(
                lambda: all(self._is_led(topic) for topic in topics.values()), timeout_ms / 1000
            )
        return [name for name, topic in topics.items() if not self._is_led(topic)]

    def _is_led(self, wanted: TopicImage) -> bool:
        """Whether the image has leaders of all partitions that `wanted` has."""
        known = self._image.topic(wanted.name)
        if known is None:
            return False
        found = (known.partitions.get(index) for index in wanted.partitions)
        return all(partition is not None and partition.leader >= 0 for partition in found)

    async def ensure_topics(
        self, names: Sequence[str], charge: Charge | None = None
    ) -> dict[str, KafkaError]:
        """Begin to make missing topics with the broker's defaults; return an error for each.

        LEADER_NOT_AVAILABLE for those that the controller will have made soon. For auto-creation
        (S-META-1).
        """
        wishes = [
            topic_wished(name, self._configs.broker, _MANY)
            for name in names
            if name != CLUSTER_METADATA and name not in self._making
        ]
        check_partitions_wished(wishes, self._configs.broker)
        errors = {name: unknown_topic() for name in names}
        self._making.update(wish.name for wish in wishes)
        try:
            made = await self._create(wishes, charge, by_controller=False)
        finally:
            self._making.difference_update(wish.name for wish in wishes)
        for name, result in made.items():
            if isinstance(result, TopicImage) or result.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                errors[name] = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
            else:
                log.info("Topic %s is not made: %s", name, result)
                errors[name] = result
        return errors

    async def ensure_topic(self, name: str) -> TopicImage:
        """Return a topic. Raises KafkaError while it is not there; it is being made then.

        For the internal topics.
        """
        known = self._image.topic(name)
        if known is not None:
            return known
        raise (await self.ensure_topics([name]))[name]

    # ---- growth

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
        path = topic_path(name)
        with _store_errors_told():
            node = await self._store.get(path)
            if node is None:
                raise unknown_topic(f"The topic '{name}' does not exist.")
            if await self._store.get(deletion_path(name)) is not None:
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion."
                )
            assigned = decode_topic(name, node.value)
            if assigned.adding or assigned.removing:
                raise KafkaError(
                    ErrorCode.REASSIGNMENT_IN_PROGRESS,
                    f"A partition reassignment is in progress for the topic '{name}'.",
                )
            topic = TopicImage(
                name=name,
                topic_id=assigned.topic_id or ZERO_UUID,
                partitions={
                    index: new_partition(replicas, replicas)
                    for index, replicas in assigned.replicas.items()
                },
            )
            check_partitions_added((count - len(topic.partitions),))
            brokers = {one.broker_id: one.rack for one in self._image.brokers()}
            added = plan_more_partitions(topic, count, assignments, list(brokers), brokers)
            if charge is not None:
                charge(len(added))
            if validate_only:
                return
            grown = replace(topic, partitions={**topic.partitions, **added})
            await self._store.apply(
                [
                    *self._checked(by_controller=True),
                    Put(path, encode_topic(assigned.topic_id, grown.partitions), node.version),
                ]
            )
        log.info("Topic %s has %d partitions now", name, count)
        if await self._wait_led({name: grown}, timeout_ms):
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    # ---- deletion

    async def delete_topics(
        self,
        names: Sequence[str],
        charge: Charge | None = None,
        *,
        timeout_ms: int = 0,
    ) -> dict[str, KafkaError]:
        """Mark different topics, for the controller to delete; return the errors of those refused.

        Those that clients still see after `timeout_ms` are REQUEST_TIMED_OUT.
        """
        refused: dict[str, KafkaError] = {}
        for name in names:
            try:
                await self._mark(name, charge)
            except KafkaError as error:
                refused[name] = error.with_traceback(None)
            await PAUSE
        marked = [name for name in names if name not in refused]
        if marked:
            await self._parts.changes.wait_until(
                lambda: not any(self._image.topic(name) for name in marked), timeout_ms / 1000
            )
        late = [name for name in marked if self._image.topic(name) is not None]
        return refused | {name: KafkaError(ErrorCode.REQUEST_TIMED_OUT) for name in late}

    async def _mark(self, name: str, charge: Charge | None) -> None:
        topic = expect_topic(self._image, name)
        if charge is not None:
            charge(len(topic.partitions))
        with _store_errors_told():
            try:
                await self._store.apply(
                    [*self._checked(by_controller=True), Create(deletion_path(name))]
                )
            except NodeExistsError:
                return  # marked already: the caller waits for that deletion
        log.info("Marked topic %s for deletion", name)

    # ---- metrics

    async def statistics(self) -> ControllerStatistics:
        """Gauges for metrics: the controller's; 0 on other brokers, as Kafka's are."""
        return await self._parts.controller.gauges()


@contextmanager
def _store_errors_told() -> Iterator[None]:
    """`store_errors_told`, and a failed check is NOT_CONTROLLER, no answer REQUEST_TIMED_OUT."""
    with store_errors_told():
        try:
            yield
        except VersionMismatchError as error:
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER, "Another broker is the controller, or was faster."
            ) from error
        except StoreUnavailableError as error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
