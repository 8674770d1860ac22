"""The read plan of a fetch: a byte budget, spent on the requested partitions in their order.

Rules (S-READ-4, S-READ-6, S-READ-9; `ReplicaManager.readFromLocalLog` and KIP-74)

* No partition gives more than its own limit, nor more than what is left of the request's.
* The first partition that has data gives at least one whole batch, however large it is, so that a
  consumer always makes progress; later ones keep to the limits, and may give nothing.
* In Fetch v0-2 (`hard_limit`) the first batch has no such exception: if it does not fit it comes
  cut, and the client asks again with a larger limit. Later versions never get a part of a batch.
* A consumer reads below the high watermark, with read_committed below the last stable offset and
  with the aborted transactions; a follower reads to the log end (S-READ-5).

The data is returned as a `FileSlice`: only the index is read here. A partition of a fetch session
without news costs a few comparisons and has no entry in the response.

Called by `broker.api.fetch` when a fetch comes in and when a parked one ends.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from broker.replication.partition import Partition
from broker.replication.shared_reads import SharedReads
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import AbortedTransaction, EpochEndOffset, PartitionData
from protocol.types import ZERO_UUID
from storage.errors import BeingRepaired, OffsetOutOfRange, StorageError
from storage.index.transaction_index import AbortedTxn
from storage.log.results import MOST_ABORTED, FetchIsolation

if TYPE_CHECKING:
    from storage.log.log import Log

# Unknown partitions do not end a long poll early (KafkaApis leaves them out of the wait);
# otherwise a consumer that still asks for a deleted topic would poll without pause.
_PATIENT = frozenset((ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID))

_LOG_END = FetchIsolation.LOG_END
_HIGH_WATERMARK = FetchIsolation.HIGH_WATERMARK

_Reply = PartitionData
_Aborted = AbortedTransaction


class FetchTarget:
    """One partition of a fetch: the client's request and, in a session, the last answer.

    A plain class with defaults on the class, because hundreds are made per second.
    """

    topic: str | None = None
    """None while the topic id is unknown to this broker."""
    topic_id: bytes = ZERO_UUID
    index: int = 0
    fetch_offset: int = 0
    max_bytes: int = 0
    leader_epoch: int = -1
    """The leader epoch that the client knows; -1 if none."""
    last_fetched_epoch: int = -1
    """Followers: epoch of their last record, to detect divergence."""
    log_start_offset: int = -1
    """Followers: where their log begins."""
    partition: Partition | None = None
    """The `Partition` found last; looked up again when it is unavailable."""
    known_high_watermark: int = -2
    """Sessions: the value that the client last got (-1: send it again); -2 outside of sessions."""
    known_log_start_offset: int = -2
    mark: int = 0
    """Parked fetches: `Partition.appended_bytes` at which there was nothing to read yet."""
    segment_base: int = 0
    """Parked fetches: `LogReader.end_base` when it was parked."""


class FetchParams:
    """The parameters of a fetch that hold for all of its partitions."""

    __slots__ = (
        "any_replica",
        "broker_epoch",
        "hard_limit",
        "isolation",
        "max_bytes",
        "min_bytes",
        "replica_id",
    )

    def __init__(
        self,
        *,
        replica_id: int,
        isolation: FetchIsolation,
        min_bytes: int,
        max_bytes: int,
        hard_limit: bool,
        any_replica: bool = False,
        broker_epoch: int = -1,
    ) -> None:
        self.any_replica = any_replica
        """Whether a replica that follows may answer, too: for consumers from v11 on (KIP-392)."""
        self.broker_epoch = broker_epoch
        """Followers: which life of its broker asks; -1 if it does not say."""
        self.replica_id = replica_id
        """-1: a consumer; -2: a debugging consumer; else the follower's broker id."""
        self.isolation = isolation
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.hard_limit = hard_limit
        """Fetch v0-2: limits hold even for the first batch."""


Lookup = Callable[[FetchTarget], Partition]
"""Finds a target's partition; raises KafkaError with the code for the client."""

StorageFailed = Callable[[Partition, StorageError], None]

Prefer = Callable[[FetchTarget, Partition], int]
"""The broker that a consumer should read a partition from instead; -1: from this one."""


Entry = tuple[FetchTarget, PartitionData, int]
"""A target, its `PartitionData`, and how many bytes of records that holds."""


Withhold = Callable[[Partition], bool]
"""Whether a follower gets no records of a partition for now (`throttle`)."""


