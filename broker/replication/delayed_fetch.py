"""A fetch that waits for data (S-READ-6).

It ends, and reads again, when one of its partitions

  A. is no longer served by this broker: deleted, led elsewhere (unless the fetch may read from a
     follower), or its log directory failed;
  B. has another leader epoch than the client knows (the client is fenced, or this broker behind);
  C. no longer holds the fetch offset: records were deleted or the log was truncated;
  D. received so much that the answer now has `min.bytes`: appended for a follower, below the high
     watermark for a consumer, below the last stable offset for one that reads committed data;
  E. goes on in a newer segment, where no fetch from this offset gets anything; or its limit fell
     below the fetch offset;
  F. diverges from the epoch that the client fetched last, so the client must truncate;

or when `max.wait.ms` is over, with the bytes that are available.

The bytes that arrived are not read but computed: the bytes appended since the fetch was parked
(`Partition.appended_bytes` against `FetchTarget.mark`), capped by the partition's limit. With
followers in sync this may count bytes above the watermark, and bytes that did not fit at first
(`FetchRead.unfitting`) may count twice; then the fetch ends a little early, never late. Only the
partition that changed is checked, so an append wakes a consumer of a thousand idle partitions as
cheaply as one of a single partition.

Thousands may wait for the same append, in whose turn each costs a comparison and a signal: a fetch
that is content with any byte is due as soon as there is one, and nothing is read or removed there
(`Purgatory.wait`).

Made by `broker.api.fetch`. After `kafka.server.DelayedFetch`.
"""

from collections.abc import Collection, Hashable, Iterable

from broker.replication.partition import Partition
from broker.replication.purgatory import DelayedOperation
from broker.replication.read_plan import FetchParams, FetchRead, FetchTarget, Withhold
from protocol.errors import KafkaError


class DelayedFetch(DelayedOperation):
    """A parked fetch: ends when it has enough bytes, when a partition changed, or by timeout."""

    __slots__ = (
        "_any_replica",
        "_counted",
        "_isolation",
        "_min_bytes",
        "_targets",
        "_total",
        "_withhold",
    )

    def __init__(
        self,
        targets: Iterable[FetchTarget],
        params: FetchParams,
        first: FetchRead,
        withhold: Withhold | None = None,
    ) -> None:
        """`first` is the read that did not suffice. `withhold`: partitions that give no bytes."""
        super().__init__()
        self._any_replica = params.any_replica
        self._withhold = withhold
        self._isolation = params.isolation
        self._min_bytes = params.min_bytes
        self._total = first.size + first.unfitting
        self._targets: dict[Hashable, FetchTarget] = {
            target.partition.topic_partition: target
            for target in targets
            if target.partition is not None
        }
        self._counted: dict[Hashable, int] = {}
        if params.min_bytes > 1:
            self._count(first)

    def _count(self, first: FetchRead) -> None:
        """Note from where on bytes count."""
        for target in self._targets.values():
            partition = target.partition
            assert partition is not None
            target.mark = partition.appended_bytes
            target.segment_base = partition.log.reader.end_base(self._isolation)
        for target, _, size in first.entries:
            partition = target.partition
            if partition is not None and size:
                target.mark -= size
                self._counted[partition.topic_partition] = size

    @property
    def keys(self) -> Collection[Hashable]:
        """The partitions to watch."""
        return self._targets.keys()

    def is_complete(self, key: Hashable | None = None) -> bool:
        """Check the partition that changed, or all of them, for cases A to F."""
        return self._is_due(key) if key is not None else any(map(self._is_due, self._targets))

    def _is_due(self, key: Hashable) -> bool:
        target = self._targets[key]
        partition = target.partition
        if partition is None or (
            partition.unavailable and not (self._any_replica and partition.is_following)
        ):  # A
            return True
        if 0 <= target.leader_epoch != partition.leader_epoch:  # B
            return True
        if self._withhold is not None and self._withhold(partition):
            return False
        log = partition.log
        offset = target.fetch_offset
        end = log.offsets.visible_end(self._isolation)
        if end != offset:
            if end < offset or self._min_bytes <= 1:  # E, D
                return True
            if offset < log.log_start_offset:  # C
                return True
            if log.reader.end_base(self._isolation) > target.segment_base:  # E
                return True
        if target.last_fetched_epoch >= 0 and _diverges(partition, target):  # F
            return True
        if end == offset:
            return False
        arrived = partition.appended_bytes - target.mark
        # At least 1: the watermark may have passed bytes appended before the fetch was parked.
        arrived = min(max(arrived, 1), target.max_bytes)
        self._total += arrived - self._counted.get(key, 0)
        self._counted[key] = arrived
        return self._total >= self._min_bytes  # D


def _diverges(partition: Partition, target: FetchTarget) -> bool:
    try:
        found = partition.diverging_epoch(target.last_fetched_epoch, target.fetch_offset)
    except KafkaError:
        return True
    return found is not None
