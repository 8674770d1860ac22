"""Metric families of each partition, under the names of two exporters.

* `kafka_log_log_…` and `kafka_cluster_partition_…`: the JMX exporter's names of Kafka's MBeans;
* `kafka_topic_…`, `kafka_broker…`: the names of kafka_exporter, a client of the broker.

A partition that this broker does not lead (its disk failed) has only the samples of its log.
"""

from collections.abc import Iterable
from typing import Final

from broker.cluster.image import BrokerImage, TopicImage
from broker.metrics.lines import Lines, labels
from broker.replication.partition import Partition
from storage.log.log import Log
from storage.waits import PAUSE

_LOG: Final = (
    ("size", "Bytes of its record files"),
    ("logendoffset", "The offset that the next record gets"),
    ("logstartoffset", "The first offset that there is"),
    ("numlogsegments", "Segments"),
)
_CLUSTER: Final = (
    ("underreplicated", "1: its ISR has fewer replicas than it has without those being added"),
    ("insyncreplicascount", "Replicas in its ISR"),
    ("underminisr", "1: its ISR has fewer replicas than min.insync.replicas"),
    ("atminisr", "1: its ISR has as many replicas as min.insync.replicas"),
    ("replicascount", "Replicas that are assigned, without those being added"),
    ("laststableoffsetlag", "Offsets between the last stable one and the high watermark"),
)
_EXPORTER: Final = (
    ("current_offset", "The high watermark: the offset after the last that consumers see"),
    ("oldest_offset", "The first offset that there is"),
    ("replicas", "Replicas that are assigned"),
    ("in_sync_replica", "Replicas in its ISR"),
    ("under_replicated_partition", "1: its ISR has fewer replicas than are assigned"),
    ("leader", "The id of the broker that leads it"),
    ("leader_is_preferred", "1: its leader is the first of its replicas"),
)


async def log_families(logs: Iterable[Log]) -> list[Lines]:
    """Return the families of all open logs."""
    families = [Lines(f"kafka_log_log_{name}", "gauge", text) for name, text in _LOG]
    for log in list(logs):
        topic, partition = log.topic_partition
        label = labels(topic=topic, partition=str(partition))
        statistics = log.statistics()
        numbers = (
            statistics.size,
            statistics.log_end_offset,
            statistics.log_start_offset,
            statistics.segment_count,
        )
        for family, value in zip(families, numbers, strict=True):
            family.add(label, value)
        await PAUSE
    return families


async def partition_families(partitions: Iterable[Partition]) -> list[Lines]:
    """Return the families of the `Partition`s that this broker leads."""
    cluster = [Lines(f"kafka_cluster_partition_{name}", "gauge", text) for name, text in _CLUSTER]
    exporter = [Lines(f"kafka_topic_partition_{name}", "gauge", text) for name, text in _EXPORTER]
    for partition in list(partitions):
        await PAUSE
        if partition.unavailable:
            continue
        topic, index = partition.topic_partition
        label = labels(topic=topic, partition=str(index))
        log, replicas, isr = partition.log, len(partition.replicas), len(partition.isr)
        minimum = partition.effective_min_isr
        watermark = log.high_watermark
        factor = partition.replication_factor
        values = (
            int(isr < factor),
            isr,
            int(isr < minimum),
            int(isr == minimum),
            factor,
            watermark - log.last_stable_offset,
        )
        for family, value in zip(cluster, values, strict=True):
            family.add(label, value)
        leader, preferred = partition.broker_id, partition.replicas[0]
        offsets = (
            watermark,
            log.log_start_offset,
            replicas,
            isr,
            int(isr < replicas),
            leader,
            int(leader == preferred),
        )
        for family, value in zip(exporter, offsets, strict=True):
            family.add(label, value)
    return [*cluster, *exporter]


async def cluster_families(
    topics: Iterable[TopicImage], brokers: Iterable[BrokerImage]
) -> list[Lines]:
    """Return kafka_exporter's families of the cluster."""
    count = Lines("kafka_topic_partitions", "gauge", "Partitions of a topic")
    for topic in list(topics):
        count.add(labels(topic=topic.name), len(topic.partitions))
        await PAUSE
    known = list(brokers)
    how_many = Lines("kafka_brokers", "gauge", "Live brokers")
    how_many.add("", len(known))
    info = Lines("kafka_broker_info", "gauge", "Always 1: a live broker; where it is, as labels")
    for broker in known:
        address = next((f"{at.host}:{at.port}" for at in broker.endpoints), "")
        info.add(labels(id=str(broker.broker_id), address=address), 1)
    return [count, how_many, info]
