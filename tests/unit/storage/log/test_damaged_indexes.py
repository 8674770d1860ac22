"""Indexes that say something else than their log: found, rebuilt, and never believed."""

import random

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.control import ControlType
from storage.errors import BeingRepaired, IndexInDoubt, StorageError
from storage.log.log import Log
from storage.log.results import FetchIsolation, FileSlice, StartOffsetReason
from storage.waits import at_once
from tests.support.calls import Calls
from tests.support.log_builder import DIRECTORY, LogBuilder
from tests.support.time_lookups import max_timestamp, offset_for_timestamp

BASE = f"{DIRECTORY}/{0:020d}"
COMMITTED = FetchIsolation.TXN_COMMITTED


def replicated(log: Log) -> None:
    log.update_high_watermark(log.log_end_offset)


def sealed(**config: int) -> LogBuilder:
    """Thirty batches of three records, ten milliseconds apart, in a segment that has ended."""
    built = LogBuilder(index_interval_bytes=150, **config)
    for _ in range(30):
        built.append(3)
        built.clock.advance(ms=10)
    built.log.roll()
    built.append(3)
    replicated(built.stopped())
    return built


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def first_offset_read(log: Log, offset: int) -> int:
    info = log.read(offset, 1)
    assert isinstance(info.records, FileSlice)
    return int.from_bytes(info.records.read()[:8], "big")


def answers(built: LogBuilder) -> list[object]:
    """The answers that readers get, by offset and by time."""
    log = built.log
    times = [offset_for_timestamp(log, built.clock.wall_ms() - 310 + n * 10) for n in range(32)]
    return [
        *(first_offset_read(log, n) for n in range(93)),
        *times,
        max_timestamp(log),
    ]


def damaged_in_every_way(data: bytes) -> list[bytes]:
    """One wrong bit each, cut to every length, emptied, with something behind."""
    seed = random.Random(4)
    bits = seed.sample(range(len(data) * 8), 40)
    return [
        *(flipped(data, bit) for bit in bits),
        *(data[:size] for size in range(0, len(data), 13)),
        data + seed.randbytes(24),
        data + bytes(24),
        data[::-1],
        seed.randbytes(len(data)),
    ]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_no_answer_changes_with_an_index_whatever_is_in_it(suffix: str) -> None:
    built = sealed()
    path = BASE + suffix
    right, data = answers(built), built.fs.read_bytes(path)
    assert len(data) > 100
    rebuilt = 0
    for damaged in damaged_in_every_way(data):
        built.fs.write_bytes(path, damaged)
        replicated(built.open())
        assert answers(built) == right
        rebuilt += built.fs.read_bytes(path) == data
        built.fs.write_bytes(path, data)
    assert rebuilt > 20, "the others lead to an earlier batch, which costs time only"


@pytest.mark.parametrize("clean", [True, False])
def test_the_active_segment_is_appended_to_whatever_its_indexes_say(clean: bool) -> None:
    built = LogBuilder(index_interval_bytes=150)
    for _ in range(30):
        built.append(3)
    built.stopped()
    paths = [BASE + suffix for suffix in (".index", ".timeindex")]
    good = {path: built.fs.read_bytes(path) for path in (*paths, BASE + ".log")}
    for at in range(-64, 0, 7):
        for path, data in good.items():
            built.fs.write_bytes(path, data)
        for path in paths:
            damaged = flipped(good[path], len(good[path]) * 8 + at)
            built.fs.write_bytes(path, damaged)
        built.open(clean=clean)
        assert built.log.log_end_offset == 90
        for _ in range(10):
            built.append(3)
        built.log.roll()
        built.append(1)
        assert [first_offset_read(built.log, n) for n in range(120)] == [
            n // 3 * 3 for n in range(120)
        ]
        for name in built.names():
            if not name.endswith(".metadata"):
                built.fs.unlink(f"{DIRECTORY}/{name}")


def with_time_going_back(built: LogBuilder) -> None:
    """Segments of some sixty batches; the records' timestamps rise, fall and repeat."""
    now = built.clock.wall_ms()
    for number in range(120):
        if number == 60:
            built.log.roll()
        stamp = now + number * 10 - 70 * (number % 5 == 4) - 10 * (number % 3 == 0)
        built.append_dated(stamp, stamp - 5)


