"""Segments take the place of others: what readers, offsets, indexes and retention see of it."""

import errno
from collections.abc import Callable

import pytest

from storage.errors import StaleGeneration, StorageError
from storage.log.log import Log
from storage.log.results import (
    DeletionReason,
    FetchIsolation,
    FileSlice,
    StartOffsetReason,
)
from storage.waits import at_once
from tests.support.cleaning import cleaned, replace
from tests.support.log_builder import DIRECTORY, LogBuilder


@pytest.fixture
def built() -> LogBuilder:
    """Segments [0, 3), [3, 6), [6, 9) and the active one [9, 10); all flushed."""
    built = LogBuilder(index_interval_bytes=0, file_delete_delay_ms=60_000)
    for _ in range(3):
        for _ in range(3):
            built.clock.advance(1)
            built.append(value=b"v" * 40)
        built.log.roll()
    built.append()
    at_once(built.log.flush())
    assert built.log.segments.base_offsets == [0, 3, 6, 9]
    return built


def old_of(log: Log, count: int = 3) -> list:
    return list(log.segments)[:count]


def odd(base_offset: int) -> bool:
    return base_offset % 2 == 1


def offsets(built: LogBuilder, start: int = 0) -> list[int]:
    return [record.offset for record in built.records(start)]


def test_segments_are_replaced_in_kafkas_order(built: LogBuilder) -> None:
    log = built.log
    old = old_of(log)
    new = [cleaned(log, old[:2], odd), cleaned(log, old[2:], odd)]
    built.fs.operations.clear()
    gone = log.replacer.replace(new, old, generation=log.store.generation)
    renames = [path for op, path in built.fs.operations if op == "rename" and "/0" in path]
    names = [path.rsplit("/", 1)[1].lstrip("0") or "0" for path in renames]
    logs = [name for name in names if ".log" in name]
    assert logs == [
        *("6.log.cleaned", ".log.cleaned"),
        *(".log", "3.log", "6.log"),
        *(".log.swap", "6.log.swap"),
    ]
    assert [op for op, _ in built.fs.operations if op.startswith("fsync")] == []
    assert [(one.base_offset, one.reason) for one in gone] == [
        (base, DeletionReason.COMPACTION) for base in (0, 3, 6)
    ]
    assert log.segments.base_offsets == [0, 6, 9]
    assert offsets(built) == [1, 3, 5, 7, 9]
    assert log.size == sum(segment.size for segment in log.segments)
    log._check()
    assert not log.durability.names_are_synced
    at_once(log.flush())
    built.fs = built.fs.crash(forget_names=True)
    built.open(clean=False, recovery_point=10)
    assert offsets(built) == [1, 3, 5, 7, 9]


def test_what_readers_were_handed_stays_readable_until_it_is_unlinked_and_after(
    built: LogBuilder,
) -> None:
    log = built.log
    found = log.read(0, 1 << 20, FetchIsolation.LOG_END).records
    assert isinstance(found, FileSlice)
    before = found.read()
    replace(log, old_of(log), odd)
    assert found.read() == before
    for pending in log.store.take_pending():
        built.fs.unlink(pending.path)
    assert found.read() == before
    assert [name for name in built.names() if name.endswith((".deleted", ".swap"))] == []


def test_remembered_places_are_forgotten(built: LogBuilder) -> None:
    log = built.log
    log.update_high_watermark(5)
    for start in (0, 3, 4):
        log.read(start, 1 << 20)  # to the high watermark: its place is remembered
    replace(log, old_of(log), odd)
    assert [r.offset for r in built.records(4)][:1] == [5]
    for start in (0, 3, 4):
        found = log.read(start, 1 << 20).records
        assert not isinstance(found, FileSlice) or found.file is log.segments[0].file
    log._check()


def test_a_producer_snapshot_goes_with_a_base_that_vanishes(built: LogBuilder) -> None:
    log = built.log
    assert set(log.producers.snapshots.offsets) >= {3, 6, 9}
    replace(log, old_of(log))
    assert set(log.producers.snapshots.offsets) & {3, 6, 9} == {9}
    pending = {one.path.rsplit("/", 1)[1] for one in log.store.take_pending()}
    assert f"{3:020d}.snapshot.deleted" in pending
    assert f"{0:020d}.log.deleted" in pending
    assert len(pending) == 3 * 3 + 2


def test_retention_goes_on_over_replaced_segments(built: LogBuilder) -> None:
    log = built.log
    replace(log, old_of(log), odd)
    log.maybe_increment_log_start_offset(9, StartOffsetReason.CLIENT_RECORD_DELETION)
    assert [one.base_offset for one in log.delete_old_segments()] == [0]
    assert log.segments.base_offsets == [9]


