"""A `Log` against a plain list of batches: whatever happens to it, it reads back what it was given.

The machine appends as leader and as follower, rolls, truncates, deletes, lets retention work, stops
in order, is killed, loses power, and reads by offset and by time.
"""

import random
from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from config.topic_config import TopicConfig
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.record import iter_records
from protocol.types import TopicPartition
from storage.errors import OffsetOutOfRange
from storage.log.log import Log
from storage.log.results import FetchIsolation, FileSlice, StartOffsetReason
from storage.recovery import LoadOptions, load_log
from storage.waits import at_once
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.manual_clock import ManualClock
from tests.support.time_lookups import offset_for_timestamp

TP = TopicPartition("model", 0)
DIRECTORY = "/logs/model-0"
CODECS = st.sampled_from([CompressionType.NONE, CompressionType.LZ4, CompressionType.GZIP])
VALUES = st.lists(st.binary(max_size=40), min_size=1, max_size=4)
PRODUCER = 7


@dataclass
class Batch:
    base: int
    last: int
    records: list[tuple[int, int, bytes]]
    """(offset, timestamp, value)"""


class LogMachine(RuleBasedStateMachine):
    @initialize(
        segment_bytes=st.sampled_from([300, 700, 100_000]),
        interval=st.sampled_from([0, 100, 4096]),
        index_size=st.sampled_from([24, 48, 10_000]),
        retention_bytes=st.sampled_from([-1, 600]),
        append_time=st.booleans(),
    )
    def start(
        self,
        segment_bytes: int,
        interval: int,
        index_size: int,
        retention_bytes: int,
        append_time: bool,
    ) -> None:
        self.fs = FaultyFileSystem()
        self.fs.make_dirs(DIRECTORY)
        self.clock = ManualClock()
        self.append_time = append_time
        self.config = TopicConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            segment_index_bytes=index_size,
            retention_bytes=retention_bytes,
            retention_ms=3_600_000,
            segment_ms=600_000,
            segment_jitter_ms=1000,
            file_delete_delay_ms=0,
            message_timestamp_type="LogAppendTime" if append_time else "CreateTime",
        )
        self.batches: list[Batch] = []
        self.start_offset = 0
        self.end = 0
        self.high_watermark = 0
        self.sequence = 0
        self.checkpointed_recovery_point = 0
        self.epoch = 0
        self.log = self._load(clean=True)

    def _load(self, *, clean: bool) -> Log:
        options = LoadOptions(
            config=self.config,
            clean=clean,
            log_start_offset=self.start_offset,
            recovery_point=self.checkpointed_recovery_point,
        )
        return load_log(self.fs, self.clock, DIRECTORY, TP, options, random.Random(1))

    # Growing.

    @rule(
        values=VALUES,
        codec=CODECS,
        age=st.integers(-500, 1000),
        idempotent=st.booleans(),
    )
    def append_as_leader(
        self, values: list[bytes], codec: CompressionType, age: int, idempotent: bool
    ) -> None:
        if self.append_time:
            stamps = [self.clock.wall_ms()] * len(values)
        else:
            stamps = [self.clock.wall_ms() - age + 7 * at % 13 for at in range(len(values))]
        # A producer whose data was truncated away goes on as the log remembers it.
        known = self.log.producers.entry(PRODUCER) if idempotent else None
        sequence = known.last_sequence + 1 if known is not None else 0
        data = build_batch(
            [(stamp, b"k", value, ()) for stamp, value in zip(stamps, values, strict=True)],
            codec=codec,
            producer_id=PRODUCER if idempotent else -1,
            producer_epoch=0 if idempotent else -1,
            base_sequence=sequence if idempotent else -1,
        )
        info = self.log.append_as_leader(data, leader_epoch=self.epoch)
        assert (info.first_offset, info.last_offset) == (self.end, self.end + len(values) - 1)
        if idempotent:
            again = self.log.append_as_leader(data, leader_epoch=self.epoch)
            assert again.duplicate
            assert (again.first_offset, again.last_offset) == (info.first_offset, info.last_offset)
        self._grown(self.end, stamps, values)

    @rule(values=VALUES, gap=st.sampled_from([0, 0, 0, 1, 5]), batches=st.integers(1, 3))
    def append_as_follower(self, values: list[bytes], gap: int, batches: int) -> None:
        data, grown, first = b"", [], self.end + gap
        for _ in range(batches):
            stamps = [self.clock.wall_ms() - at for at in range(len(values))]
            data += build_batch(
                [(stamp, None, value, ()) for stamp, value in zip(stamps, values, strict=True)],
                base_offset=first,
                leader_epoch=self.epoch,
            )
            grown.append((first, stamps))
            first += len(values)
        if len(data) > self.config.segment_bytes:
            return
        info = self.log.appender.append_as_follower(data + data[:20])
        assert info.last_offset == first - 1
        for base, stamps in grown:
            self._grown(base, stamps, values)

    def _grown(self, base: int, stamps: list[int], values: list[bytes]) -> None:
        records = [
            (base + at, stamp, value)
            for at, (stamp, value) in enumerate(zip(stamps, values, strict=True))
        ]
        self.end = base + len(values)
        self.batches.append(Batch(base, self.end - 1, records))

    @rule()
    def new_leader_epoch(self) -> None:
        self.epoch += 1

    @rule(seconds=st.sampled_from([1, 400, 4000]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(share=st.floats(0, 1))
    def high_watermark_moves(self, share: float) -> None:
        target = self.high_watermark + round((self.end - self.high_watermark) * share)
        assert self.log.update_high_watermark(target) == (target != self.high_watermark)
        self.high_watermark = target

    # Shrinking.

    @precondition(lambda self: self.end > self.start_offset)
    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        target = self.start_offset + round((self.end - self.start_offset) * share)
        self.log.truncate_to(target)
        self.batches = [batch for batch in self.batches if batch.last < target]
        self.end = min(self.end, target)
        self._ends_moved()

    @rule(ahead=st.integers(0, 20))
    def start_over(self, ahead: int) -> None:
        target = self.end + ahead
        self.log.truncate_fully_and_start_at(target)
        self.batches.clear()
        self.start_offset = self.end = target
        self.high_watermark = target

    def _ends_moved(self) -> None:
        self.high_watermark = min(self.high_watermark, self.end)
        self.checkpointed_recovery_point = min(self.checkpointed_recovery_point, self.end)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        span = self.high_watermark - self.start_offset
        target = self.start_offset + round(span * share)
        reason = StartOffsetReason.CLIENT_RECORD_DELETION
        moved = self.log.maybe_increment_log_start_offset(target, reason)
        assert moved == (target > self.start_offset)
        self.start_offset = target

    @rule()
    def retention(self) -> None:
        size = self.log.size
        gone = self.log.delete_old_segments()
        assert sum(deleted.size for deleted in gone) == size - self.log.size
        assert self.start_offset <= self.log.log_start_offset <= self.high_watermark
        self.start_offset = self.log.log_start_offset
        if self.config.retention_bytes >= 0 and gone and self.log.size:
            assert self.log.size >= 0
        for pending in self.log.store.take_pending():
            self.fs.unlink(pending.path, missing_ok=True)

    # Stopping and starting.

    @rule()
    def flush(self) -> None:
        at_once(self.log.flush())
        assert self.log.recovery_point == self.end
        self.checkpointed_recovery_point = self.end

    @rule()
    def stop_and_start(self) -> None:
        at_once(self.log.flush())
        at_once(self.log.close())
        self._reopened(clean=True)
        assert self.log.recovery_point == self.end

    @rule()
    def killed(self) -> None:
        if self._has_hole():
            # An unsynced hole between two segments looks like a lost end of the first.
            self.flush()
        self.fs = self.fs.crash(keep_unsynced=True)
        self._reopened(clean=False)

    def _has_hole(self) -> bool:
        bases = [*(batch.base for batch in self.batches[1:]), self.end]
        return any(batch.last + 1 != at for batch, at in zip(self.batches, bases, strict=False))

    @rule()
    def power_lost(self) -> None:
        at_once(self.log.flush())  # the model does not know which unsynced batches survive
        self.checkpointed_recovery_point = self.end
        self.fs = self.fs.crash()
        self._reopened(clean=False)

    def _reopened(self, *, clean: bool) -> None:
        self.log = self._load(clean=clean)
        # A truncation in the middle of a batch leaves an end that no file has.
        least = max([self.start_offset, *(batch.last + 1 for batch in self.batches)])
        assert least <= self.log.log_end_offset <= self.end
        self.end = self.log.log_end_offset
        self._ends_moved()
        self.log.update_high_watermark(self.high_watermark)

    # Reading.

    @rule(
        share=st.floats(0, 1),
        max_bytes=st.sampled_from([1, 200, 1_000_000]),
        isolation=st.sampled_from(list(FetchIsolation)),
    )
    def read(self, share: float, max_bytes: int, isolation: FetchIsolation) -> None:
        offset = self.start_offset + round((self.end - self.start_offset) * share)
        limit = self.end if isolation is FetchIsolation.LOG_END else self.high_watermark
        info = self.log.read(offset, max_bytes, isolation)
        data = info.records.read() if isinstance(info.records, FileSlice) else info.records
        assert len(data) == len(info.records)
        # Whole batches below the limit, from the one that holds the offset.
        wanted = [b for b in self.batches if b.last >= offset and b.last < limit]
        got = []
        for position, header in iter_batches(data):
            got.append((header.base_offset, header.last_offset))
            records = [(r.offset, r.timestamp, r.value) for r in iter_records(data, position)]
            batch = next(b for b in wanted if b.base == header.base_offset)
            assert records == batch.records
        assert got == [(b.base, b.last) for b in wanted[: len(got)]]
        if wanted and wanted[0].base < limit:
            assert got, (info, wanted[0])
        assert not info.first_entry_incomplete

    @rule(share=st.floats(0, 1))
    def follow_to_the_end(self, share: float) -> None:
        offset = self.start_offset + round((self.end - self.start_offset) * share)
        expected = [r for b in self.batches for r in b.records if b.last >= offset]
        got: list[tuple[int, int, bytes]] = []
        while True:
            info = self.log.read(offset, 150, FetchIsolation.LOG_END)
            if not info.records:
                break
            data = info.records.read()
            before = offset
            for position, header in iter_batches(data):
                got += [(r.offset, r.timestamp, r.value) for r in iter_records(data, position)]
                offset = header.last_offset + 1
            assert offset > before, info
        assert got == expected
        assert offset <= self.end

    @rule(back=st.integers(0, 5000), ahead=st.integers(0, 5000))
    def find_time(self, back: int, ahead: int) -> None:
        timestamp = self.clock.wall_ms() - back * 1000 + ahead
        found = offset_for_timestamp(self.log, timestamp)
        expected = next(
            (
                (offset, stamp)
                for batch in self.batches
                for offset, stamp, _ in batch.records
                if stamp >= timestamp and offset >= self.start_offset
            ),
            None,
        )
        assert (found and (found.offset, found.timestamp)) == expected

    @invariant()
    def ends_agree(self) -> None:
        log = self.log
        assert log.log_end_offset == self.end
        assert log.log_start_offset == self.start_offset
        assert log.high_watermark == self.high_watermark
        for offset in (self.start_offset - 1, self.end + 1):
            with pytest.raises(OffsetOutOfRange):
                log.read(offset, 100)

    @invariant()
    def log_is_sound(self) -> None:
        self.log._check()
        for segment in self.log.segments:
            segment.indexes.offset._check()
            segment.indexes.time._check()


LogMachine.TestCase.settings = settings(
    max_examples=30, stateful_step_count=25, deadline=None, print_blob=True
)
TestLogModel = LogMachine.TestCase
