"""Recovery of record files and indexes after a stop, a kill or a power cut (S-REC-2, S-REC-9)."""

import logging

import pytest

from storage.errors import NoMoreOffsets
from storage.log.scan import Ended
from tests.support.log_builder import DIRECTORY, LogBuilder
from tests.support.recovering import filled, offsets, path
from tests.support.time_lookups import offset_for_timestamp


@pytest.mark.parametrize("clean", [True, False])
def test_s_rec_1_and_s_rec_3_no_file_of_a_segment_below_the_recovery_point_is_opened(
    clean: bool,
) -> None:
    built = filled()
    built.stopped()
    built.fs = built.fs.crash(keep_unsynced=True)
    built.open(clean=clean, recovery_point=24)
    opened = {name for op, name in built.fs.operations if op == "open"}
    assert not [name for name in opened if f"{0:020d}" in name or f"{8:020d}" in name]
    log = built.log
    assert (log.log_end_offset, log.recovery_point) == (24, 24)
    assert offsets(built) == list(range(24))


def test_s_rec_3_everything_is_rebuilt_after_a_kill() -> None:
    built = filled()
    wanted = [
        (list(s.indexes.offset.as_array()), s.indexes.time.last_entry) for s in built.log.segments
    ]
    for base in (0, 8, 16):
        for kind in ("index", "timeindex"):
            built.fs.write_bytes(path(base, kind), b"\xff" * 100)
    built.fs.unlink(f"{DIRECTORY}/leader-epoch-checkpoint", missing_ok=True)
    for name in built.names():
        if name.endswith(".snapshot"):
            built.fs.unlink(f"{DIRECTORY}/{name}")
    log = built.killed()
    assert [list(s.indexes.offset.as_array()) for s in log.segments] == [w[0] for w in wanted]
    assert [s.indexes.time.last_entry for s in log.segments][:2] == [w[1] for w in wanted][:2]
    assert log.leader_epochs.entries == [(0, 0)]
    entry = log.producers.entry(7)
    assert entry is not None
    assert (entry.last_sequence, len(entry.batches)) == (23, 5)
    assert offsets(built) == list(range(24))
    log._check()


