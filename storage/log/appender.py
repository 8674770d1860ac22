"""Appending to a log: validating a batch, placing it, and the changes once it is written.

An append has three steps (`storage.log.appending`). While one is pending only reads and moves of
offsets are allowed; `expect_idle` raises for the rest. Small appends go through all steps in one
call.

This runs for every batch of every produce request, so calls are saved where possible.
"""

from config.topic_config import TopicConfig
from protocol.errors import KafkaError
from protocol.records.batch import CONTROL_BIT, LOG_OVERHEAD, TRANSACTIONAL_BIT, verify_crc
from protocol.records.errors import RecordsError
from protocol.types import TopicPartition
from storage.epochs import LeaderEpochCache
from storage.errors import NoMoreOffsets
from storage.log import replay
from storage.log.appending import PendingAppend, settled
from storage.log.durability import Durability
from storage.log.following import FollowerBatches, UnexpectedAppendOffset
from storage.log.guard import DiskGuard
from storage.log.markers import marker_of
from storage.log.offsets import LogOffsets
from storage.log.opening import Opened, Opening
from storage.log.results import AppendInfo, AppendOrigin
from storage.log.rolling import Roller
from storage.log.store import SegmentStore
from storage.log.validation import (
    LATEST_PRODUCE,
    Bytes,
    LeaderValidator,
    bad_crc,
    refusal,
)
from storage.paths import MAX_OFFSET
from storage.producers.state import ProducerStateManager
from storage.waits import at_once


