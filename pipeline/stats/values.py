"""What is found out of topics, as values: they print as tables, JSON and a page."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Of a topic's records: bytes of key, value and headers, uncompressed, without framing."""

    smallest: int
    mean: float
    p50: int
    p90: int
    p99: int
    largest: int
    histogram: tuple[tuple[int, int, int], ...]
    """(from, up to and without, records), doubling."""


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
    """The smallest and the largest, in ms."""
    without_key: int
    tombstones: int
    """Records with a key and without a value."""
    keys: int
    """Distinct ones; approximate where `Keys.exact` is false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of a topic, and how unequal they are."""

    exact: bool
    """False: HyperLogLog, a standard deviation of 2 %; what follows is unknown then."""
    distinct: int
    in_several_partitions: int | None = None
    """Keys whose records have no order among them, and which compaction keeps more than once."""
    gini: float | None = None
    """Of records per key: 0 when all have as many, towards 1 when one has all."""
    lorenz: tuple[tuple[float, float], ...] = ()
    """(share of the keys, busiest first; share of the records that they have)."""
    top: tuple[tuple[str, int, int], ...] = ()
    """(key as text, records, bytes), the busiest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What would be left if the topic were compacted now, to its end.

    A broker leaves the active segment and the last `min.compaction.lag.ms` alone, so it comes near
    this, not to it. Bytes are uncompressed, as in `Sizes`.
    """

    records: int
    bytes: int
    """Of records with a key, as they are."""
    latest: int
    latest_bytes: int
    """The last one of each key and partition."""
    tombstones: int
    tombstone_bytes: int
    """Those of the latest that are tombstones: they go after `delete.retention.ms`."""
    without_key: int
    """Records that a compacted topic would refuse."""

    @property
    def saved(self) -> float:
        """Share of the bytes that would go, tombstones included."""
        left = self.latest_bytes - self.tombstone_bytes
        return 1 - left / self.bytes if self.bytes else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """What only the files of a topic tell: batches, and what became of transactions."""

    file_bytes: int
    """Of whole batches, as they lie on the disk."""
    batches: int
    codecs: tuple[tuple[str, int], ...]
    """Batches of each codec."""
    producers: int
    """Producer ids: idempotent or transactional producers."""
    committed: int
    aborted: int
    open: int
    """Transactions with records in a partition, each counted in every partition that it touched."""
    committed_records: int
    aborted_records: int
    open_records: int
    empty_markers: int
    """Ends of transactions whose records are gone, or that had none in the partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStats:
    """One topic."""

    topic: str
    partitions: tuple[PartitionStats, ...]
    """Those that have records."""
    sizes: Sizes
    interval_ms: int
    """Of `throughput`."""
    throughput: tuple[tuple[int, int, int], ...]
    """(begin of the interval in ms, records, bytes); intervals without records are left out."""
    keys: Keys
    compaction: Compaction | None
    """None where keys were only estimated."""
    log: LogFacts | None = None
    """None of a broker: consumers see neither batches nor markers nor what was aborted."""

    @property
    def records(self) -> int:
        """All of them."""
        return sum(one.records for one in self.partitions)

    @property
    def bytes(self) -> int:
        """Keys, values and headers."""
        return sum(one.bytes for one in self.partitions)

    @property
    def partition_skew(self) -> float:
        """Records of the largest partition over the mean of those that have any."""
        counts = [one.records for one in self.partitions]
        return max(counts) * len(counts) / sum(counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """All topics that were asked for."""

    source: str
    """Where the records were read, in words."""
    topics: tuple[TopicStats, ...]
    """Those that have records, by name."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)
