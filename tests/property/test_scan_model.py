"""A plan that is read in columns gives the same records as a walk through the log.

Over logs with small segments, every codec, transactions, compaction and removed beginnings, with
ranges of offsets, times and any size of tasks, for both isolation levels and any high watermark
that a checkpoint may have; whether the indexes are there, cut, or those of another moment.
"""

import pickle
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType
from protocol.types import TopicPartition
from storage.checkpoint import encode_offsets
from storage.log.results import StartOffsetReason
from storage.reader import PartitionView
from storage.reader.scan import (
    EARLIEST,
    LATEST,
    IsolationLevel,
    Position,
    Positions,
    ScanRequest,
    plan,
)
from tests.support.compacted_log import CompactedLog
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_builder import DIRECTORY
from tests.support.scanning import Plain, plain_records, read_plan, row_of

TP = TopicPartition("t", 0)
HEADERS = st.lists(
    st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3
).map(tuple)
RECORDS = st.lists(
    st.tuples(
        st.integers(-50, 50),
        st.integers(0, 5).map(b"k%d".__mod__),
        st.none() | st.binary(max_size=200),
        HEADERS,
    ),
    min_size=1,
    max_size=6,
)
CODECS = st.sampled_from(list(CompressionType))
PRODUCERS = st.sampled_from([1, 2])


FRACTION = st.floats(0, 1)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), RECORDS, CODECS),
        st.tuples(st.just("in transaction"), RECORDS, CODECS, PRODUCERS),
        st.tuples(st.just("in transaction"), RECORDS, CODECS, PRODUCERS),
        st.tuples(st.just("end"), PRODUCERS, st.booleans()),
        st.tuples(st.just("end"), PRODUCERS, st.booleans()),
        st.tuples(st.sampled_from(["clean", "roll", "wait"])),
        st.tuples(st.just("delete records"), st.floats(0, 0.5)),
    ),
    min_size=8,
    max_size=25,
)
PLACES = st.one_of(
    st.just(("earliest", 0.0)),
    st.just(("latest", 0.0)),
    st.tuples(st.sampled_from(["offset", "timestamp"]), st.floats(-0.1, 1.1)),
)
QUESTIONS = st.lists(
    st.fixed_dictionaries(
        {
            "start": PLACES,
            "end": PLACES,
            "since": st.none() | FRACTION,
            "before": st.none() | FRACTION,
            "lateness": st.sampled_from([None, 100_000]),
            "committed": st.booleans(),
            "high_watermark": st.none() | FRACTION,
            "split": st.sampled_from([0, 150, 400]),
            "fewer": st.sampled_from([0, 1, 2, 7]),
            "damage": st.sampled_from([None, None, "missing", "cut", "nonsense"]),
            "batch_rows": st.sampled_from([None, 2]),
        }
    ),
    min_size=3,
    max_size=5,
)


@settings(max_examples=10, deadline=None)
@given(operations=OPERATIONS, questions=QUESTIONS)
def test_columns_are_what_a_walk_finds(
    operations: list[tuple[Any, ...]], questions: list[dict[str, Any]]
) -> None:
    compare(operations, questions)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(operations=OPERATIONS, questions=QUESTIONS)
def test_columns_are_what_a_walk_finds_at_length(
    operations: list[tuple[Any, ...]], questions: list[dict[str, Any]]
) -> None:
    compare(operations, questions)


def compare(operations: list[tuple[Any, ...]], questions: list[dict[str, Any]]) -> None:
    """A log to which these things happened, asked these questions."""
    history = History()
    for name, *arguments in operations:
        getattr(history, name.replace(" ", "_"))(*arguments)
    for question in questions:
        history.ask(question)


@dataclass
class Transaction:
    """One that began; `marker` is the offset of its end."""

    producer_id: int
    first_offset: int
    marker: int | None = None
    is_aborted: bool = False


