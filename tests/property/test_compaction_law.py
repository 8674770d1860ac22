"""The law of compaction, whatever is appended, deleted, aborted, restarted and cleaned, and when:

1. the last value of every key survives, and read_committed ends in the same state;
2. what survives has the offset, time, key and value that it had, in the same order;
3. no tombstone goes before `delete.retention.ms` has passed since it was appended;
4. below what a cleaning has reached each key is there once, and nothing of an aborted transaction;
5. the log end offset stays, and producers go on where they were.
"""

from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protocol.records.compression import CompressionType
from tests.support.compacted_log import CompactedLog, Seen

RETENTION = 1000
IDEMPOTENT = 50
KEYS = st.integers(0, 5).map(lambda number: b"k%d" % number)
PAIRS = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=30)), min_size=1, max_size=4)
CODECS = st.sampled_from(list(CompressionType))
TRANSACTIONS = st.sampled_from([1, 2])


@dataclass(slots=True)
class Appended:
    key: bytes
    value: bytes | None
    time: int
    transaction: int | None
    """Its number, which tells its outcome."""


class CompactionLaw(RuleBasedStateMachine):
    @initialize(
        segment_bytes=st.sampled_from([300, 1500, 100_000]),
        interval=st.sampled_from([0, 4096]),
        by_log=st.booleans(),
    )
    def start(self, segment_bytes: int, interval: int, by_log: bool) -> None:
        self.log = CompactedLog(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            delete_retention_ms=RETENTION,
            message_timestamp_type="LogAppendTime" if by_log else "CreateTime",
        )
        self.appended: dict[int, Appended] = {}
        self.sequences = {1: 0, 2: 0, IDEMPOTENT: 0}
        self.open: dict[int, int] = {}
        """Producer -> number of its transaction."""
        self.outcomes: dict[int, bool] = {}
        """Number -> committed."""
        self.numbers = 0
        self.end = 0

    def _appended(self, pairs: list[tuple[bytes, bytes | None]], transaction: int | None) -> None:
        now = self.log.clock.wall_ms()
        for at, (key, value) in enumerate(pairs, self.end):
            self.appended[at] = Appended(key, value, now, transaction)
        self.end += len(pairs)

    @rule(pairs=PAIRS, codec=CODECS)
    def put(self, pairs: list[tuple[bytes, bytes | None]], codec: CompressionType) -> None:
        self.log.put(*pairs, codec=codec)
        self._appended(pairs, None)

    @rule(pairs=PAIRS, codec=CODECS)
    def put_in_sequence(
        self, pairs: list[tuple[bytes, bytes | None]], codec: CompressionType
    ) -> None:
        sequence = self.sequences[IDEMPOTENT]
        self.log.put(
            *pairs,
            codec=codec,
            producer_id=IDEMPOTENT,
            producer_epoch=0,
            base_sequence=sequence,
        )
        self.sequences[IDEMPOTENT] += len(pairs)
        self._appended(pairs, None)

    @rule(pairs=PAIRS, producer=TRANSACTIONS)
    def put_in_transaction(self, pairs: list[tuple[bytes, bytes | None]], producer: int) -> None:
        if producer not in self.open:
            self.numbers += 1
            self.open[producer] = self.numbers
        self.log.transactional(producer, self.sequences[producer], *pairs)
        self.sequences[producer] += len(pairs)
        self._appended(pairs, self.open[producer])

    @precondition(lambda self: self.open)
    @rule(data=st.data(), commits=st.booleans())
    def end_transaction(self, data: st.DataObject, commits: bool) -> None:
        producer = data.draw(st.sampled_from(sorted(self.open)))
        self.outcomes[self.open.pop(producer)] = commits
        if commits:
            self.log.commit(producer)
        else:
            self.log.abort(producer)
        self.end += 1

    @rule()
    def roll(self) -> None:
        if self.log.log.segments.active.size:
            self.log.log.roll()

    @rule(ms=st.sampled_from([1, 400, RETENTION]))
    def advance(self, ms: int) -> None:
        self.log.clock.advance(ms=ms)

    @rule()
    def stop(self) -> None:
        self.log.stopped()
        self.log.log.update_high_watermark(self.end)

    @rule()
    def kill(self) -> None:
        self.log.killed()
        self.log.log.update_high_watermark(self.end)

    @rule(slots=st.sampled_from([4, 8, 1000]), step_bytes=st.sampled_from([1, 200, 1 << 20]))
    def clean(self, slots: int, step_bytes: int) -> None:
        log = self.log.log
        bound = min(log.last_stable_offset, log.segments.active.base_offset)
        segment = log.segments.floor(bound)
        assert segment is not None
        if self.log.cleaned_to >= segment.base_offset:
            return
        before = self.log.cleaned_to
        stats = self.log.clean(
            roll=False, end=segment.base_offset, map_bytes=24 * slots, step_bytes=step_bytes
        )
        assert before < stats.end_offset <= segment.base_offset
        assert stats.end_offset == segment.base_offset or slots < 1000
        self._check_cleaned(stats.end_offset)

    def _check_cleaned(self, end: int) -> None:
        below = [one for one in self.log.seen() if one.offset < end]
        keys = [one.key for one in below]
        assert len(set(keys)) == len(keys)
        assert all(self._is_committed(self.appended[one.offset]) for one in below)

    def _is_committed(self, record: Appended) -> bool:
        return record.transaction is None or self.outcomes.get(record.transaction, False)

    @invariant()
    def survivors_are_what_they_were(self) -> None:
        previous = -1
        for header, records in self.log.batches():
            if header.is_control:
                continue
            for record in records:
                was = self.appended[record.offset]
                assert (record.key, record.value, record.timestamp) == (
                    was.key,
                    was.value,
                    was.time,
                )
                assert record.offset > previous
                previous = record.offset

    @invariant()
    def the_last_of_each_key_survives(self) -> None:
        log = self.log.log
        assert log.log_end_offset == self.end
        assert log.log_start_offset == 0
        now, stable = self.log.clock.wall_ms(), log.last_stable_offset
        last = {
            record.key: (offset, record)
            for offset, record in self.appended.items()
            if offset < stable and self._is_committed(record)
        }
        seen = self.log.committed()
        there = {one.offset for one in seen}
        for offset, record in last.values():
            if record.value is not None or now < record.time + RETENTION:
                assert offset in there
        model = [Seen(at, one.key, one.value) for at, one in last.values()]
        assert self.log.state_of(seen) == self.log.state_of(sorted(model, key=lambda s: s.offset))
        log._check()


TestCompactionLaw = CompactionLaw.TestCase
TestCompactionLaw.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)


@pytest.mark.slow
class TestCompactionLawAtLength(CompactionLaw.TestCase):  # type: ignore[misc,name-defined]
    settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
