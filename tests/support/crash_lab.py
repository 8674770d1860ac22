"""Works on a partition on a recorded disk, and checks what must hold after any power loss.

`Workload` acts on one partition through a real `LogManager` and records the log's content before
and after each action. `expectation(at)` is what a start after a power loss must find; `verify`
starts on a state of the disk and checks:

  * the records are a prefix of the log at one moment, and include all that was flushed;
  * log start, leader epochs, indexes, times and producers fit those records;
  * appends work.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TypeVar

from crc32c import crc32c

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.records.batch import iter_batches, read_header
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.records.record import iter_records
from protocol.types import TopicPartition
from storage import log_tasks
from storage.append_origin import AppendOrigin
from storage.errors import BeingRepaired, IndexInDoubt, IndexKind
from storage.index.transaction_index import AbortedTxn
from storage.log import replay
from storage.log.log import Log
from storage.log.results import FetchIsolation, FileSlice, StartOffsetReason
from storage.log_manager import LogManager
from storage.producers.state import ProducerStateManager
from storage.waits import at_once
from tests.support.calls import Calls
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.log_tasks import run_task
from tests.support.manual_clock import ManualClock
from tests.support.recording_filesystem import PowerLoss, RecordingFileSystem
from tests.support.time_lookups import offset_for_timestamp

Answer = TypeVar("Answer")

TP = TopicPartition("t", 0)
TOPIC_ID = bytes(range(16))
LOG_DIR = "/d"
BROKER = BrokerConfig.parse({"log.dirs": LOG_DIR, "broker.id": "1"})
PLAIN, TRANSACTIONAL = 7, 8
"""Producer ids."""


@dataclass(frozen=True)
class Sent:
    """One batch in the log."""

    base: int
    last: int
    epoch: int
    data: bytes

    def __repr__(self) -> str:
        return f"{self.base}-{self.last}(e{self.epoch})"


@dataclass(frozen=True)
class Truth:
    """The log at one moment."""

    line: tuple[Sent, ...] = ()
    """Every batch since the beginning, including deleted but not truncated ones."""
    start: int = 0
    end: int = 0
    flushed: int = 0
    promised_start: int = 0
    """The checkpointed log start offset."""

    def __str__(self) -> str:
        return f"{self.start}..{self.end}, flushed {self.flushed}, ends in {self.line[-3:]}"


@dataclass(frozen=True)
class Expectation:
    """The legal states after a power loss: a prefix of one of `lines`."""

    lines: tuple[tuple[Sent, ...], ...]
    flushed: int
    start: int
    """The largest legal log start offset."""
    promised_start: int
    end: int


@dataclass
class CrashStep:
    """One action: operations `begin` to `end` - 1 of the journal."""

    name: str
    begin: int
    end: int
    before: Truth
    after: Truth


def topic_config(random: Random) -> TopicConfig:
    """Draw small segments and indexes, so that everything happens within a few appends."""
    return TopicConfig(
        segment_bytes=random.choice([400, 900, 2500]),
        index_interval_bytes=random.choice([0, 100, 400]),
        segment_index_bytes=random.choice([24, 96, 4096]),
        retention_bytes=-1,
        file_delete_delay_ms=random.choice([0, 60_000]),
        flush_messages=random.choice([2**63 - 1, 2**63 - 1, 5]),
    )


class Workload:
    """A partition and the actions on it, which are the methods without arguments."""

    def __init__(
        self, random: Random, fs: FaultyFileSystem | None = None, config: TopicConfig | None = None
    ) -> None:
        self.random = random
        self.config = config or topic_config(random)
        self.clock = ManualClock()
        self.steps: list[CrashStep] = []
        self.truth = Truth()
        self.epoch = 0
        self.in_transaction = False
        if fs is None:
            fs = FaultyFileSystem()
            fs.make_dirs(LOG_DIR)
        self.fs = RecordingFileSystem(fs)

    # Acting.

    def act(self, name: str, action: Callable[[], Truth]) -> None:
        """Run an action and record the truth before and after it."""
        before, begin = self.truth, self.fs.now
        self.truth = action()
        self.steps.append(CrashStep(name, begin, self.fs.now, before, self.truth))

    def _grown(self, line: tuple[Sent, ...], kept: int | None = None) -> Truth:
        """Return the truth with this line and the log's own offsets.

        Flushed data stays flushed, whatever a start claims; after a truncation, up to `kept`.
        """
        log = self.log
        before = self.truth.flushed if kept is None else min(self.truth.flushed, kept)
        return replace(
            self.truth,
            line=line,
            start=log.log_start_offset,
            end=log.log_end_offset,
            flushed=max(before, log.recovery_point),
        )

    def begin(self) -> None:
        """Start the broker and make the partition."""

        def start() -> Truth:
            self._start()
            return self._grown(self.truth.line)

        self.act("start", start)

    def _start(self) -> None:
        self.manager = started(self.fs, self.clock, self.config)
        self.log = self.manager.get_or_create_log(TP, TOPIC_ID, self.config)
        # The system does this within seconds; notes of a log whose id was lost are not believed.
        self.fs.open(f"{self.log.dir}/partition.metadata").fsync()
        self.log.update_high_watermark(self.log.log_end_offset)

    def append(self) -> None:
        random = self.random
        kind = random.choice(("plain", "idempotent", "transactional", "marker", "follower"))
        if kind == "marker" and not self.in_transaction:
            kind = "transactional"
        if random.random() < 0.1:
            self.epoch += 1

        def go() -> Truth:
            self.clock.advance(ms=random.randint(0, 5000))
            if kind == "follower":
                sent = self._copied()
                self.log.appender.append_as_follower(b"".join(batch.data for batch in sent))
            else:
                sent = [self._produced(kind)]
            self.log.update_high_watermark(self.log.log_end_offset)
            return self._grown((*self.truth.line, *sent))

        self.act(f"append {kind}", go)

    def _produced(self, kind: str) -> Sent:
        origin, data = AppendOrigin.CLIENT, b""
        if kind in ("marker", "abort"):
            self.in_transaction = False
            origin = AppendOrigin.COORDINATOR
            either = (ControlType.ABORT, ControlType.COMMIT)
            data = build_end_transaction_marker(
                self.random.choice(either) if kind == "marker" else ControlType.ABORT,
                producer_id=TRANSACTIONAL,
                producer_epoch=0,
                coordinator_epoch=0,
                timestamp=self.clock.wall_ms(),
            )
        elif kind == "transactional":
            self.in_transaction = True
            data = self._sequenced(TRANSACTIONAL, transactional=True)
        elif kind == "idempotent":
            data = self._sequenced(PLAIN)
        else:
            data = build_batch(self._records())
        buffer = bytearray(data)
        info = self.log.append_as_leader(buffer, leader_epoch=self.epoch, origin=origin)
        return Sent(info.first_offset, info.last_offset, self.epoch, bytes(buffer))

    def _sequenced(self, producer_id: int, *, transactional: bool = False) -> bytes:
        known = self.log.producers.entry(producer_id)
        return build_batch(
            self._records(),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=known.last_sequence + 1 if known is not None else 0,
            transactional=transactional,
        )

    def _records(self) -> list:
        random = self.random
        # Equal sizes now and then, so that a batch may replace another of exactly its size.
        size = random.choice((20, 20, random.randint(0, 300)))
        stamp = self.clock.wall_ms() - random.choice((0, 0, 3000))
        count = random.choice((1, 1, 3))
        return [(stamp, b"k", random.randbytes(size // count), ())] * count

    def _copied(self) -> list[Sent]:
        first, sent = self.log.log_end_offset, []
        for _ in range(self.random.randint(1, 2)):
            records = [(self.clock.wall_ms(), None, self.random.randbytes(30), ())]
            codec = self.random.choice((CompressionType.NONE, CompressionType.LZ4))
            data = build_batch(records, base_offset=first, leader_epoch=self.epoch, codec=codec)
            sent.append(Sent(first, first, self.epoch, data))
            first += 1
        return sent

    def abort(self) -> None:
        """Abort the open transaction, or one that is begun for it."""

        def go() -> Truth:
            sent = [] if self.in_transaction else [self._produced("transactional")]
            sent.append(self._produced("abort"))
            self.log.update_high_watermark(self.log.log_end_offset)
            return self._grown((*self.truth.line, *sent))

        self.act("abort", go)

    def _plain(self, name: str, action: Callable[[], object]) -> None:
        def go() -> Truth:
            action()
            return self._grown(self.truth.line)

        self.act(name, go)

    def flush(self) -> None:
        self._plain("flush", lambda: at_once(self.log.flush()))

    def roll(self) -> None:
        self._plain("roll", self.log.roll)

    def flush_rolled(self) -> None:
        self._plain("flush rolled", lambda: run_task(self.manager, log_tasks.FLUSH_ROLLED))

    def settle(self) -> None:
        """Let some seconds pass without appends."""

        def go() -> None:
            for _ in range(3):
                self.clock.advance(2)
                run_task(self.manager, log_tasks.FLUSH_ROLLED)

        self._plain("settle", go)

    def checkpoint(self) -> None:
        self._plain(
            "checkpoint", lambda: run_task(self.manager, log_tasks.RECOVERY_POINT_CHECKPOINT)
        )

    def delete_records(self) -> None:
        self.delete_up_to(self.random.randint(self.log.log_start_offset, self.log.high_watermark))

    def delete_up_to(self, target: int) -> None:
        reason = StartOffsetReason.CLIENT_RECORD_DELETION
        self._plain(
            "delete records", lambda: self.log.maybe_increment_log_start_offset(target, reason)
        )

    def checkpoint_starts(self) -> None:
        def go() -> Truth:
            run_task(self.manager, log_tasks.LOG_START_CHECKPOINT)
            return replace(self.truth, promised_start=self.log.log_start_offset)

        self.act("checkpoint starts", go)

    def retention(self) -> None:
        limit = self.random.choice((0, self.log.size // 2))
        self.log.update_config(replace(self.config, retention_bytes=limit))
        self._plain("retention", lambda: run_task(self.manager, log_tasks.RETENTION))
        self.log.update_config(self.config)

    def delete_logs(self) -> None:
        self.clock.advance(61)
        self._plain("delete files", lambda: run_task(self.manager, log_tasks.DELETE_LOGS))

    def truncate(self) -> None:
        start, line = self.log.log_start_offset, self.truth.line
        # Truncate to the first offset of a batch, as followers do.
        self.truncate_at(
            self.random.choice([*(b.base for b in line[-6:] if b.base >= start), start])
        )

    def truncate_at(self, target: int) -> None:
        line = self.truth.line
        self.epoch += 1

        def go() -> Truth:
            self.log.truncate_to(target)
            self._after_truncation()
            return self._grown(tuple(batch for batch in line if batch.last < target), target)

        self.act(f"truncate to {target}", go)

    def start_over(self) -> None:
        self.start_over_at(self.log.log_end_offset + self.random.randint(0, 9))

    def start_over_inside(self) -> None:
        """Start over at the base of an existing segment."""
        bases = [base for base in self.log.segments.base_offsets if base >= self.truth.start]
        if bases:
            self.epoch += 1
            self.start_over_at(self.random.choice(bases))

    def start_over_at(self, target: int) -> None:
        def go() -> Truth:
            self.log.truncate_fully_and_start_at(target, target)
            self._after_truncation()
            return self._grown((), 0)

        self.act(f"start over at {target}", go)

    def _after_truncation(self) -> None:
        entry = self.log.producers.entry(TRANSACTIONAL)
        self.in_transaction = entry is not None and entry.current_txn_first_offset >= 0

    def restart(self) -> None:
        """Stop the broker in order and start it."""

        def go() -> Truth:
            at_once(self.manager.shutdown())
            self._start()
            return self._grown(self.truth.line)

        self.act("restart", go)

    def killed(self) -> None:
        """Kill the process between two actions; the machine lives on."""

        def go() -> Truth:
            abandon(self.manager)
            self._start()
            return self._grown(self.truth.line)

        self.act("killed", go)

    def run(self, actions: dict[str, int], count: int) -> None:
        """Run `count` actions, drawn by weight."""
        names = self.random.choices(list(actions), list(actions.values()), k=count)
        for name in names:
            getattr(self, name)()

    # Expecting.

    def expectation(self, at: int) -> Expectation:
        """Return what a start must find after a power loss with operations 0 to `at` - 1 begun."""
        done = [step for step in self.steps if step.end <= at]
        after = done[-1].after if done else self.steps[0].before
        possible = [after]
        # An action without disk operations cannot be half done: only the one under way can.
        under_way = [step for step in self.steps if step.begin < at < step.end]
        possible += [step.after for step in under_way]
        return Expectation(
            lines=tuple(dict.fromkeys(truth.line for truth in possible)),
            flushed=min(truth.flushed for truth in possible),
            start=max(truth.start for truth in possible),
            promised_start=min(truth.promised_start for truth in possible),
            end=max(truth.end for truth in possible),
        )

    def story(self, at: int) -> str:
        """Return all steps as text, for a failure's message."""
        lines = []
        for step in self.steps:
            mark = ">" if step.begin < at <= step.end else " "
            lines.append(f"{mark} {step.begin:4}-{step.end:<4} {step.name}: {step.after}")
        for number in range(max(0, at - 12), min(self.fs.now, at + 3)):
            op = self.fs.journal[number]
            lines.append(f"{'>' if number == at else ' '} {number:4} {op.operation} {op.path}")
        return "\n".join(lines)


