"""What the logs tell the rest of the broker at start, once they are open."""

import logging

from broker.cluster.image import MetadataImage
from broker.cluster.producer_ids import BELIEVED_BELOW, ProducerIdAllocator
from storage.log_manager import LogManager

logger = logging.getLogger(__name__)


def tell_unserved(logs: LogManager, image: MetadataImage) -> None:
    """Logs that the metadata does not know lie idle: say so."""
    unserved = set()
    for log in logs.all_logs():
        name, index = log.topic_partition
        topic = image.topic(name)
        if topic is None or index not in topic.partitions:
            unserved.add(name)
    if unserved:
        logger.warning(
            "The log directories hold topics that the metadata does not know: %s. They are not"
            " served; `pykafkalog adopt` registers them while the broker is stopped.",
            ", ".join(sorted(unserved)),
        )


def note_producer_ids(logs: LogManager, producer_ids: ProducerIdAllocator) -> None:
    """Ids that logs remember are not given to new producers, however old the store is."""
    for log in logs.all_logs():
        believed = (one for one in log.producers.producers if one < BELIEVED_BELOW)
        last = max(believed, default=None)
        if last is not None:
            producer_ids.note_used(last)
