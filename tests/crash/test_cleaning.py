"""A log is cleaned, and the process dies or the power goes at any operation of it.

The start after that finds each key's last committed value where it was; of a key whose last record
is a tombstone that, or nothing; no record of an aborted transaction; the log end where it was; and
no file of a cleaning that is not in its place.
"""

from dataclasses import dataclass
from random import Random

import pytest

from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType
from protocol.records.record import Record
from storage.cleaner.cleaning import clean_here, request_for
from storage.waits import at_once
from tests.support.committed_records import committed_records
from tests.support.crash_lab import LOG_DIR, TOPIC_ID, TP, started
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_builder import end_transaction
from tests.support.manual_clock import ManualClock
from tests.support.recording_filesystem import PowerLoss, RecordingFileSystem

CONFIG = TopicConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=900,
    index_interval_bytes=0,
    segment_index_bytes=480,
    file_delete_delay_ms=0,
    delete_retention_ms=1000,
)
KEYS = 6
TRANSACTIONAL = 8

Value = tuple[int, bytes | None]
"""Offset and value."""


class History:
    """A compacted log in the making, and its committed records."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = ManualClock()
        fs = FaultyFileSystem()
        fs.make_dirs(LOG_DIR)
        self.fs = RecordingFileSystem(fs)
        self.manager = started(self.fs, self.clock, CONFIG)
        self.log = self.manager.get_or_create_log(TP, TOPIC_ID, CONFIG)
        self.fs.open(f"{self.log.dir}/partition.metadata").fsync()
        self.committed: dict[int, tuple[bytes, bytes | None]] = {}
        """Every committed record there ever was: offset to key and value."""
        self._open: dict[int, tuple[bytes, bytes | None]] = {}

    def write(self, batches: int) -> None:
        """Plain and transactional batches; the last transaction ends."""
        for _ in range(batches):
            self.clock.advance(ms=self.random.randint(1, 300))
            if self.random.random() < 0.45:
                self._append(is_transactional=True)
                if self.random.random() < 0.5:
                    self._end()
            else:
                self._append(is_transactional=False)
        if self._open:
            self._end()
        self.log.roll()
        at_once(self.log.flush())

    def _append(self, *, is_transactional: bool) -> None:
        random = self.random
        records = [
            (
                self.clock.wall_ms(),
                b"key-%d" % random.randrange(KEYS),
                None if random.random() < 0.3 else random.randbytes(random.randint(1, 60)),
                (),
            )
            for _ in range(random.choice((1, 1, 3)))
        ]
        producer = {}
        if is_transactional:
            known = self.log.producers.entry(TRANSACTIONAL)
            sequence = known.last_sequence + 1 if known is not None else 0
            producer = {
                "producer_id": TRANSACTIONAL,
                "producer_epoch": 0,
                "base_sequence": sequence,
                "transactional": True,
            }
        codec = random.choice((CompressionType.NONE, CompressionType.LZ4))
        info = self.log.append_as_leader(
            bytearray(build_batch(records, codec=codec, **producer)), leader_epoch=0
        )
        written = {
            info.first_offset + at: (key, value) for at, (_, key, value, _) in enumerate(records)
        }
        (self._open if is_transactional else self.committed).update(written)
        self.log.update_high_watermark(self.log.log_end_offset)

    def _end(self) -> None:
        kind = self.random.choice((ControlType.ABORT, ControlType.COMMIT))
        end_transaction(self.log, self.clock, TRANSACTIONAL, kind)
        if kind is ControlType.COMMIT:
            self.committed |= self._open
        self._open = {}

    def clean(self, first_dirty: int, *, map_bytes: int = 24 * 1000) -> int:
        """Clean up to the active segment; return the offset where the next cleaning begins."""
        request = request_for(
            self.log,
            first_dirty,
            self.log.segments.active.base_offset,
            now_ms=self.clock.wall_ms(),
            map_bytes=map_bytes,
        )
        return clean_here(self.log, request, step_bytes=400).end_offset

    def clean_noted(self, first_dirty: int, **how: int) -> tuple[int, "Phase"]:
        """Clean; return the phase as well, with all that is true during it."""
        begin = self.fs.now
        dirty = self.clean(first_dirty, **how)
        at_once(self.log.flush())
        end = self.log.log_end_offset
        return dirty, Phase(begin, self.fs.now, end, dict(self.committed), self.clock.wall_ms())


@dataclass(frozen=True)
class Phase:
    """The operations [begin, end) of one cleaning."""

    begin: int
    end: int
    log_end_offset: int
    committed: dict[int, tuple[bytes, bytes | None]]
    now_ms: int

    def last_values(self) -> dict[bytes, Value]:
        """Key to its last committed record."""
        return {key: (at, value) for at, (key, value) in sorted(self.committed.items())}


def check(fs: FaultyFileSystem, clock: ManualClock, phase: Phase, *, again: bool) -> None:
    """Start on the disk and check the log; with `again`, clean it and check it once more."""
    manager = started(fs, clock, CONFIG)
    log = manager.get_or_create_log(TP, TOPIC_ID, CONFIG)
    log.update_high_watermark(log.log_end_offset)
    log._check()
    names = fs.list_dir(f"{LOG_DIR}/t-0")
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))], names
    assert log.log_end_offset == phase.log_end_offset
    records = committed_records(log, manager)
    assert [record.offset for record in records] == sorted({record.offset for record in records})
    shown = {record.offset: (record.key, record.value) for record in records}
    assert shown.items() <= phase.committed.items(), "what was never committed is shown"
    last = last_values(records)
    for key, expected in phase.last_values().items():
        if expected[1] is not None or key in last:
            assert last[key] == expected, f"{key!r} fell back"
    if again:
        request = request_for(
            log,
            log.log_start_offset,
            log.segments.active.base_offset,
            now_ms=phase.now_ms,
            map_bytes=24 * 1000,
        )
        clean_here(log, request)
        left = last_values(committed_records(log, manager))
        assert all(last[key][1] is None for key in last.keys() - left.keys())
        assert left.items() <= last.items()
    manager.directories.unlock_all()


def last_values(records: list[Record]) -> dict[bytes, Value]:
    """Key to offset and value of its last record."""
    found = {}
    for record in records:
        assert record.key is not None
        found[record.key] = record.offset, record.value
    return found


def check_all(history: History, phases: list[Phase], *, every: int, again: bool = True) -> int:
    """Check a kill or a power loss at each operation; return the number of checked states."""
    loss, random, checked = PowerLoss(history.fs), Random(1), 0
    for phase in phases:
        for at in range(phase.begin, phase.end):
            states = [loss.kept(at)]
            if at % every == 0:
                states += [loss.names(at), loss.lost(at), loss.state(at, random)]
            for state in states:
                check(state, history.clock, phase, again=again)
                checked += 1
    return checked


def cleaned_twice(seed: int, map_bytes: int) -> tuple[History, list[Phase]]:
    """A log that was cleaned, written to, and cleaned when tombstones and markers may go."""
    history = History(seed)
    history.write(14)
    dirty, first = history.clean_noted(0, map_bytes=map_bytes)
    history.write(6)
    history.clock.advance(ms=2 * CONFIG.delete_retention_ms)
    _, second = history.clean_noted(dirty, map_bytes=map_bytes)
    return history, [first, second]


def test_s_cmp_9_a_crash_at_any_operation_loses_nothing_that_lives() -> None:
    history, phases = cleaned_twice(0, 24 * 1000)
    assert check_all(history, phases[1:], every=20, again=False) > 30


@pytest.mark.crash
@pytest.mark.parametrize("map_bytes", [24 * 4, 24 * 1000], ids=["full map", "large map"])
@pytest.mark.parametrize("seed", range(10, 18))
def test_s_cmp_9_a_crash_loses_nothing_that_lives_in_many_histories(
    seed: int, map_bytes: int
) -> None:
    history, phases = cleaned_twice(seed, map_bytes)
    assert check_all(history, phases, every=2) > 100