def started(fs: FaultyFileSystem, clock: ManualClock, config: TopicConfig) -> LogManager:
    """Return a log manager that has loaded the disk. Raises AssertionError if the disk failed."""
    failures: list[object] = []
    manager = log_manager(BROKER, clock, fs, on_offline=failures.append)
    manager.startup(lambda _: config)
    assert not failures, failures
    return manager


def abandon(manager: LogManager) -> None:
    """Release the locks, as the death of the process does."""
    manager.directories.unlock_all()


def answered(manager: LogManager, question: Callable[[], Answer]) -> Answer:
    """Return the answer; repeat the question while the few indexes are repaired."""
    for _ in range(50):
        try:
            return question()
        except BeingRepaired:
            at_once(manager.repairs.repair())
    raise AssertionError("repaired again and again")


def batches_of(log: Log, manager: LogManager) -> list[Sent]:
    """Return the batches that reads find from the log start on, waiting for index repairs."""
    found: list[Sent] = []
    offset = log.log_start_offset
    while True:
        info = answered(manager, partial(log.read, offset, 1 << 20, FetchIsolation.LOG_END))
        if not info.records:
            return found
        data = info.records.read() if isinstance(info.records, FileSlice) else info.records
        for at, header in iter_batches(data):
            epoch = header.partition_leader_epoch
            found.append(
                Sent(header.base_offset, header.last_offset, epoch, data[at : at + header.size])
            )
            offset = header.last_offset + 1