class Appender:
    """Appends to one log. Offsets are absolute, sizes bytes, times milliseconds."""

    __slots__ = (
        "_clock",
        "_config",
        "_durability",
        "_epochs",
        "_guard",
        "_offsets",
        "_pending",
        "_producers",
        "_roller",
        "_segments",
        "_topic_partition",
        "_validator",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        store: SegmentStore,
        offsets: LogOffsets,
        producers: ProducerStateManager,
        epochs: LeaderEpochCache,
        durability: Durability,
        roller: Roller,
        guard: DiskGuard,
    ) -> None:
        self._topic_partition = topic_partition
        self._segments = store.segments
        self._clock = store.clock
        self._offsets = offsets
        self._producers = producers
        self._epochs = epochs
        self._durability = durability
        self._roller = roller
        self._guard = guard
        self._pending: PendingAppend | None = None
        self.configure(store.config)

    def configure(self, config: TopicConfig) -> None:
        """Use this topic configuration from now on."""
        self._config = config
        self._validator = LeaderValidator(config, self._clock, str(self._topic_partition))

    @property
    def is_idle(self) -> bool:
        """Whether no append is pending."""
        return self._pending is None

    def expect_idle(self) -> None:
        """Raises StorageError if the log is out of service, and RuntimeError, for a bug, while an
        append is pending."""
        self._guard.check()
        if self._pending is not None:
            raise RuntimeError(f"{self._topic_partition}: an append is under way")

    # Leader.

    def append_as_leader(
        self,
        records: Bytes,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        request_version: int = LATEST_PRODUCE,
    ) -> AppendInfo:
        """Validate one batch, give it offsets, write it in the order of S-APP-13. All or nothing.

        A writable `records` is patched in place. Raises KafkaError with the client's code:
        validation (`validation`), sequence and epoch errors (`storage.producers`), StorageError.
        """
        pending = self.begin_append(
            records,
            leader_epoch=leader_epoch,
            origin=origin,
            request_version=request_version,
            bounded=False,
        )
        assert isinstance(pending, PendingAppend)
        pending.write()
        return self.complete_append(pending)

    def append_if_light(
        self,
        records: Bytes,
        *,
        leader_epoch: int,
        origin: AppendOrigin,
        request_version: int,
        opened: Opened | None,
    ) -> AppendInfo | Opening:
        """`append_as_leader` with little effort.

        Returns the `Opening`, with nothing changed, if the batch has to be opened first; `opened`
        is its result.
        """
        pending = self.begin_append(
            records,
            leader_epoch=leader_epoch,
            origin=origin,
            request_version=request_version,
            opened=opened,
        )
        if isinstance(pending, Opening):
            return pending
        pending.write()
        return self.complete_append(pending)

    def begin_append(
        self,
        records: Bytes,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        request_version: int = LATEST_PRODUCE,
        opened: Opened | None = None,
        bounded: bool = True,
    ) -> PendingAppend | Opening:
        """The first step of an append: everything before the write. Raises as the append does.

        The order is Kafka's: analyse, assign, epoch, size, roll, producer state. From here until
        `complete_append` only reads and offset moves are allowed. If `bounded`, returns the
        `Opening` if the batch has to be opened first.
        """
        if self._pending is not None or self._guard.offline is not None:
            self.expect_idle()  # raises
        offsets = self._offsets
        first = offsets.end
        prepared = self._validator.prepare(
            records,
            base_offset=first,
            leader_epoch=leader_epoch,
            origin=origin,
            request_version=request_version,
            opened=opened,
            bounded=bounded,
        )
        if prepared is None:
            return self._nothing_to_append()
        if isinstance(prepared, Opening):
            return prepared
        header, data = prepared.header, prepared.data
        last = first + header.last_offset_delta
        if last >= MAX_OFFSET:
            raise NoMoreOffsets(str(self._topic_partition), first)
        try:
            if leader_epoch != self._epochs.latest:
                self._epochs.assign(leader_epoch, first)
            reason = self._roller.reason_for(len(data), last, header.max_timestamp)
            if reason is not None:
                self._roller.roll(first, reason)
            info = AppendInfo(
                first,
                last,
                header.max_timestamp,
                last,
                prepared.log_append_time,
                offsets.start,
                leader_epoch,
                header.record_count,
                prepared.valid_bytes,
            )
            info.rolled = reason
            pending = PendingAppend(data, (header,), self._segments.active, info, prepared.opening)
        except OSError as error:
            self._guard.fail(error)
        if header.producer_id >= 0:
            marker = marker_of(data, 0)[0] if header.attributes & CONTROL_BIT else None
            try:
                repeated = self._producers.analyze(header, origin, marker).duplicate_of
            except KafkaError:
                self._insist_on_crc(pending)
                raise
            if repeated is not None:
                self._insist_on_crc(pending)
                # A duplicate gets the answer of the first time (S-APP-10).
                info.duplicate = True
                info.first_offset, info.last_offset = repeated.first_offset, repeated.last_offset
                info.log_append_time = repeated.timestamp
                pending.settled = True
            elif marker is not None and not marker.is_commit:
                with self._guard.writing():
                    pending.segment.aborted.index.prepare()
        self._pending = pending
        return pending

    def _nothing_to_append(self) -> PendingAppend:
        info = AppendInfo(-1, -1, log_start_offset=self._offsets.start)
        with self._guard.writing():
            return settled(info, self._segments.active)

    def _insist_on_crc(self, pending: PendingAppend) -> None:
        """Check the checksum of a batch that will not be written; otherwise `write` checks it.

        A damaged batch is CORRUPT_MESSAGE, whatever its producer fields say (S-APP-2).
        """
        header = pending.headers[0]
        if pending.opening is not None and not verify_crc(pending.data, 0, header):
            raise refusal(bad_crc(header, str(self._topic_partition)))

    # Follower.

    def append_as_follower(self, records: Bytes) -> AppendInfo:
        """Append batches copied from the leader, offsets and epochs as they are (S-APP-9).

        Raises CORRUPT_MESSAGE, OffsetsOutOfOrder, UnexpectedAppendOffset, StorageError.
        """
        self.expect_idle()
        try:
            batches = FollowerBatches(records, str(self._topic_partition))
        except RecordsError as error:
            raise refusal(error) from error
        pending = self.begin_append_as_follower(batches)
        pending.write()
        return self.complete_append(pending)

    def begin_append_as_follower(self, batches: FollowerBatches) -> PendingAppend:
        """The first step of `append_as_follower`, for batches that were checked elsewhere.

        Raises UnexpectedAppendOffset, RECORD_LIST_TOO_LARGE, StorageError.
        """
        self.expect_idle()
        if not batches.headers:
            return self._nothing_to_append()
        first, last = batches.first_offset, batches.last_offset
        if first < self._offsets.end:
            raise UnexpectedAppendOffset(str(self._topic_partition), first, last, self._offsets.end)
        try:
            for header in batches.headers:
                if header.magic >= 2 and header.partition_leader_epoch > self._epochs.latest:
                    self._epochs.assign(header.partition_leader_epoch, header.base_offset)
            reason = self._roller.reason_for(len(batches.data), last, batches.max_timestamp)
            if reason is not None:
                self._roller.roll(first, reason)
            info = AppendInfo(
                first,
                last,
                batches.max_timestamp,
                batches.offset_of_max_timestamp,
                leader_epoch=batches.headers[-1].partition_leader_epoch,
                log_start_offset=self._offsets.start,
                record_count=batches.record_count,
                valid_bytes=len(batches.data),
            )
            info.rolled = reason
            pending = PendingAppend(batches.data, batches.headers, self._segments.active, info)
        except OSError as error:
            self._guard.fail(error)
        self._pending = pending
        return pending

    # Both.

    def complete_append(self, pending: PendingAppend) -> AppendInfo:
        """The last step: make the written batch part of the log. Raises KafkaError, StorageError.

        The log end offset moves before the transaction index is written: if that write fails, the
        batch keeps its offsets and the last stable offset stays behind (S-TXN-3).
        """
        self._pending = None
        info = pending.info
        if pending.settled:
            return info
        if pending.error is not None:
            self._guard.fail(pending.error)
        if self._guard.offline is not None:
            self._guard.check()  # raises
        if pending.refused is not None:
            raise pending.refused
        segment, producers = pending.segment, self._producers
        if pending.opening is not None:
            info.max_timestamp = pending.headers[0].max_timestamp
        try:
            for header in pending.headers:
                segment.note_batch(
                    header.batch_length + LOG_OVERHEAD,
                    header.base_offset + header.last_offset_delta,
                    header.max_timestamp,
                )
            end = info.last_offset + 1
            self._offsets.end = end
            self._remember_producers(pending)
            producers.map_end_offset = end
            durability = self._durability
            if end - durability.recovery_point >= self._config.flush_messages:
                at_once(durability.flush())
        except OSError as error:
            self._guard.fail(error)
        return info

    def _remember_producers(self, pending: PendingAppend) -> None:
        """Update producer state, transaction index and first unstable offset after an append."""
        producers = self._producers
        at, changed = 0, False
        for header in pending.headers:
            if header.producer_id >= 0:
                attributes = header.attributes
                if attributes & CONTROL_BIT:
                    completed = replay.remember(producers, header, pending.data, at)
                    if completed is not None:
                        replay.settle(producers, pending.segment, completed)
                        if completed.is_aborted:
                            # The transaction index may be a new name in the directory.
                            self._durability.note_change(pending.segment)
                else:
                    first = header.base_offset
                    last = first + header.last_offset_delta
                    producers.update(header, first, last, header.max_timestamp)
                if attributes & TRANSACTIONAL_BIT:
                    changed = True
            at += header.batch_length + LOG_OVERHEAD
        if changed:
            self._offsets.refresh_first_unstable()
