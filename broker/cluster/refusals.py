"""Checks of the controller that refuse a change of topics, each with a KafkaError."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker.cluster.image import MetadataImage, TopicImage
from broker.cluster.metadata_store import MetadataStoreError
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from storage.log_manager import LogManager

log = logging.getLogger(__name__)


def unknown_topic(message: str | None = None) -> KafkaError:
    """Return the error for a topic that does not exist."""
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        message or "This server does not host this topic-partition.",
    )


def expect_topic(image: MetadataImage, name: str, message: str | None = None) -> TopicImage:
    """Return a topic. Raises UNKNOWN_TOPIC_OR_PARTITION."""
    topic = image.topic(name)
    if topic is None:
        raise unknown_topic(message)
    return topic


@contextmanager
def store_errors_told() -> Iterator[None]:
    """Turn a MetadataStoreError of this block into KafkaError UNKNOWN_SERVER_ERROR."""
    try:
        yield
    except MetadataStoreError as error:
        log.error("The metadata store refused a change: %s", error)
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"The metadata could not be written: {error}"
        ) from error


def expect_uncordoned_dirs(logs: "LogManager") -> None:
    """Raise INVALID_REPLICATION_FACTOR if all log directories are cordoned (KIP-1066)."""
    if not logs.takes_new_logs:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition: all brokers are currently fenced or have all "
            "their log directories cordoned.",
        )


def expect_no_logs(name: str, indexes: Iterable[int], logs: "LogManager") -> None:
    """Raise KafkaError TOPIC_ALREADY_EXISTS if a new partition has a log already.

    Such a log belongs to a topic that the metadata has lost (a lost store, a damaged file). A new
    topic of its name would take the old records for its own, or hide them.
    """
    for index in indexes:
        log_dir = logs.dir_of(TopicPartition(name, index))
        if log_dir is not None:
            raise KafkaError(
                ErrorCode.TOPIC_ALREADY_EXISTS,
                f"Topic '{name}' is not served, but {log_dir} holds records of its partition "
                f"{index}: register it with `pykafkalog adopt`, or move {name}-{index} away, while "
                "the broker is stopped.",
            )


def expect_leaders(topic: TopicImage, indexes: Iterable[int]) -> None:
    """Raise KAFKA_STORAGE_ERROR if one of these new partitions could not be opened."""
    for index in indexes:
        if topic.partitions[index].offline_replicas:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Partition {topic.name}-{index} is made, but its disk failed: it has no leader "
                "until the broker starts with a disk that works.",
            )