def verify(
    fs: FaultyFileSystem, expected: Expectation, config: TopicConfig, clock: ManualClock
) -> Truth:
    """Start on `fs`, compare, append; return the truth that was found before the appends."""
    manager = started(fs, clock, config)
    log = manager.get_or_create_log(TP, TOPIC_ID, config)
    log.update_high_watermark(log.log_end_offset)
    log._check()
    check_aborted_sums(log)
    found = batches_of(log, manager)
    start, end = log.log_start_offset, log.log_end_offset
    assert expected.promised_start <= start <= expected.start, (start, expected)
    assert end <= expected.end, (end, expected)
    line = _line_of(found, start, end, expected)
    assert log.recovery_point <= end
    _check_epochs(log, found)
    _check_times(manager, log, found)
    _check_producers(log, line)
    _check_indexes(log)
    check_aborted_sums(log)
    truth = Truth(line=line, start=start, end=end, flushed=end, promised_start=start)
    _append_on(manager, log)
    abandon(manager)
    return truth


def verify_again(
    fs: RecordingFileSystem,
    expected: Expectation,
    config: TopicConfig,
    clock: ManualClock,
    random: Random,
) -> int:
    """Interrupt a start on `fs` twice by a power loss (S-REC-10); return the number of starts."""
    started(fs, clock, config)
    loss = PowerLoss(fs)
    for _ in range(2):
        verify(loss.state(random.randint(0, loss.last), random), expected, config, clock)
    return 2


