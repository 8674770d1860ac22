"""Stray logs, as Kafka calls logs of partitions that the metadata does not know."""

import logging

from broker.cluster.image import MetadataImage
from storage.log_manager import LogManager

logger = logging.getLogger(__name__)


def warn_of_stray_logs(logs: LogManager, image: MetadataImage) -> None:
    """Warn of the topics of stray logs, which stay on the disk for `pykafkalog adopt`."""
    stray = set()
    for log in logs.all_logs():
        name, index = log.topic_partition
        topic = image.topic(name)
        if topic is None or index not in topic.partitions:
            stray.add(name)
    if stray:
        logger.warning(
            "The log directories hold topics that the metadata does not know: %s. They are not"
            " served; `pykafkalog adopt` registers them while the broker is stopped.",
            ", ".join(sorted(stray)),
        )
