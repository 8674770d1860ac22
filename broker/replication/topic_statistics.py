"""Traffic counters per topic and in total: the numbers behind Kafka's `BrokerTopicMetrics`.

Plain integers that only grow, changed in place on the produce and fetch path and read by
`broker.metrics`. The total keeps the numbers of deleted topics.
"""

from dataclasses import dataclass, fields

from storage.waits import PAUSE


@dataclass(slots=True)
class TopicStatistics:
    """Counters of one topic, or of all (names after `kafka.server:type=BrokerTopicMetrics`)."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    """Bytes to consumers; those to followers are `replication_bytes_out`."""
    bytes_rejected: int = 0
    """Bytes of batches refused for their size."""
    replication_bytes_in: int = 0
    replication_bytes_out: int = 0
    reassignment_bytes_in: int = 0
    """The part of `replication_bytes_in` for replicas that a reassignment adds."""
    reassignment_bytes_out: int = 0
    total_produce_requests: int = 0
    """Counted per partition of a request, as Kafka does."""
    total_fetch_requests: int = 0
    failed_produce_requests: int = 0
    """Unexpected refusals; as in Kafka these do not include unknown partitions, a moved leader,
    size limits, checksums and an offline disk."""
    failed_fetch_requests: int = 0
    produce_message_conversions: int = 0
    """Records converted from an older message format."""
    fetch_message_conversions: int = 0
    invalid_message_crc_records: int = 0
    no_key_compacted_topic_records: int = 0
    invalid_offset_or_sequence_records: int = 0

    def add(self, other: "TopicStatistics") -> None:
        """Add the numbers of `other`."""
        for name in _COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def copy(self) -> "TopicStatistics":
        """The numbers as they are now."""
        now = TopicStatistics()
        now.add(self)
        return now


_COUNTERS = tuple(field.name for field in fields(TopicStatistics))


class BrokerTopicStatistics:
    """The counters of every topic on this broker."""

    __slots__ = ("_gone", "_topics", "unattributed")

    def __init__(self) -> None:
        self._topics: dict[str, TopicStatistics] = {}
        self._gone = TopicStatistics()
        self.unattributed = TopicStatistics()
        """Requests for unknown partitions, so that clients cannot create metrics by naming topics.
        """

    def of(self, topic: str) -> TopicStatistics:
        """Return the live counters of a topic, made at first use."""
        counters = self._topics.get(topic)
        if counters is None:
            counters = self._topics[topic] = TopicStatistics()
        return counters

    def forget(self, topic: str) -> None:
        """The topic was deleted: drop its counters, but keep their numbers in the total."""
        counters = self._topics.pop(topic, None)
        if counters is not None:
            self._gone.add(counters)

    async def snapshot(self) -> tuple[TopicStatistics, dict[str, TopicStatistics]]:
        """Return (sum over all topics, deleted ones too; a copy per topic)."""
        total = self._gone.copy()
        total.add(self.unattributed)
        topics = {}
        for topic, counters in list(self._topics.items()):
            topics[topic] = now = counters.copy()
            total.add(now)
            await PAUSE
        return total, topics
