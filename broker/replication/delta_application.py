"""Carries out the delta of a topic: its logs are deleted, made and opened, led or resigned.

New partitions are opened all or none, and what is wrong with the first that cannot be opened is
the refusal, whatever it is: whoever had the topic made takes that back, and raises it. But not when
a disk failed: what was made on it cannot be taken away, and a second directory of the same
partition, on another disk, would keep the next start from knowing which is the partition. So the
topic stays, as it would if the disk failed a moment later.

A partition that was there before and cannot be opened has no leader; the rest serves on.

`ReplicaManager.apply` is this, with its own partitions.
"""

import logging
from collections.abc import Collection, Iterable
from typing import Any, Final, Protocol

import trio

from broker.cluster.image import NO_LEADER, PartitionImage, TopicImage
from broker.cluster.image_delta import Outcome, TopicDelta
from config.topic_config import TopicConfig
from protocol.errors import KafkaError
from protocol.types import TopicPartition
from storage.errors import OutOfResources, StorageError

log = logging.getLogger(__name__)

_LOST: Final = PartitionImage(leader=NO_LEADER, leader_epoch=-1, replicas=(), isr=())


class PartitionTable(Protocol):
    """What is asked of `broker.replication.replica_manager.ReplicaManager`."""

    broker_id: int

    def make_leader(
        self,
        tp: TopicPartition,
        topic_id: bytes,
        leader_epoch: int,
        config: TopicConfig,
        is_new: bool = False,
    ) -> Any:
        """Open or make the log and serve the partition. Raises KafkaError."""
        ...

    def resign(self, tp: TopicPartition, partition: PartitionImage) -> None:
        """Serve it no more: another broker leads it, or none. No error when it is not here."""
        ...

    def delete_partition(self, tp: TopicPartition) -> None:
        """Stop serving it and delete its log; no error when it is not here."""
        ...

    def forget_topic(self, topic: str) -> None:
        """Drop the counters of a deleted topic."""
        ...


async def apply_delta(
    table: PartitionTable, delta: TopicDelta, config: TopicConfig | None
) -> Outcome:
    """Bring `table` from one image of a topic to the next.

    `config` is that of logs that are opened; None when none is. Gives way to others after each
    partition. Raises what is wrong, unless it is foreseen, while logs of the last run are opened or
    deleted.
    """
    if delta.deleted is not None:
        await _delete(table, delta.deleted)
    topic = delta.topic
    if topic is None:
        return Outcome()
    failed: dict[int, Exception] = {}
    if config is not None:
        refused = await _open_new(table, topic, delta.new, config, failed)
        if refused is not None:
            return Outcome(refused=refused)
        await _open_known(table, topic, delta.changed, config, failed)
    for index in delta.lost:
        table.resign(TopicPartition(topic.name, index), _LOST)
    for index, why in failed.items():
        log.error("Partition %s-%d has no leader: %s", topic.name, index, why)
    return Outcome(failed=failed)


async def _open_new(
    table: PartitionTable,
    topic: TopicImage,
    indexes: Collection[int],
    config: TopicConfig,
    failed: dict[int, Exception],
) -> Exception | None:
    """Why none of them is there, or None."""
    for index in indexes:
        try:
            _lead(table, topic, index, config, is_new=True)
        except Exception as error:  # noqa: BLE001 - raised by who asked for them
            if not _is_failed_disk(error):
                log.error("Topic %s could not be opened, and is not made: %s", topic.name, error)
                _close_new(table, topic.name, indexes)
                return error
            failed[index] = error
        await trio.lowlevel.checkpoint()
    return None


async def _open_known(
    table: PartitionTable,
    topic: TopicImage,
    indexes: Collection[int],
    config: TopicConfig,
    failed: dict[int, Exception],
) -> None:
    for index in indexes:
        try:
            _lead(table, topic, index, config, is_new=False)
        except KafkaError as error:
            failed[index] = error
        await trio.lowlevel.checkpoint()


def _lead(
    table: PartitionTable, topic: TopicImage, index: int, config: TopicConfig, *, is_new: bool
) -> None:
    partition = topic.partitions[index]
    tp = TopicPartition(topic.name, index)
    if partition.leader == table.broker_id:
        table.make_leader(tp, topic.topic_id, partition.leader_epoch, config, is_new)
    else:
        table.resign(tp, partition)


async def _delete(table: PartitionTable, topic: TopicImage) -> None:
    for index in topic.partitions:
        table.delete_partition(TopicPartition(topic.name, index))
        await trio.lowlevel.checkpoint()
    table.forget_topic(topic.name)


def _is_failed_disk(error: Exception) -> bool:
    return isinstance(error, StorageError) and not isinstance(error, OutOfResources)


def _close_new(table: PartitionTable, name: str, indexes: Iterable[int]) -> None:
    """What was opened of a creation that fails: closed, and its logs deleted."""
    for index in indexes:
        try:
            table.delete_partition(TopicPartition(name, index))
        except KafkaError as error:
            log.error("The log of %s-%d, which is not served, stays: %s", name, index, error)