class FetchRead:
    """One read of all targets: the budget that is left, and the entries read."""

    __slots__ = (
        "_aborted",
        "_hard_limit",
        "_isolation",
        "_left",
        "_min_bytes",
        "_min_one",
        "_prefer",
        "_shared",
        "_withhold",
        "entries",
        "is_due",
        "served",
        "size",
        "unfitting",
        "urgent",
    )

    def __init__(
        self,
        params: FetchParams,
        shared: SharedReads | None = None,
        prefer: Prefer | None = None,
        withhold: Withhold | None = None,
    ) -> None:
        """`shared`: reads that others may have, too; None if the caller changes its data.
        `prefer`: None if no client is sent elsewhere. `withhold`: None if nothing is throttled."""
        self._shared = shared
        self._prefer = prefer
        self._withhold = withhold
        self._left = params.max_bytes
        self._aborted = 0
        self._hard_limit = params.hard_limit
        self._min_bytes = params.min_bytes
        self._min_one = not params.hard_limit
        self._isolation = params.isolation
        self.entries: list[Entry] = []
        """In the order requested."""
        self.size = 0
        """Bytes of records in all entries."""
        self.unfitting = 0
        """Bytes that are available but did not fit, up to the limit of a partition. They count
        towards `min.bytes` as in Kafka, because waiting longer would not make them fit."""
        self.served = 0
        """How many of the partitions this broker serves: a fetch of none must not wait."""
        self.is_due = True
        """Whether the answer is given at once, even if the client would wait for more."""
        self.urgent = False
        """Whether the answer must not wait: it has an error, a diverging epoch, or a partition
        whose log goes on elsewhere than where it was read (`ReadInfo.urgent`)."""

    def run(
        self, targets: Iterable[FetchTarget], lookup: Lookup, storage_failed: StorageFailed
    ) -> None:
        """Read every target. Errors become entries, per partition."""
        add = self.entries.append
        read = self._read
        if self._prefer is not None:
            read = self._read_or_send
        elif self._withhold is not None:
            read = self._read_or_withhold
        for target in targets:
            partition = target.partition
            try:
                if partition is None or partition.unavailable:
                    partition = target.partition = lookup(target)
                self.served += 1
                before = self.size
                data = read(target, partition)
                if data is not None:
                    add((target, data, self.size - before))
            except BeingRepaired:
                # No records for now; a parked fetch is woken when the index was rebuilt.
                assert partition is not None
                add((target, _nothing(target, partition), 0))
            except KafkaError as error:
                if isinstance(error, StorageError) and partition is not None:
                    storage_failed(partition, error)
                add((target, _refused(target, error), 0))
                _count_failure(partition, error.code)
                if error.code not in _PATIENT:
                    self.urgent = True
        enough = self.size + self.unfitting >= self._min_bytes
        self.is_due = enough or self.urgent or not self.served

    def _read(self, target: FetchTarget, partition: Partition) -> PartitionData | None:
        """Return the partition's `PartitionData`; None if it has no news for the session."""
        partition.statistics.total_fetch_requests += 1
        if 0 <= target.leader_epoch != partition.leader_epoch:
            partition.compare_leader_epoch(target.leader_epoch)
        log = partition.log
        offsets = log.offsets
        high_watermark = offsets.high_watermark
        log_start = offsets.start
        offset = target.fetch_offset
        isolation = self._isolation
        # The high watermark is at hand: most reads that find nothing new need not ask the log.
        at_end = offset == (
            high_watermark if isolation is _HIGH_WATERMARK else offsets.visible_end(isolation)
        )
        diverging = None
        if target.last_fetched_epoch >= 0:
            diverging = _diverging(partition, target, log_start)
        if diverging is None and not at_end:
            if self._shared is not None:
                last = partition.last_read
                if last.offset == offset:
                    return self._read_shared(self._shared, target, partition)
                last.offset, last.data = offset, None
            data = self._read_records(log, offset, target.max_bytes)
        elif (
            diverging is None
            and high_watermark == target.known_high_watermark
            and log_start == target.known_log_start_offset
        ):
            return None
        else:
            data = _Reply()
            data.aborted_transactions = None
            data.records = b""
        data.partition_index = target.index
        data.high_watermark = high_watermark
        data.last_stable_offset = -1 if isolation is _LOG_END else offsets.last_stable
        data.log_start_offset = log_start
        if diverging is not None:
            data.diverging_epoch = diverging
            self.urgent = True
        return data

    def _read_or_send(self, target: FetchTarget, partition: Partition) -> PartitionData | None:
        """As `_read`, unless the consumer should read another replica: then say which."""
        assert self._prefer is not None
        if partition.is_following or partition.alone:
            return self._read(target, partition)
        partition.check_leader_epoch(target.leader_epoch)
        preferred = self._prefer(target, partition)
        if preferred < 0:
            return self._read(target, partition)
        data = _nothing(target, partition)
        data.preferred_read_replica = preferred
        self.urgent = True
        return data

    def _read_or_withhold(self, target: FetchTarget, partition: Partition) -> PartitionData | None:
        """As `_read`, but without records if the follower is throttled."""
        assert self._withhold is not None
        if not self._withhold(partition):
            return self._read(target, partition)
        most, min_one = target.max_bytes, self._min_one
        target.max_bytes, self._min_one = 0, False
        try:
            return self._read(target, partition)
        finally:
            target.max_bytes, self._min_one = most, min_one

    def _read_shared(
        self, shared: SharedReads, target: FetchTarget, partition: Partition
    ) -> PartitionData:
        """Read where somebody has read just before: the same `PartitionData`, if it may be."""
        log, last = partition.log, partition.last_read
        limit = target.max_bytes if target.max_bytes < self._left else self._left
        key = limit, self._min_one, self._isolation, log.reader.moment()
        data = last.data
        if data is not None and last.key == key:
            self._spend(last.size)
            return data
        urgent, self.urgent = self.urgent, False
        data = self._read_records(log, target.fetch_offset, target.max_bytes)
        data.partition_index = target.index
        data.high_watermark = log.high_watermark
        data.last_stable_offset = -1 if self._isolation is _LOG_END else log.last_stable_offset
        data.log_start_offset = log.log_start_offset
        if data.records and not data.aborted_transactions and not self.urgent:
            shared.keep(last, key, data)
        self.urgent |= urgent
        return data

    def _spend(self, size: int) -> None:
        """The answer holds `size` bytes of records more."""
        left = self._left
        self.size += size
        self._min_one = False
        self._left = left - size if left > size else 0

    def _read_records(self, log: "Log", offset: int, max_bytes: int) -> PartitionData:
        """Return a `PartitionData` with the records from `offset` on that the budget allows."""
        left = self._left
        if left < max_bytes:
            max_bytes = left
        if max_bytes < 0:
            max_bytes = 0
        info = log.read(offset, max_bytes, self._isolation, self._min_one)
        if info.urgent:
            self.urgent = True
        data = _Reply()
        aborted = info.aborted
        data.aborted_transactions = None if aborted is None else list(map(_aborted, aborted))
        if aborted:
            self._aborted += len(aborted)
            if self._aborted > MOST_ABORTED:
                left = self._left = 0  # the client gets the other partitions next time
        if info.first_entry_incomplete and not self._hard_limit:
            data.records = b""
            self.unfitting += max_bytes
            return data
        data.records = records = info.records
        size = len(records)
        if size:
            self._spend(size)
        return data


