"""Numbers of the fetchers, as metrics and `pykafkalog cluster` read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from protocol.types import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherStatistics:
    """One fetcher (`kafka.server:type=FetcherStats` and `FetcherLagMetrics`)."""

    leader: int
    number: int
    requests: int
    """Fetches sent since the fetcher began."""
    bytes: int
    """Bytes of records appended."""
    lags: Mapping[TopicPartition, int]
    """Records that each partition is behind its leader's high watermark; -1: not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchingStatistics:
    """All fetchers (`kafka.server:type=ReplicaFetcherManager`)."""

    fetchers: tuple[FetcherStatistics, ...] = ()
    failed: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Partitions that are not copied any more until the controller says so, and why
    (`FailedPartitionsCount`)."""

    @property
    def max_lag(self) -> int:
        """The greatest lag of a partition (`MaxLag`)."""
        return max((max(one.lags.values(), default=0) for one in self.fetchers), default=0)
