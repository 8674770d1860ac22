"""Records and bytes in and out, per topic and over all topics: Kafka's `BrokerTopicMetrics`.

For the MBean `BytesInPerSec`, Strimzi's rules for the JMX exporter give `…_bytesin_total` and
Confluent's `…_bytesinpersec`. Every counter has the first name; those that Confluent's dashboards
query have the second too, with the same number.
"""

from typing import Final

from broker.metrics.lines import Lines, labels
from broker.replication.replica_manager import ReplicaManagerStatistics
from storage.waits import PAUSE

PREFIX: Final = "kafka_server_brokertopicmetrics_"
COUNTERS: Final = (
    ("messages_in", "messagesin", "Records appended"),
    ("bytes_in", "bytesin", "Bytes of batches appended"),
    ("bytes_out", "bytesout", "Bytes of records sent to consumers"),
    ("bytes_rejected", "bytesrejected", "Bytes of batches refused for their size"),
    ("replication_bytes_in", "replicationbytesin", "Bytes fetched from other brokers"),
    ("replication_bytes_out", "replicationbytesout", "Bytes sent to other brokers"),
    (
        "reassignment_bytes_in",
        "reassignmentbytesin",
        "Bytes fetched for replicas that a reassignment adds",
    ),
    (
        "reassignment_bytes_out",
        "reassignmentbytesout",
        "Bytes sent to replicas that a reassignment adds",
    ),
    ("total_produce_requests", "totalproducerequests", "Partitions that were produced to"),
    ("total_fetch_requests", "totalfetchrequests", "Partitions that were fetched"),
    ("failed_produce_requests", "failedproducerequests", "Partitions whose produce failed"),
    ("failed_fetch_requests", "failedfetchrequests", "Partitions whose fetch failed"),
    (
        "produce_message_conversions",
        "producemessageconversions",
        "Records that came in an older format",
    ),
    (
        "fetch_message_conversions",
        "fetchmessageconversions",
        "Records that were sent in an older format",
    ),
    ("invalid_message_crc_records", "invalidmessagecrcrecords", "Batches with a bad checksum"),
    (
        "no_key_compacted_topic_records",
        "nokeycompactedtopicrecords",
        "Records without a key for a compacted topic",
    ),
    (
        "invalid_offset_or_sequence_records",
        "invalidoffsetorsequencerecords",
        "Batches whose offsets or sequences do not fit",
    ),
)
PER_SECOND: Final = frozenset(
    (
        "messages_in",
        "bytes_in",
        "bytes_out",
        "total_produce_requests",
        "total_fetch_requests",
        "produce_message_conversions",
        "fetch_message_conversions",
    )
)
"""The counters that Confluent's dashboards query as `…persec`."""


async def topic_families(statistics: ReplicaManagerStatistics) -> list[Lines]:
    """Return the families. A sample without labels is the sum of all topics."""
    families: list[tuple[str, Lines]] = []
    for attribute, name, text in COUNTERS:
        families.append((attribute, Lines(PREFIX + name + "_total", "counter", text)))
        if attribute in PER_SECOND:
            again = Lines(PREFIX + name + "persec", "untyped", text + ": the same number")
            families.append((attribute, again))
    for attribute, family in families:
        family.add("", getattr(statistics.all_topics, attribute))
    for topic, counters in statistics.topics.items():
        label = labels(topic=topic)
        for attribute, family in families:
            family.add(label, getattr(counters, attribute))
        await PAUSE
    return [family for _, family in families]
