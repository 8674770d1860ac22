"""Creates topics for the controller: plans and writes them in batches, and undoes refused ones.

Part of `broker.cluster.controller`, whose rules hold here.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from broker.cluster.image import MetadataImage, TopicImage
from broker.cluster.internal_topics import topic_wished
from broker.cluster.metadata_store import TreeOperation
from broker.cluster.refusals import (
    expect_leaders,
    expect_no_logs,
    expect_uncordoned_dirs,
    unknown_topic,
)
from broker.cluster.topic_batches import batches
from broker.cluster.topic_deletion import TopicDeletions
from broker.cluster.topic_log_configs import TopicLogConfigs
from broker.cluster.topic_names import CLUSTER_METADATA
from broker.cluster.topic_plan import (
    Charge,
    NewTopic,
    check_partitions_wished,
    plan_each,
    plan_topic,
)
from broker.cluster.topic_writes import TopicWrites, creation_undone
from broker.cluster.tree_changes import TreeChanges
from broker.world.uuids import NewUuid
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from storage.log_manager import LogManager

log = logging.getLogger(__name__)


class TopicCreation:
    """Makes topics on request, and by auto-creation."""

    def __init__(
        self,
        *,
        changes: TreeChanges,
        writes: TopicWrites,
        deletions: TopicDeletions,
        image: MetadataImage,
        configs: TopicLogConfigs,
        logs: "LogManager",
        new_uuid: NewUuid,
    ) -> None:
        self._changes = changes
        self._writes = writes
        self._deletions = deletions
        self._image = image
        self._configs = configs
        self._logs = logs
        self._new_uuid = new_uuid

    async def create_topic(self, wish: NewTopic, *, validate_only: bool = False) -> TopicImage:
        """Make a topic; when this returns its partitions can be written to. Raises KafkaError."""
        made = await self.create_topics([wish], validate_only=validate_only)
        result = made[wish.name]
        if isinstance(result, KafkaError):
            raise result
        return result

    async def create_topics(
        self,
        wishes: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        charge: Charge | None = None,
        timeout_ms: int = 0,
    ) -> "dict[str, TopicImage | KafkaError]":
        """Make topics of different names; return each by name, or the error that refused it.

        They are written in batches, between which other changes may come; nothing is waited for
        that has a `timeout_ms`. Raises KafkaError POLICY_VIOLATION if they have too many partitions
        together.
        """
        check_partitions_wished(wishes, self._configs.broker)
        results: dict[str, TopicImage | KafkaError] = {}
        default = self._configs.broker.num_partitions
        for some in batches(wishes, lambda wish: wish.partitions_wished(default)):
            async with self._changes.one_at_a_time:
                planned = await plan_each(some, self._plan, charge)
                results |= planned
                allowed = {n: one for n, one in planned.items() if isinstance(one, TopicImage)}
                if allowed and not validate_only:
                    results |= await self._make(allowed)
        return results

    def _plan(self, wish: NewTopic) -> TopicImage:
        """Return the topic as it will be. Raises KafkaError."""
        if wish.name in self._deletions:
            raise KafkaError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{wish.name}' is marked for deletion."
            )
        if not wish.assignment:
            expect_uncordoned_dirs(self._logs)
        topic = plan_topic(wish, self._new_uuid, self._image, self._configs.broker)
        expect_no_logs(topic.name, topic.partitions, self._logs)
        return topic

    async def _make(
        self, planned: Mapping[str, TopicImage]
    ) -> "dict[str, TopicImage | KafkaError]":
        operations: list[TreeOperation] = []
        for topic in planned.values():
            operations += await self._writes.creation(topic)
        try:
            outcomes = await self._changes.write(operations)
        except KafkaError as error:
            return dict.fromkeys(planned, error.with_traceback(None))
        refused = {
            name: outcomes[name].refused
            for name in planned
            if name in outcomes and outcomes[name].refused is not None
        }
        if refused:
            undo = [operation for name in refused for operation in creation_undone(name)]
            try:
                await self._changes.write(undo)
            except KafkaError as error:
                refused = dict.fromkeys(refused, error.with_traceback(None))
        results: dict[str, TopicImage | KafkaError] = {}
        for name in planned:
            refusal = refused.get(name)
            if refusal is not None and not isinstance(refusal, KafkaError):
                raise refusal
            try:
                results[name] = refusal or self._made(name)
            except KafkaError as disk_failed:
                results[name] = disk_failed.with_traceback(None)
        return results

    def _made(self, name: str) -> TopicImage:
        topic = self._image.topic(name)
        assert topic is not None
        log.info("Created topic %s with %d partitions", name, len(topic.partitions))
        expect_leaders(topic, topic.partitions)
        return topic

    async def ensure_topics(
        self, names: Sequence[str], charge: Charge | None = None
    ) -> dict[str, KafkaError]:
        """Make missing topics with the broker's defaults; return the errors of those refused.

        For auto-creation (S-META-1). Raises KafkaError POLICY_VIOLATION if they would have too many
        partitions.
        """
        brokers = len(self._image.brokers())
        wishes = [
            topic_wished(name, self._configs.broker, brokers)
            for name in names
            if name != CLUSTER_METADATA
        ]
        made: dict[str, TopicImage | KafkaError] = {
            name: unknown_topic() for name in names if name == CLUSTER_METADATA
        }
        made |= await self.create_topics(wishes, charge=charge)
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
        """Return a topic, made with the broker's defaults if it is missing. Raises KafkaError.

        For auto-creation (S-META-1) and for the internal topics. The caller checks whether the
        client may create it.
        """
        known = self._image.topic(name)
        if known is not None:
            return known
        if name == CLUSTER_METADATA:
            raise unknown_topic()
        wish = topic_wished(name, self._configs.broker, len(self._image.brokers()))
        try:
            return await self.create_topic(wish)
        except KafkaError as error:
            made = self._image.topic(name)
            if error.code == ErrorCode.TOPIC_ALREADY_EXISTS and made is not None:
                return made  # Another request has made it meanwhile.
            raise