def test_a_segment_that_was_cleaned_until_nothing_is_left(built: LogBuilder) -> None:
    log = built.log
    replace(log, old_of(log), lambda base: False)
    assert (log.segments[0].size, offsets(built)) == (0, [9])
    built.killed(recovery_point=10)
    assert offsets(built) == [9]


def aborted_transaction(built: LogBuilder) -> None:
    """A segment with one, [0, 3), and the active one, [3, 4)."""
    for sequence in range(2):
        built.append(producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=True)
    built.end_transaction(7, replicated=False)
    built.log.roll()
    built.append()


def test_aborted_transactions_are_found_in_the_new_segment() -> None:
    built = LogBuilder(index_interval_bytes=0)
    log = built.log
    aborted_transaction(built)
    replace(log, old_of(log, 1))
    assert built.aborted() == [(7, 0, 2)]


def test_s_rec_2_what_an_empty_segment_replaces_is_gone_with_all_its_files() -> None:
    built = LogBuilder()
    aborted_transaction(built)
    old = old_of(built.log, 1)
    empty = cleaned(built.log, old, lambda _: False)
    empty.rename(".swap")  # and there the process died
    assert f"{0:020d}.txnindex" in built.names()
    built.killed(recovery_point=4)
    assert f"{0:020d}.txnindex" not in built.names()
    assert offsets(built) == [3]


def moved(built: LogBuilder) -> None:
    built.fs.rename(DIRECTORY, DIRECTORY + "-moved")
    built.log.moved_to(DIRECTORY + "-moved")


def retained(built: LogBuilder) -> None:
    built.log.maybe_increment_log_start_offset(3, StartOffsetReason.CLIENT_RECORD_DELETION)
    assert built.log.delete_old_segments()


def replaced(built: LogBuilder) -> None:
    replace(built.log, old_of(built.log, 1))


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda built: built.log.truncate_to(8),
        lambda built: built.log.truncate_fully_and_start_at(50),
        moved,
        retained,
        replaced,
    ],
)
def test_what_was_made_of_segments_that_have_changed_is_refused(
    built: LogBuilder, meanwhile: Callable[[LogBuilder], object]
) -> None:
    log = built.log
    old, generation = old_of(log), log.store.generation
    new = cleaned(log, old, odd)
    meanwhile(built)
    bases, found = log.segments.base_offsets, offsets(built, log.log_start_offset)
    with pytest.raises(StaleGeneration):
        log.replacer.replace([new], old, generation=generation)
    assert (log.segments.base_offsets, offsets(built, log.log_start_offset)) == (bases, found)
    log._check()


def test_out_of_service_nothing_is_replaced(built: LogBuilder) -> None:
    log = built.log
    old, generation = old_of(log), log.store.generation
    new = cleaned(log, old)
    log.take_out_of_service()
    with pytest.raises(StorageError):
        log.replacer.replace([new], old, generation=generation)


def test_nonsense_is_refused(built: LogBuilder) -> None:
    log = built.log
    every = list(log.segments)
    new = cleaned(log, every[:3])
    for wrong_new, wrong_old in (
        ([new], every),  # the active segment
        ([new], [every[0], every[2]]),  # not what is between
        ([new], every[1:3]),  # it begins before them
        ([cleaned(log, [every[0]], lambda _: False, 9)], every[:3]),  # behind them
        ([new, new], every[:3]),
        ([], every[:3]),
        ([new], []),
    ):
        with pytest.raises(ValueError, match="segment"):
            log.replacer.replace(wrong_new, wrong_old, generation=log.store.generation)
    assert log.segments.base_offsets == [0, 3, 6, 9]


def test_a_disk_that_fails_in_the_middle_takes_the_log_out_of_service(built: LogBuilder) -> None:
    log = built.log
    failed: list[tuple[str, OSError]] = []
    log.connect(failed=lambda path, error: failed.append((path, error)), rolled=lambda *_: None)
    old = old_of(log)
    new = cleaned(log, old)
    built.fs.fail("rename", "*.log", errno=errno.EIO)
    with pytest.raises(StorageError):
        log.replacer.replace([new], old, generation=log.store.generation)
    assert [path for path, _ in failed] == [DIRECTORY]
    built.fs.heal()
    built.killed(recovery_point=10)
    assert offsets(built) == list(range(10))


def test_an_earlier_attempt_leaves_nothing_in_the_next(built: LogBuilder) -> None:
    log = built.log
    old = old_of(log)
    cleaned(log, old).release()
    replace(log, old, odd)
    assert offsets(built) == [1, 3, 5, 7, 9]
    log._check()
