"""Which of the `num.replica.fetchers` connections to a leader copies a partition."""

from broker.cluster.java_hash import as_int, java_string_hash, slot_of
from protocol.types import TopicPartition


def fetcher_number(tp: TopicPartition, fetchers: int) -> int:
    """Return 0 to `fetchers` - 1, as `AbstractFetcherManager.getFetcherId` does."""
    return slot_of(as_int(31 * java_string_hash(tp.topic) + tp.partition), fetchers)
