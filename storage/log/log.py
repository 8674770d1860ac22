"""One partition's log on one broker (Kafka's `UnifiedLog`): appends, reads, offsets.

What holds, always, between two calls
  1. log start offset <= last stable offset <= high watermark <= log end offset; the recovery point
     is not above the log end offset.
  2. Offsets in the log rise strictly; a batch is visible as a whole or not at all (S-READ-7).
  3. The recovery point moves only after everything below it was synced (S-FL-2).
  4. Only the active segment is written to; there is always one.

Everything here is synchronous and belongs to one thread (the event loop); a call cannot be
interrupted, so it needs no lock. Two things may run elsewhere: `PendingAppend.write` and `flush`.
While an append is pending, only reads and offset moves are allowed.

The log coordinates parts that it does not implement: `LeaderValidator` (what may be appended),
`LogSegment` (files), `ProducerStateManager` (who may append), `LeaderEpochCache`, `LogReader`,
`retention`, `times`.

Disk trouble becomes a `StorageError` and is reported to the owner of the log directory
(`connect`), which takes it offline; the log then refuses everything (S-REC-11).
`broker.replication` and the log manager call this.
"""

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CONTROL_BIT, LOG_OVERHEAD, TRANSACTIONAL_BIT, verify_crc
from protocol.records.errors import RecordsError
from storage.errors import OffsetOutOfRange, StorageError
from storage.log import replay, times
from storage.log.appending import PendingAppend, settled
from storage.log.following import FollowerBatches, UnexpectedAppendOffset
from storage.log.reading import Place, nothing
from storage.log.results import (
    AppendInfo,
    AppendOrigin,
    FetchIsolation,
    ReadInfo,
    RollReason,
    TimestampOffset,
)
from storage.log.shrinking import ShrinkingLog
from storage.log.validation import (
    LATEST_PRODUCE,
    Bytes,
    RejectedRecords,
    bad_crc,
    refusal,
)