class History:
    """A log to which things happen."""

    def __init__(self) -> None:
        self.log = CompactedLog(
            segment_bytes=600, index_interval_bytes=100, delete_retention_ms=10**6
        )
        self.sequences = {1: 0, 2: 0}
        self.transactions: list[Transaction] = []

    @property
    def going(self) -> dict[int, "Transaction"]:
        """The open transaction of each producer that has one."""
        return {one.producer_id: one for one in self.transactions if one.marker is None}

    def append(self, records: list[Any], codec: CompressionType, **fields: Any) -> None:
        now = self.log.clock.wall_ms()
        dated = [(now + delta, key, value, headers) for delta, key, value, headers in records]
        batch = bytearray(build_batch(dated, codec=codec, **fields))
        self.log.log.append_as_leader(batch, leader_epoch=0)
        self.log.log.update_high_watermark(self.log.log.log_end_offset)

    def in_transaction(self, records: list[Any], codec: CompressionType, producer: int) -> None:
        if producer not in self.going:
            self.transactions.append(Transaction(producer, self.log.log.log_end_offset))
        self.append(
            records,
            codec,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.sequences[producer],
            transactional=True,
        )
        self.sequences[producer] += len(records)

    def end(self, producer: int, commit: bool) -> None:
        transaction = self.going.get(producer)
        if transaction is not None:
            transaction.marker = self.log.log.log_end_offset
            transaction.is_aborted = not commit
            self.log.end_transaction(producer, ControlType.COMMIT if commit else ControlType.ABORT)

    def clean(self) -> None:
        if not self.going:
            self.log.clean()

    def roll(self) -> None:
        if self.log.log.segments.active.size:
            self.log.log.roll()

    def wait(self) -> None:
        self.log.clock.advance(ms=20)

    def delete_records(self, share: float) -> None:
        log = self.log.log
        first, end = log.log_start_offset, log.high_watermark
        log.maybe_increment_log_start_offset(
            int(first + (end - first) * share), StartOffsetReason.CLIENT_RECORD_DELETION
        )
        log.delete_old_segments()

    def ask(self, question: dict[str, Any]) -> None:
        log = self.log.log
        for segment in log.segments:
            segment.write_index_entries()
        fs = self.log.fs.crash(keep_unsynced=True)
        everything = plain_records(PartitionView(DIRECTORY, fs))
        first, end = log.log_start_offset, log.log_end_offset
        high = end
        fs.write_atomic("/logs/log-start-offset-checkpoint", [encode_offsets([(TP, first)])])
        if question["high_watermark"] is not None:
            # It lies between two batches, and not below the offset that a cleaning has reached.
            places = [
                batch.header.next_offset
                for segment in PartitionView(DIRECTORY, fs).segments()
                for batch in segment.batches()
                if batch.header.next_offset >= max(first, self.log.cleaned_to)
            ] or [end]
            high = places[int((len(places) - 1) * question["high_watermark"])]
            fs.write_atomic("/logs/replication-offset-checkpoint", [encode_offsets([(TP, high)])])
        damage_files(fs, question["damage"])
        times = [one.record.timestamp for one in everything] or [0]

        def moment(share: float | None) -> int | None:
            if share is None:
                return None
            return int(min(times) + (max(times) - min(times)) * share)

        def place(kind: str, share: float) -> Position:
            if kind == "offset":
                return Position.offset(int(end * share))
            if kind == "timestamp":
                return Position.timestamp(moment(share) or 0)
            return EARLIEST if kind == "earliest" else LATEST

        committed = question["committed"]
        request = ScanRequest(
            directories=("/logs",),
            start=Positions(place(*question["start"])),
            end=Positions(LATEST, {TP: place(*question["end"])}),
            timestamps=(moment(question["since"]), moment(question["before"])),
            lateness_ms=question["lateness"],
            isolation=IsolationLevel.READ_COMMITTED
            if committed
            else IsolationLevel.READ_UNCOMMITTED,
            split_bytes=question["split"],
            split_offsets=question["fewer"],
        )
        planned = pickle.loads(pickle.dumps(plan(request, fs)))
        snapshots = question["damage"] is None
        limit, gone = (
            self.committed(everything, first, high, snapshots) if committed else (high, set())
        )
        low, up = (
            resolved(one, everything, first, limit)
            for one in (request.start.default, request.end.of(TP))
        )
        since, before = request.timestamps
        expected = [
            row_of(one, "t", 0)
            for one in everything
            if not one.is_control
            and low <= one.record.offset < up
            and one.record.offset not in gone
            and (since is None or one.record.timestamp >= since)
            and (before is None or one.record.timestamp < before)
        ]
        assert read_plan(planned, fs, batch_rows=question["batch_rows"]) == expected
        (found,) = planned.partitions
        assert (found.log_start_offset, found.high_watermark) == (first, high)
        assert found.log_end_offset == end
        assert found.is_high_watermark_known is (question["high_watermark"] is not None)
        assert found.last_stable_offset == (limit if committed else None)
        ranges = [(task.start_offset, task.end_offset) for task in planned.tasks]
        assert ranges == sorted(ranges)

    def committed(
        self, there: list[Plain], first: int, high: int, snapshots: bool
    ) -> tuple[int, set[int]]:
        """Return the last stable offset at `high`, and the aborted offsets below it.

        Transactions whose records were deleted count, too: as long as one is open, the log start is
        the last stable offset. Only producer snapshots know of these; without them an open
        transaction begins at its first record that is left.
        """
        stable, gone = high, set()
        for one in self.transactions:
            if one.marker is None or one.marker >= high:
                begins = [one.first_offset] if snapshots else self.offsets_of(one, there)[:1]
                stable = min(stable, *begins, high)
            elif one.is_aborted:
                gone |= set(self.offsets_of(one, there))
        return max(stable, first), gone

    @staticmethod
    def offsets_of(transaction: Transaction, there: list[Plain]) -> list[int]:
        """Return the offsets of its records, without the marker."""
        return [
            plain.record.offset
            for plain in there
            if plain.producer_id == transaction.producer_id
            and plain.record.offset >= transaction.first_offset
            and (transaction.marker is None or plain.record.offset < transaction.marker)
        ]


def damage_files(fs: FaultyFileSystem, how: str | None) -> None:
    """Damage indexes and snapshots, without which a log can be read as well."""
    for name in fs.list_dir(DIRECTORY) if how else ():
        if not name.endswith((".index", ".timeindex", ".snapshot")):
            continue
        path = f"{DIRECTORY}/{name}"
        content = fs.read_bytes(path)
        if how == "missing":
            fs.unlink(path)
        elif how == "cut":
            fs.write_atomic(path, [content[: len(content) // 2]])
        else:
            fs.write_atomic(path, [content[:-3] + b"\7\7\7"])


def resolved(place: Position, everything: list[Plain], first: int, limit: int) -> int:
    """Return the offset of a position, found among all records."""
    if place == EARLIEST:
        return first
    if place == LATEST:
        return limit
    if place.kind.value == "offset":
        return min(max(place.value, first), limit)
    found = [
        one.record.offset
        for one in everything
        if one.record.offset >= first and one.record.timestamp >= place.value
    ]
    return min(found[0], limit) if found else limit