def test_s_rec_3_a_cut_takes_later_segments_along() -> None:
    built = filled()
    file = built.fs.open(path(8))
    file.pwrite(b"\x00", file.size() // 2 + 30)
    log = built.killed()
    assert log.segments.base_offsets == [0, 8]
    assert log.log_end_offset == 12
    assert offsets(built) == list(range(12))
    assert log.producers.entry(7).last_sequence == 11  # type: ignore[union-attr]
    assert built.append().first_offset == 12
    built.stopped()
    assert offsets(built) == list(range(13))


def test_s_rec_3_only_from_the_recovery_point_on() -> None:
    built = filled()
    file = built.fs.open(path(0))
    file.pwrite(b"\x00", 100)
    log = built.killed(recovery_point=8)
    assert log.segments.base_offsets == [0, 8, 16]
    assert (log.log_end_offset, log.recovery_point) == (24, 8)


def test_s_rec_3_a_segment_that_starts_wrong_is_cut_to_its_base() -> None:
    built = filled()
    data = built.fs.read_bytes(path(0))
    built.fs.write_bytes(path(8), data)  # offsets below the base
    log = built.killed()
    assert (log.segments.base_offsets, log.log_end_offset) == ([0, 8], 8)


TORN = {
    "half a header": lambda good, batch: good + batch[:9],
    "header only": lambda good, batch: good + batch[:61],
    "length beyond the end": lambda good, batch: good + batch[:-1],
    "zeroed pages": lambda good, batch: good + bytes(4096),
    "bad checksum": lambda good, batch: good + batch[:-1] + bytes([batch[-1] ^ 1]),
    "valid batch after garbage": lambda good, batch: good + b"\x01" * 50 + batch,
    "valid batch after zeros": lambda good, batch: good + bytes(80) + batch,
    "the same batch again": lambda good, batch: good + good[-len(batch) :],
    "huge length": lambda good, batch: good + batch[:8] + b"\x7f\xff\xff\xff" + batch[12:],
    "negative length": lambda good, batch: good + batch[:8] + b"\xff\xff\xff\xff" + batch[12:],
    "unknown magic": lambda good, batch: good + batch[:16] + b"\x09" + batch[17:],
}


@pytest.mark.parametrize("form", TORN)
@pytest.mark.parametrize("clean", [False, True])
def test_s_rec_9_torn_tails_end_the_log_at_the_last_whole_batch(form: str, clean: bool) -> None:
    built = filled()
    good = built.fs.read_bytes(path(16))
    batch = bytes(built.batch(2, base_offset=24, producer_id=7, producer_epoch=0, base_sequence=24))
    if clean:
        if form in ("bad checksum", "the same batch again"):
            pytest.skip("a clean stop is believed as far as the frames go")
        built.stopped()
    built.fs.write_bytes(path(16), TORN[form](good, batch))
    built.fs = built.fs.crash(keep_unsynced=True)
    log = built.open(clean=clean)
    assert log.log_end_offset == 24
    assert built.fs.size(path(16)) == len(good)
    assert built.append(2, producer_id=7, producer_epoch=0, base_sequence=24).first_offset == 24
    assert offsets(built) == list(range(26))
    log._check()


@pytest.mark.parametrize("preallocate", [False, True])
def test_zeros_behind_the_last_batch_are_no_corruption(
    preallocate: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    built = filled(preallocate=preallocate)
    size = built.log.segments.active.size
    built.fs.open(path(16)).truncate(size + 4096)
    built.killed()
    assert built.fs.size(path(16)) == size
    assert (
        f"16.log holds records up to offset 24; the 4096 bytes behind them are {Ended.ZEROS}"
        in (caplog.text)
    )
    assert "Corruption" not in caplog.text
    levels = {record.levelno for record in caplog.records if "behind them" in record.message}
    assert levels == {logging.INFO if preallocate else logging.WARNING}


def test_zeros_before_later_segments_are_corruption(caplog: pytest.LogCaptureFixture) -> None:
    built = filled()
    built.fs.open(path(8)).truncate(built.fs.size(path(8)) + 4096)
    assert built.killed().segments.base_offsets == [0, 8]
    assert "Corruption found in segment /logs/t-0/00000000000000000008.log" in caplog.text


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("base", [0, 16])
def test_s_rec_9_missing_index_files_are_rebuilt(kind: str, base: int, clean: bool) -> None:
    built = filled()
    built.stopped()
    wanted = built.fs.read_bytes(path(base, kind))
    built.fs.unlink(path(base, kind))
    log = built.open(clean=clean, recovery_point=24)
    if base == 0:
        assert built.fs.crash().read_bytes(path(base, kind)) == wanted, "it is synced at once"
    assert offsets(built) == list(range(24))
    for segment in log.segments:
        segment.close()
    assert built.fs.read_bytes(path(base, kind)) == wanted


@pytest.mark.parametrize("clean", [False, True])
def test_s_rec_9_zero_length_and_missing_record_files(clean: bool) -> None:
    built = filled()
    built.stopped()
    built.fs.write_bytes(path(16), b"")
    log = built.open(clean=clean)
    assert log.log_end_offset == 16
    built.fs.unlink(path(16))
    log = built.open(clean=clean)
    assert f"{16:020d}.index" not in built.names()
    assert log.log_end_offset == 16
    assert offsets(built) == list(range(16))


@pytest.mark.parametrize("kind", ["index", "timeindex", "txnindex"])
def test_s_rec_9_any_index_of_an_empty_segment_is_emptied(kind: str) -> None:
    built = LogBuilder()
    built.append(8)
    built.log.roll()
    built.stopped()
    built.fs.write_bytes(path(8, kind), built.fs.read_bytes(path(0, "timeindex")) * 17)
    log = built.open(clean=True)
    active = log.segments.active
    assert (active.base_offset, active.size) == (8, 0)
    built.append(1)
    assert offset_for_timestamp(built.log, 0) is not None
    entries = [active.indexes.offset, active.indexes.time]
    assert [len(index.as_array()) for index in entries] == [0, 0]
    assert not (f"{8:020d}.txnindex" in built.names() and built.fs.size(path(8, "txnindex")))


def test_s_rec_9_an_index_longer_than_its_log() -> None:
    built = filled()
    built.stopped()
    size = built.fs.size(path(16)) // 2
    built.fs.write_bytes(path(16), built.fs.read_bytes(path(16))[:size])
    log = built.open(clean=True)
    assert log.log_end_offset == 20
    assert offsets(built) == list(range(20))
    assert log.segments.active.indexes.offset.last_offset < 20


def test_s_rec_9_a_txn_index_cut_in_an_entry() -> None:
    built = LogBuilder()
    for producer in (1, 2):
        built.append(2, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
        built.end_transaction(producer, replicated=False)
    wanted = built.fs.read_bytes(path(0, "txnindex"))
    assert len(wanted) == 68
    for clean in (True, False):
        built.stopped()
        built.fs.write_bytes(path(0, "txnindex"), wanted[:50])
        built.open(clean=clean)
        assert built.fs.read_bytes(path(0, "txnindex")) == wanted


def test_s_rec_2_leftovers_of_an_unfinished_compaction_go() -> None:
    built = filled()
    built.stopped()
    for kind in ("log", "index", "timeindex"):
        built.fs.write_bytes(path(8, f"{kind}.cleaned"), b"half written")
        built.fs.write_bytes(path(0, f"{kind}.deleted"), b"old")
    built.fs.write_bytes(path(16, "log.swap"), b"of a split that did not get through")
    built.open()
    assert all(name.count(".") <= 1 for name in built.names())
    assert offsets(built) == list(range(24))


@pytest.mark.parametrize("clean", [False, True])
def test_s_rec_2_a_finished_swap_replaces_its_segments(clean: bool) -> None:
    built = filled()
    built.stopped()
    merged = built.fs.read_bytes(path(0)) + built.fs.read_bytes(path(8))
    built.fs.write_bytes(path(0, "log.swap"), merged)
    log = built.open(clean=clean)
    assert log.segments.base_offsets == [0, 16]
    assert offsets(built) == list(range(24))
    log._check()


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("stem", ["99999999999999999999", "42", "notes"])
def test_files_that_no_offset_names_are_left_alone_and_named(
    stem: str, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    built = filled()
    built.stopped()
    kinds = ("log", "index", "timeindex", "txnindex", "snapshot", "log.swap", "index.cleaned")
    foreign = [f"{DIRECTORY}/{stem}.{kind}" for kind in kinds]
    for name in foreign:
        built.fs.write_bytes(name, b"")
    log = built.open(clean=clean)
    assert (log.log_start_offset, log.log_end_offset) == (0, 24)
    assert log.segments.base_offsets == [0, 8, 16]
    for name in foreign:
        assert built.fs.exists(name)
        assert f"Leaving {name} alone" in caplog.text
    assert built.append().first_offset == 24
    assert offsets(built) == list(range(25))
    log._check()


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("kind", ["log", "index", "snapshot", "log.swap", "log.deleted"])
def test_directories_named_as_segments_are_left_alone(kind: str, clean: bool) -> None:
    built = filled()
    built.stopped()
    built.fs.make_dirs(path(42, kind))
    built.fs.write_bytes(path(0, "log.deleted"), b"")
    log = built.open(clean=clean)
    assert log.segments.base_offsets == [0, 8, 16]
    assert built.fs.is_dir(path(42, kind))
    assert not built.fs.exists(path(0, "log.deleted"))
    assert built.append().first_offset == 24


def test_a_log_refuses_a_batch_that_the_offsets_do_not_suffice_for() -> None:
    built = LogBuilder()
    last = 2**63 - 1
    built.open(log_start_offset=last - 2)
    with pytest.raises(NoMoreOffsets):
        built.append(3)
    assert built.append(2).last_offset == last - 1
    with pytest.raises(NoMoreOffsets):
        built.append()
    assert built.stopped().log_end_offset == last


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize(("start", "bases"), [(23, [0, 8, 16]), (24, [0, 8, 16]), (25, [25])])
def test_s_rec_4_only_a_log_start_beyond_the_end_starts_over(
    start: int, bases: list[int], clean: bool
) -> None:
    built = filled()
    built.stopped()
    log = built.open(clean=clean, log_start_offset=start)
    assert log.segments.base_offsets == bases
    assert (log.log_start_offset, log.log_end_offset) == (start, max(24, start))
    starts_over = start > 24
    assert (log.producers.is_empty, log.leader_epochs.is_empty) == (starts_over, starts_over)
    assert built.append().first_offset == max(24, start)


def test_log_start_from_the_checkpoint_or_the_first_segment() -> None:
    built = filled()
    assert built.killed(log_start_offset=5).log_start_offset == 5
    for kind in ("log", "index", "timeindex"):
        built.fs.unlink(path(0, kind))
    assert built.killed(log_start_offset=5).log_start_offset == 8