class Log(ShrinkingLog):
    """See the module docstring. Offsets are absolute, sizes bytes, times milliseconds."""

    __slots__ = ()

    # Appending.

    def append_as_leader(
        self,
        records: Bytes,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        request_version: int = LATEST_PRODUCE,
    ) -> AppendInfo:
        """Validate one batch, give it offsets, write it (checklist B4.1). All or nothing.

        A writable `records` is patched in place. Raises KafkaError with the client's code:
        validation (`validation`), sequence and epoch errors (`storage.producers`), StorageError.
        """
        pending = self.begin_append(
            records, leader_epoch=leader_epoch, origin=origin, request_version=request_version
        )
        pending.write()
        return self.complete_append(pending)

    def begin_append(
        self,
        records: Bytes,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        request_version: int = LATEST_PRODUCE,
    ) -> PendingAppend:
        """The first third of `append_as_leader`: everything but the write. Raises as it does.

        The order is Kafka's: analyse, assign, epoch, size, roll, producer state. After this and
        until `complete_append` only reads and offset moves are allowed.
        """
        if self._pending is not None or self._offline is not None:
            self._expect_idle()  # raises
        first = self._log_end_offset
        prepared = self._validator.prepare(
            records,
            base_offset=first,
            leader_epoch=leader_epoch,
            origin=origin,
            request_version=request_version,
        )
        if prepared is None:
            info = AppendInfo(-1, -1, log_start_offset=self.log_start_offset)
            return settled(info, self.segments.active)
        header, data = prepared.header, prepared.data
        last = first + header.last_offset_delta
        try:
            if leader_epoch != self._latest_epoch:
                self._assign_epoch(leader_epoch, first)
            reason = self._make_room(len(data), first, last, header.max_timestamp)
        except OSError as error:
            self._fail(error)
        info = AppendInfo(
            first,
            last,
            header.max_timestamp,
            last,
            prepared.log_append_time,
            self.log_start_offset,
            leader_epoch,
            header.record_count,
            prepared.valid_bytes,
            False,
            reason,
        )
        pending = PendingAppend(data, (header,), self.segments.active, info, prepared.check_crc)
        if header.producer_id >= 0:
            marker = replay.marker_of(data, 0)[0] if header.attributes & CONTROL_BIT else None
            try:
                repeated = self.producers.analyze(header, origin, marker).duplicate_of
            except KafkaError:
                self._insist_on_crc(pending)
                raise
            if repeated is not None:
                self._insist_on_crc(pending)
                # Answered as the first time (S-APP-10).
                info.duplicate = True
                info.first_offset, info.last_offset = repeated.first_offset, repeated.last_offset
                info.log_append_time = repeated.timestamp
                pending.settled = True
        self._pending = pending
        return pending

    def _insist_on_crc(self, pending: PendingAppend) -> None:
        """The checksum is checked with the write, but what is never written has one, too: a damaged
        batch is CORRUPT_MESSAGE before its producer fields mean anything (S-APP-2)."""
        header = pending.headers[0]
        if pending.check_crc and not verify_crc(pending.data, 0, header):
            raise refusal(bad_crc(header, str(self.topic_partition)))

    def append_as_follower(self, records: Bytes) -> AppendInfo:
        """Append batches copied from the leader, offsets and epochs as they are (S-APP-9).

        Raises CORRUPT_MESSAGE, OffsetsOutOfOrder, UnexpectedAppendOffset, StorageError.
        """
        self._expect_idle()
        try:
            batches = FollowerBatches(records, str(self.topic_partition))
        except RecordsError as error:
            raise refusal(error) from error
        info = AppendInfo(-1, -1, log_start_offset=self.log_start_offset)
        if not batches.headers:
            return info
        first, last = batches.first_offset, batches.last_offset
        if first < self._log_end_offset:
            raise UnexpectedAppendOffset(
                str(self.topic_partition), first, last, self._log_end_offset
            )
        try:
            for header in batches.headers:
                if header.magic >= 2 and header.partition_leader_epoch > self._latest_epoch:
                    self._assign_epoch(header.partition_leader_epoch, header.base_offset)
            reason = self._make_room(len(batches.data), first, last, batches.max_timestamp)
        except OSError as error:
            self._fail(error)
        info = AppendInfo(
            first,
            last,
            batches.max_timestamp,
            batches.offset_of_max_timestamp,
            leader_epoch=batches.headers[-1].partition_leader_epoch,
            log_start_offset=self.log_start_offset,
            record_count=batches.record_count,
            valid_bytes=len(batches.data),
            rolled=reason,
        )
        pending = PendingAppend(batches.data, batches.headers, self.segments.active, info)
        self._pending = pending
        pending.write()
        return self.complete_append(pending)

    def complete_append(self, pending: PendingAppend) -> AppendInfo:
        """The last third: the batch counts now. Raises CORRUPT_MESSAGE, StorageError.

        The log end offset moves before the transaction index is written: should that fail, offsets
        still grow and the stable offset stays behind (S-TXN-3).
        """
        self._pending = None
        info = pending.info
        if pending.settled:
            return info
        if pending.error is not None:
            self._fail(pending.error)
        if pending.bad_crc:
            raise refusal(bad_crc(pending.headers[0], str(self.topic_partition)))
        segment = pending.segment
        try:
            for header in pending.headers:
                segment.note_batch(
                    header.batch_length + LOG_OVERHEAD,
                    header.base_offset + header.last_offset_delta,
                    header.max_timestamp,
                )
            end = info.last_offset + 1
            self._log_end_offset = end
            self._remember_producers(pending)
            self.producers.map_end_offset = end
            if end - self.recovery_point >= self.config.flush_messages:
                self.flush()
        except OSError as error:
            self._fail(error)
        return info

    def _make_room(self, size: int, first: int, last: int, max_timestamp: int) -> RollReason | None:
        """See to it that the active segment takes `size` bytes; says why it had to be rolled."""
        config = self.config
        if size > config.segment_bytes:
            raise RejectedRecords(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {size} bytes in append to partition "
                f"{self.topic_partition}, which exceeds the maximum configured segment size of "
                f"{config.segment_bytes}.",
            )
        reason = self.segments.active.roll_reason(
            size,
            max_timestamp,
            last,
            segment_bytes=config.segment_bytes,
            segment_ms=self._segment_ms,
            clock=self._clock,
        )
        if reason is not None:
            self._roll(first, reason)
        return reason

    def _assign_epoch(self, leader_epoch: int, first_offset: int) -> None:
        self.leader_epochs.assign(leader_epoch, first_offset)
        self._latest_epoch = leader_epoch

    def _remember_producers(self, pending: PendingAppend) -> None:
        """Producer state, transaction index and first unstable offset after an append."""
        producers = self.producers
        at, changed = 0, False
        for header in pending.headers:
            if header.producer_id >= 0:
                attributes = header.attributes
                if attributes & CONTROL_BIT:
                    completed = replay.remember(producers, header, pending.data, at)
                    if completed is not None:
                        replay.settle(producers, pending.segment, completed)
                else:
                    first = header.base_offset
                    last = first + header.last_offset_delta
                    producers.update(header, first, last, header.max_timestamp)
                if attributes & TRANSACTIONAL_BIT:
                    changed = True
            at += header.batch_length + LOG_OVERHEAD
        if changed:
            self._refresh_first_unstable()

    # Reading.

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        min_one_message: bool = True,
    ) -> ReadInfo:
        """Records from the batch that holds `offset`, up to what `isolation` lets be seen (B4.3).

        At least one whole batch with `min_one_message`, else at most `max_bytes`. Empty where the
        reader has all it may see. Raises OffsetOutOfRange, StorageError, CORRUPT_MESSAGE.
        """
        end = self._log_end_offset
        if not self.log_start_offset <= offset <= end:
            raise OffsetOutOfRange(
                offset,
                start=self.log_start_offset,
                high_watermark=self._high_watermark,
                end=end,
            )
        with_aborted = isolation is FetchIsolation.TXN_COMMITTED
        limit = self._limit(isolation)
        if offset >= limit:
            return nothing(offset, with_aborted=with_aborted)
        if self._offline is not None:
            raise StorageError(self.dir, self._offline)
        try:
            return self._reader.read(
                offset,
                max_bytes,
                limit,
                self._place_of(limit),
                min_one_message=min_one_message,
                with_aborted=with_aborted,
            )
        except OSError as error:
            self._fail(error)
        except RecordsError as error:
            raise refusal(error) from error

    def _limit(self, isolation: FetchIsolation) -> int:
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self._high_watermark
        if isolation is FetchIsolation.TXN_COMMITTED:
            return self.last_stable_offset
        return self._log_end_offset

    def _place_of(self, limit: int) -> Place:
        """Where a reader whose limit is this offset has to stop (S-READ-7)."""
        if limit == self._log_end_offset:
            active = self.segments.active
            return active, active.size
        if limit == self._high_watermark and self._hw_place is not None:
            return self._hw_place
        place = self._reader.locate(limit)
        if place is None:
            active = self.segments.active
            place = active, active.size
        if limit == self._high_watermark:
            self._hw_place = place
        return place

    def offset_for_timestamp(
        self, timestamp: int, isolation: FetchIsolation = FetchIsolation.LOG_END
    ) -> TimestampOffset | None:
        """The first record dated `timestamp` or later that `isolation` lets be seen (S-TS-2).

        Raises StorageError, CORRUPT_MESSAGE.
        """
        with self._reading():
            return times.first_record_from(
                self.segments, timestamp, self.log_start_offset, self._limit(isolation)
            )

    def max_timestamp(self) -> TimestampOffset | None:
        """The first record with the greatest timestamp (-3); None when none has one (S-TS-1)."""
        with self._reading():
            return times.latest_record(self.segments)

    def offsets_before(self, timestamp: int, most: int) -> list[int]:
        """Bases of segments last written by `timestamp`, newest first (ListOffsets v0, S-TS-5).

        -1 stands for now, the log end included; -2 for the log start.
        """
        with self._reading():
            return times.segments_before(
                list(self.segments), timestamp, most, self.log_start_offset, self._high_watermark
            )
