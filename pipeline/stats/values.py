"""Statistics of topics as values, which are shown as tables, JSON and a page."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of a topic's records: bytes of key, value and headers, uncompressed, unframed."""

    smallest: int
    mean: float
    p50: int
    p90: int
    p99: int
    largest: int
    histogram: tuple[tuple[int, int, int], ...]
    """(lower bound, upper bound exclusive, records) of bins that double."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStats:
    """One partition."""

    partition: int
    records: int
    bytes: int
    """Keys, values and headers."""
    first_offset: int
    last_offset: int
    first_timestamp: int
    last_timestamp: int
    """First and last are the smallest and the largest timestamp, in ms."""
    without_key: int
    tombstones: int
    """Records with a key and without a value."""
    keys: int
    """Number of distinct keys; an estimate if `Keys.exact` is false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of a topic, and how unevenly they have records."""

    exact: bool
    """If False, `distinct` is HyperLogLog's, with a standard deviation of 2 %, and the other fields
    are unknown."""
    distinct: int
    in_several_partitions: int | None = None
    """Keys whose records have no order among them, and which compaction keeps more than once."""
    gini: float | None = None
    """Gini coefficient of records per key: 0 if all have as many, close to 1 if one has all."""
    lorenz: tuple[tuple[float, float], ...] = ()
    """(share of the keys, busiest first; share of the records that they have)."""
    top: tuple[tuple[str, int, int], ...] = ()
    """(key as text, records, bytes), the busiest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The records that would be left if the topic were compacted now, to its end.

    A broker does not clean the active segment and the last `min.compaction.lag.ms`, so it keeps
    more. Bytes are uncompressed, as in `Sizes`.
    """

    records: int
    bytes: int
    """Bytes of all records with a key."""
    latest: int
    latest_bytes: int
    """Bytes of the last record of each key and partition."""
    tombstones: int
    tombstone_bytes: int
    """Bytes of tombstones among the latest, which go after `delete.retention.ms`."""
    without_key: int
    """Records that a compacted topic would refuse."""

    @property
    def saved(self) -> float:
        """The share of the bytes that would go, tombstones included."""
        left = self.latest_bytes - self.tombstone_bytes
        return 1 - left / self.bytes if self.bytes else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """Facts that only the files of a topic show: batches, and the outcomes of transactions."""

    file_bytes: int
    """Bytes of whole batches on the disk."""
    batches: int
    codecs: tuple[tuple[str, int], ...]
    """Number of batches by codec."""
    producers: int
    """Number of producer ids, of idempotent or transactional producers."""
    committed: int
    aborted: int
    open: int
    """Transactions with records in a partition, each counted in every partition that it touched."""
    committed_records: int
    aborted_records: int
    open_records: int
    empty_markers: int
    """Markers of transactions whose records are gone, or that had none in the partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStats:
    """One topic."""

    topic: str
    partitions: tuple[PartitionStats, ...]
    """The partitions that have records."""
    sizes: Sizes
    interval_ms: int
    """The length of an interval of `throughput`."""
    throughput: tuple[tuple[int, int, int], ...]
    """(begin of the interval in ms, records, bytes); intervals without records are left out."""
    keys: Keys
    compaction: Compaction | None
    """None if keys were only estimated."""
    log: LogFacts | None = None
    """None if read from a broker: consumers see no batches, markers or aborted records."""

    @property
    def records(self) -> int:
        """Number of records in all partitions."""
        return sum(one.records for one in self.partitions)

    @property
    def bytes(self) -> int:
        """Keys, values and headers."""
        return sum(one.bytes for one in self.partitions)

    @property
    def partition_skew(self) -> float:
        """Records of the largest partition, divided by the mean of those that have any."""
        counts = [one.records for one in self.partitions]
        return max(counts) * len(counts) / sum(counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The statistics of all topics."""

    source: str
    """The place where the records were read, in words."""
    topics: tuple[TopicStats, ...]
    """The topics that have records, sorted by name."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)