@pytest.mark.parametrize("index_bytes", [96, 240, 4800])
@pytest.mark.parametrize("interval", [0, 150, 400, 10_000])
@pytest.mark.parametrize("undated", [False, True])
def test_s_idx_1_and_2_indexes_are_rebuilt_as_they_were_written(
    index_bytes: int, interval: int, undated: bool
) -> None:
    built = LogBuilder(index_interval_bytes=interval, segment_index_bytes=index_bytes)
    if undated:
        for _ in range(60):
            built.append_dated(-1)
    else:
        with_time_going_back(built)
    built.log.roll()
    built.append()
    built.stopped()
    log = built.log
    for segment in list(log.segments)[:-1]:
        segment.release()
        right = [built.fs.read_bytes(path) for path in segment.files.paths[1:3]]
        scan = segment.indexes.new_scan({})
        scan.run(segment.file, segment.size)
        scan.add_time_entry()  # as the roll did
        segment.indexes.install(scan, (None, None))
        segment.release()
        found = [built.fs.read_bytes(path) for path in segment.files.paths[1:3]]
        assert found == right
        log._check()


def test_a_cut_record_file_is_corrupt_and_not_the_end_of_the_segment() -> None:
    built = sealed()
    log, size = built.log, built.fs.size(BASE + ".log")
    file = built.fs.open(BASE + ".log")
    file.truncate(size // 2)
    with pytest.raises(KafkaError) as caught:
        log.read(80, 100)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(KafkaError) as caught:
        offset_for_timestamp(log, built.clock.wall_ms() - 15)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert first_offset_read(log, 91) == 90, "the next segment serves"


def test_damaged_records_are_no_fault_of_the_index() -> None:
    built = sealed()
    data = bytearray(built.fs.read_bytes(BASE + ".log"))
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    built.fs.write_bytes(BASE + ".log", bytes(data))
    replicated(built.open())
    assert first_offset_read(built.log, 20) == 18
    for offset in (60, 80, 60):
        with pytest.raises(KafkaError) as caught:
            built.log.read(offset, 100)
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert first_offset_read(built.log, 91) == 90


# --- while others look after it


class Watched:
    """A log whose repairs somebody else runs."""

    def __init__(self, built: LogBuilder) -> None:
        self.log = built.log
        self.doubts: list[IndexInDoubt] = []
        self.failed: list[OSError] = []
        self.log.connect(
            failed=lambda _, error: self.failed.append(error),
            rolled=lambda _log, _offset: None,
            in_doubt=lambda _log, doubt: self.doubts.append(doubt),
        )

    def repair(self) -> None:
        for doubt in self.doubts:
            at_once(self.log.repair_index(doubt))
        self.doubts.clear()


def broken(**config: int) -> LogBuilder:
    """With positions of nonsense in its offset index."""
    built = sealed(**config)
    entries = built.fs.size(BASE + ".index") // 8
    built.fs.write_bytes(
        BASE + ".index",
        b"".join((n * 3).to_bytes(4, "big") + b"\xf0\0\0\7" for n in range(1, entries + 1)),
    )
    replicated(built.open())
    return built


def broken_and_read() -> tuple[LogBuilder, Watched]:
    """`broken`, and a read that has met it: a repair is wanted."""
    built = broken()
    watched = Watched(built)
    with pytest.raises(BeingRepaired):
        built.log.read(80, 100)
    return built, watched


def test_readers_are_told_to_wait_and_one_repair_is_begun() -> None:
    built = broken()
    watched = Watched(built)
    for _ in range(3):
        with pytest.raises(BeingRepaired):
            built.log.read(80, 100)
    with pytest.raises(BeingRepaired):
        offset_for_timestamp(built.log, built.clock.wall_ms() - 15)
    assert len(watched.doubts) == 1
    assert first_offset_read(built.log, 91) == 90
    watched.repair()
    assert first_offset_read(built.log, 80) == 78
    assert watched.failed == []


def test_what_comes_while_the_active_segment_is_repaired_is_indexed_as_well() -> None:
    built = LogBuilder(index_interval_bytes=150)
    for _ in range(30):
        built.append(3)
    built.stopped()
    data = built.fs.read_bytes(BASE + ".index")
    built.fs.write_bytes(BASE + ".index", flipped(data, 5 * 64 + 62))
    replicated(built.open())
    watched = Watched(built)
    with pytest.raises(BeingRepaired):
        for offset in range(90):
            built.log.read(offset, 100)
    (doubt,) = watched.doubts
    repair = Calls(built.log.repair_index(doubt))
    built.append(3)
    repair.run()
    for _ in range(10):
        built.append(3)
    repair.complete()
    assert repair.done
    for _ in range(10):
        built.append(3)
    assert [first_offset_read(built.log, n) for n in range(150)] == [n // 3 * 3 for n in range(150)]
    built.stopped()
    table = built.log.segments.active.indexes.offset.as_array()
    assert len(table) > len(data) // 8 + 8
    built.log._check()


def test_a_repair_that_was_overtaken_by_a_truncation_changes_nothing() -> None:
    built, watched = broken_and_read()
    repair = Calls(built.log.repair_index(watched.doubts[0]))
    repair.run()
    built.log.truncate_to(40)
    for _ in range(10):
        built.append(3)
    repair.complete()
    assert repair.done
    assert not [name for name in built.names() if name.endswith(".tmp")]
    assert [first_offset_read(built.log, n) for n in range(36, 70)] == [
        *(36, 36, 36, 40),
        *(40 + n // 3 * 3 for n in range(30)),
    ]


def test_a_disk_that_fails_in_a_repair_is_a_failed_disk() -> None:
    built, watched = broken_and_read()
    built.fs.fail("pread", "*.log", times=None)
    with pytest.raises(StorageError):
        watched.repair()
    assert len(watched.failed) == 1


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("operation", ["open", "pwrite", "fsync"])
def test_a_repair_that_a_disk_ends_leaves_no_file_behind(operation: str, nth: int) -> None:
    built, watched = broken_and_read()
    built.fs.fail(operation, "*.tmp", nth=nth)
    with pytest.raises(StorageError):
        watched.repair()
    assert not [name for name in built.names() if name.endswith(".tmp")]


def test_an_index_that_is_cut_under_the_log_does_not_stop_a_truncation() -> None:
    built = LogBuilder(index_interval_bytes=20)
    for _ in range(400):
        built.append()
    for suffix in (".index", ".timeindex"):
        built.fs.open(BASE + suffix).truncate(8)
    assert built.log.truncate_to(350)
    built.append()
    assert [first_offset_read(built.log, n) for n in (0, 100, 349, 350)] == [0, 100, 349, 350]


def test_a_doubt_that_is_met_again_and_again_holds_no_frames() -> None:
    built = broken()
    watched = Watched(built)
    for _ in range(3):
        with pytest.raises(BeingRepaired):
            built.log.read(80, 100)
    assert built.log.segments.first.indexes._suspect is not None
    for doubt in (built.log.segments.first.indexes._suspect, *watched.doubts):
        assert doubt.__traceback__ is None


# --- aborted transactions


def with_transactions() -> LogBuilder:
    """Two segments; one transaction begins in the first and is aborted in the second."""
    built = LogBuilder()
    built.write(7, 0)
    built.write(8, 0)
    built.end_transaction(7)
    built.write(7, 1)
    built.end_transaction(7, ControlType.COMMIT)
    built.write(7, 2)
    built.end_transaction(7)
    built.log.roll()
    built.write(8, 1)
    built.end_transaction(8)
    built.append()
    replicated(built.stopped())
    return built


ABORTED = [(7, 0, 2), (7, 5, 6), (8, 1, 8)]


def test_aborted_transactions_are_shown_whatever_is_in_their_index() -> None:
    built = with_transactions()
    assert built.aborted() == ABORTED
    second = f"{DIRECTORY}/{7:020d}"
    for path in (f"{BASE}.txnindex", f"{second}.txnindex"):
        data = built.fs.read_bytes(path)
        for damaged in damaged_in_every_way(data):
            built.fs.write_bytes(path, damaged)
            replicated(built.open())
            assert built.aborted() == ABORTED
            built.fs.write_bytes(path, data)
        built.fs.unlink(path)
        replicated(built.open())
        assert built.aborted() == ABORTED
        assert built.fs.read_bytes(path) == data


def test_a_damaged_offset_index_hides_no_aborted_transaction() -> None:
    """It bounds which transactions may touch what is read."""
    built = LogBuilder(index_interval_bytes=100)
    for sequence in range(20):
        built.write(7, sequence)
        built.end_transaction(7)
    built.log.roll()
    built.append()
    replicated(built.stopped())

    def answers() -> list[list[int]]:
        reads = (built.log.read(n, 300, COMMITTED) for n in range(0, 38, 2))
        return [[one.first_offset for one in read.aborted or ()] for read in reads]

    right, data = answers(), built.fs.read_bytes(f"{BASE}.index")
    for damaged in damaged_in_every_way(data):
        built.fs.write_bytes(f"{BASE}.index", damaged)
        replicated(built.open())
        for known, found in zip(right, answers(), strict=True):
            assert set(known[:2]) <= set(found), "the slice holds two of them at least"
        built.fs.write_bytes(f"{BASE}.index", data)


def test_an_index_of_aborted_transactions_that_changes_while_it_is_used() -> None:
    built = with_transactions()
    assert built.aborted() == ABORTED
    path = f"{BASE}.txnindex"
    for damaged in (b"", built.fs.read_bytes(path)[:-34], built.fs.read_bytes(path)[:50]):
        built.log.release()
        built.fs.write_bytes(path, damaged)
        assert built.aborted() == ABORTED


def test_without_a_snapshot_the_segments_before_are_read() -> None:
    built = with_transactions()
    for name in built.names():
        if name.endswith((".snapshot", ".txnindex")):
            built.fs.unlink(f"{DIRECTORY}/{name}")
    built.log.producers.snapshots.reload()
    built.log.release()
    for segment in built.log.segments:
        segment.aborted.sum = None
    assert built.aborted() == ABORTED


def test_retention_that_takes_a_segment_from_a_repair_is_no_failed_disk() -> None:
    built = with_transactions()
    for name in built.names():
        if name.endswith(".snapshot"):
            built.fs.unlink(f"{DIRECTORY}/{name}")
    built.log.producers.snapshots.reload()
    second = built.log.segments.active
    second.aborted.sum = None
    watched = Watched(built)
    with pytest.raises(BeingRepaired):
        built.aborted(7)
    repair = Calls(built.log.repair_index(watched.doubts.pop()))
    built.log.maybe_increment_log_start_offset(7, StartOffsetReason.CLIENT_RECORD_DELETION)
    assert built.log.delete_old_segments()
    repair.run()
    repair.complete()
    assert (repair.done, watched.failed) == (True, [])
    with pytest.raises(BeingRepaired):
        built.aborted(7)
    watched.repair()
    assert built.aborted(7) == [(8, 7, 8)]


def test_a_snapshot_that_cannot_be_read_is_passed_over() -> None:
    """The one at the base of the second segment knows that a transaction is open there."""
    built = with_transactions()
    damaged = f"{DIRECTORY}/{7:020d}.snapshot"
    assert damaged.rpartition("/")[2] in built.names()
    built.fs.write_bytes(damaged, built.fs.read_bytes(damaged)[:-3])
    built.log.release()
    for segment in built.log.segments:
        segment.aborted.sum = None
    built.fs.write_bytes(f"{DIRECTORY}/{7:020d}.txnindex", b"")
    assert built.aborted() == ABORTED


def test_later_segments_are_not_read_where_no_transaction_is_open() -> None:
    built = LogBuilder()
    built.write(7, 0)
    built.end_transaction(7)
    for _ in range(5):
        built.log.roll()
        built.append()
    replicated(built.stopped())
    assert built.aborted() == [(7, 0, 1)]
    known = [segment.aborted.sum is not None for segment in built.log.segments]
    assert known == [True] + [False] * 5


@pytest.mark.parametrize("point", [None, 1])
def test_a_transaction_that_begins_in_a_segment_that_was_looked_at_is_found(
    point: int | None,
) -> None:
    """A check of the segment's end does not cover the records that came after it."""
    built = LogBuilder()
    built.append()
    at_once(built.log.flush())
    if point is None:
        built.stopped()
    else:
        built.killed(recovery_point=point)
    built.log.update_high_watermark(1)
    built.append()
    built.log.update_high_watermark(2)
    assert built.aborted() == []
    built.write(7, 0)
    built.log.roll()
    built.end_transaction(7)
    assert built.aborted(2) == [(7, 2, 3)]
