"""Carries out the delta of a topic: deletes, makes and opens logs, leads, follows or resigns.

A stand-alone broker opens new partitions all or none. The error of the first that cannot be opened
is the refusal: the controller undoes the creation and raises it. A failed disk is no refusal: a log
that was made on it cannot be deleted, and if the partition were created again on another disk, the
next start would find two directories of it. So the topic stays, as it would if the disk failed a
moment later.

A known partition that cannot be opened has no leader; the others are served. In a cluster the same
holds for new ones: the controller hears of each, and others have replicas of them.

A partition changes its role and its leader epoch between two appends (`between_appends`). A state
of an older leader epoch than the partition's is passed over.

`broker.components` and `broker.membership` call `apply_delta` to carry out changes of the metadata
(`image_delta.CarryOut`). The leader is chosen before: by an election (`broker.cluster.leadership`)
or by the plan of a new topic (`broker.cluster.topic_plan`).
"""

import logging
from collections.abc import Collection, Iterable
from typing import Final

from broker.cluster.image import NO_LEADER, PartitionImage, TopicImage
from broker.cluster.image_delta import DeltaOutcome, TopicDelta
from broker.replication.append_order import between_appends
from broker.replication.replica_manager import ReplicaManager
from config.topic_config import TopicConfig
from protocol.errors import KafkaError
from protocol.types import TopicPartition
from storage.errors import OutOfResources, StorageError
from storage.waits import PAUSE

log = logging.getLogger(__name__)

_LOST: Final = PartitionImage(leader=NO_LEADER, leader_epoch=-1, replicas=(), isr=())


async def apply_delta(
    table: ReplicaManager, delta: TopicDelta, config: TopicConfig | None
) -> DeltaOutcome:
    """Bring `table` from one image of a topic to the next.

    `config` is for logs that are opened; None when none is. Others may run after each partition.
    Known logs that cannot be opened are foreseen only with a KafkaError; any other error is raised,
    and so are errors of deletions.
    """
    if delta.deleted is not None:
        await _delete(table, delta.deleted)
    topic = delta.topic
    if topic is None:
        return DeltaOutcome()
    failed: dict[int, Exception] = {}
    if config is not None:
        if table.is_clustered:
            await _open_known(table, topic, delta.new, config, failed, are_new=True)
        else:
            refused = await _open_new(table, topic, delta.new, config, failed)
            if refused is not None:
                return DeltaOutcome(refused=refused)
        await _open_known(table, topic, delta.changed, config, failed)
    for index in delta.lost:
        tp = TopicPartition(topic.name, index)
        async with between_appends(table.find(tp)):
            table.resign(tp, _LOST)
    for index, why in failed.items():
        log.error("Partition %s-%d has no leader: %s", topic.name, index, why)
    return DeltaOutcome(failed=failed)


async def _open_new(
    table: ReplicaManager,
    topic: TopicImage,
    indexes: Collection[int],
    config: TopicConfig,
    failed: dict[int, Exception],
) -> Exception | None:
    """Open all new partitions, or none and return why."""
    for index in indexes:
        try:
            await _take_role(table, topic, index, config, is_new=True)
        except Exception as error:  # noqa: BLE001 - raised by the controller that made the topic
            if not _is_failed_disk(error):
                log.error("Topic %s could not be opened, and is not made: %s", topic.name, error)
                _close_new(table, topic.name, indexes)
                return error
            failed[index] = error
        await PAUSE
    return None


async def _open_known(
    table: ReplicaManager,
    topic: TopicImage,
    indexes: Collection[int],
    config: TopicConfig,
    failed: dict[int, Exception],
    *,
    are_new: bool = False,
) -> None:
    for index in indexes:
        try:
            await _take_role(table, topic, index, config, is_new=are_new)
        except KafkaError as error:
            failed[index] = error
        await PAUSE


async def _take_role(
    table: ReplicaManager, topic: TopicImage, index: int, config: TopicConfig, *, is_new: bool
) -> None:
    image = topic.partitions[index]
    tp = TopicPartition(topic.name, index)
    leads = image.leader == table.broker_id
    found = table.find(tp)
    if not leads and not (table.is_clustered and table.broker_id in image.replicas):
        async with between_appends(found):
            table.resign(tp, image)
        return
    if (
        found is not None
        and found.topic_id == topic.topic_id
        and not found.is_offline
        and table.is_clustered
        and image.leader_epoch < found.leader_epoch
    ):
        log.info("Passed over an old state of %s: leader epoch %d", tp, image.leader_epoch)
        return
    take = table.make_leader if leads else table.make_follower
    async with between_appends(found):
        take(tp, topic.topic_id, image, config, is_new)


async def _delete(table: ReplicaManager, topic: TopicImage) -> None:
    for index in topic.partitions:
        table.delete_partition(TopicPartition(topic.name, index))
        await PAUSE
    table.forget_topic(topic.name)


def _is_failed_disk(error: Exception) -> bool:
    return isinstance(error, StorageError) and not isinstance(error, OutOfResources)


def _close_new(table: ReplicaManager, name: str, indexes: Iterable[int]) -> None:
    """Close the partitions of a creation that failed, and delete their logs."""
    for index in indexes:
        try:
            table.delete_partition(TopicPartition(name, index))
        except KafkaError as error:
            log.error("The log of %s-%d, which is not served, stays: %s", name, index, error)