def _line_of(found: list[Sent], start: int, end: int, expected: Expectation) -> tuple[Sent, ...]:
    """Return the expected line that the log holds, without batches beyond the log's end."""
    for line in expected.lines:
        kept = tuple(batch for batch in line if batch.last < end)
        if [batch for batch in kept if batch.last >= start] == found:
            lost = [b for b in line if b.last >= end and b.last < expected.flushed]
            assert not lost, f"flushed up to {expected.flushed}, end {end}: lost {lost}"
            return kept
    raise AssertionError(f"start {start}, end {end}: found {found}, expected {expected.lines}")


def _check_epochs(log: Log, found: list[Sent]) -> None:
    log.leader_epochs._check()
    for batch in found:
        assert log.leader_epochs.epoch_for_offset(max(batch.base, log.log_start_offset)) == (
            batch.epoch
        ), (batch, log.leader_epochs.entries)
    for entry in log.leader_epochs.entries:
        assert log.log_start_offset <= entry.start_offset <= log.log_end_offset


def _check_times(manager: LogManager, log: Log, found: list[Sent]) -> None:
    records = [
        (record.offset, record.timestamp)
        for batch in found
        for record in iter_records(batch.data)
        if record.offset >= log.log_start_offset
    ]
    for stamp in {stamp for _, stamp in records[:: max(1, len(records) // 4)]}:
        first = next(record for record in records if record[1] >= stamp)
        got = answered(manager, partial(offset_for_timestamp, log, stamp))
        assert got is not None
        assert (got.offset, got.timestamp) == first, (stamp, got, first)


def _check_indexes(log: Log) -> None:
    for segment in log.segments:
        segment.indexes.offset._check()
        segment.indexes.time._check()
        segment.aborted.index._check()


def check_aborted_sums(log: Log) -> int:
    """Check the believed checksums of transaction indexes with the log; return their number.

    The index's own content does not count: an emptied index must not pass for a rightly empty one.
    """
    believed = 0
    for segment in log.segments:
        known = segment.aborted.sum
        if known is None:
            continue
        believed += 1
        doubt = IndexInDoubt("", segment.base_offset, IndexKind.TRANSACTION, "")
        repair = Calls(log.repair_index(doubt))
        repair.run()
        found = repair.returned
        repair.close()
        right = b"".join(one.pack() for one in found.scan.aborted)
        if known != (len(right), crc32c(right)):
            # The last stable offset of an entry depends on the other producers known then.
            index = segment.aborted.index
            assert known == index.checksum, (segment, known, found.scan.aborted)
            there = {_shown_aborted(one) for one in index.all_aborted()}
            seen = {_shown_aborted(one) for one in found.scan.aborted}
            # If a transaction began in a segment that is deleted, with its snapshot, the log does
            # not show it any more.
            gone = {one for one in there - seen if one[1] < log.segments.first.base_offset}
            assert there - gone == seen, (segment, there, seen)
    return believed


def _shown_aborted(one: AbortedTxn) -> tuple[int, int, int]:
    return one.producer_id, one.first_offset, one.last_offset


def _check_producers(log: Log, line: tuple[Sent, ...]) -> None:
    """Check that each producer's state is that of a replay of all, or of the remaining records."""
    everything = _replayed(line)
    left = _replayed(tuple(b for b in line if b.last >= log.log_start_offset))
    # A replay also reads records of the first segment that are below the log start.
    readable = _replayed(tuple(b for b in line if b.base >= log.segments.first.base_offset))
    known = {producer_id: _shown(entry) for producer_id, entry in log.producers.producers.items()}
    for producer_id, shown in known.items():
        possible = [state.get(producer_id) for state in (everything, left, readable)]
        assert shown in possible, (producer_id, shown, possible)
    assert left.keys() <= known.keys(), (left, known)


def _replayed(line: tuple[Sent, ...]) -> dict[int, tuple]:
    entries = replayed(_NOWHERE, line).producers
    return {producer_id: _shown(entry) for producer_id, entry in entries.items()}


def replayed(fs: FaultyFileSystem, line: Iterable[Sent]) -> ProducerStateManager:
    """Return the producer state after these batches."""
    producers = ProducerStateManager(fs, TP, f"{LOG_DIR}/{TP.topic}-{TP.partition}", names=())
    for batch in line:
        header = read_header(batch.data)
        if header.producer_id >= 0:
            completed = replay.remember(producers, header, batch.data, 0)
            if completed is not None:
                replay.settle(producers, None, completed)
    return producers


_NOWHERE = FaultyFileSystem()


def _shown(entry) -> tuple:
    """Return the fields of a producer that a snapshot has."""
    last = entry.last_batch
    return (
        entry.producer_epoch,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
        entry.last_timestamp,
        last and (last.last_sequence, last.last_offset, last.offset_delta),
    )


def _append_on(manager: LogManager, log: Log) -> None:
    """Append a few batches over a roll, flush, and check the log."""
    end = log.log_end_offset
    known = log.producers.entry(PLAIN)
    sequence = known.last_sequence + 1 if known is not None else 0
    for at in range(2):
        data = build_batch(
            [(1_700_000_500_000, b"k", b"after", ())],
            producer_id=PLAIN,
            producer_epoch=0,
            base_sequence=sequence + at,
        )
        info = log.append_as_leader(data, leader_epoch=1000)
        assert info.first_offset == end + at
        if at == 0:
            log.roll()
    log.update_high_watermark(log.log_end_offset)
    at_once(log.flush())
    assert log.recovery_point == end + 2
    log._check()
    assert [batch.base for batch in batches_of(log, manager)][-2:] == [end, end + 1]