def _diverging(partition: Partition, target: FetchTarget, log_start: int) -> EpochEndOffset | None:
    """Return the `EpochEndOffset` for a follower whose log diverges from this one, else None."""
    found = partition.diverging_epoch(target.last_fetched_epoch, target.fetch_offset)
    if target.fetch_offset < log_start:
        log = partition.log
        raise OffsetOutOfRange(
            target.fetch_offset,
            start=log_start,
            high_watermark=log.high_watermark,
            end=log.log_end_offset,
        )
    if found is None:
        return None
    return EpochEndOffset(epoch=found[0], end_offset=found[1])


def _aborted(transaction: AbortedTxn) -> AbortedTransaction:
    reply = _Aborted()
    reply.producer_id = transaction.producer_id
    reply.first_offset = transaction.first_offset
    return reply


def _nothing(target: FetchTarget, partition: Partition) -> PartitionData:
    log = partition.log
    data = _Reply()
    data.partition_index = target.index
    data.high_watermark = log.high_watermark
    data.last_stable_offset = log.last_stable_offset
    data.log_start_offset = log.log_start_offset
    data.aborted_transactions = None
    data.records = b""
    return data


def refused_entry(target: FetchTarget, code: ErrorCode) -> Entry:
    """The entry of a partition that is not read, because of `code`."""
    return target, _refused(target, KafkaError(code)), 0


def _refused(target: FetchTarget, error: KafkaError) -> PartitionData:
    """Return the data for an error; an offset out of range also gets the range (S-READ-1)."""
    data = _Reply()
    data.partition_index = target.index
    data.error_code = error.code
    data.high_watermark = -1
    data.aborted_transactions = None
    data.records = b""
    if isinstance(error, OffsetOutOfRange):
        data.high_watermark = error.high_watermark
        data.log_start_offset = error.start
    return data


_EVERYDAY = frozenset(
    (
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)


def _count_failure(partition: Partition | None, code: ErrorCode) -> None:
    if partition is not None and code not in _EVERYDAY:
        partition.statistics.failed_fetch_requests += 1
