"""Segments that recovery reads in part or not at all: what it may believe (S-REC-3, S-TXN-6)."""

from collections.abc import Callable

import pytest

from protocol.records.builder import build_batch
from storage.log.results import FetchIsolation
from storage.waits import at_once
from tests.support.log_builder import DIRECTORY, LogBuilder
from tests.support.recovering import flip, path, state_of, tail


def test_s_rec_3_below_the_recovery_point_a_segment_is_not_read() -> None:
    built, position = tail()
    flip(built, 100)
    assert built.killed(recovery_point=60).log_end_offset == 80
    flip(built, position + 40)
    assert built.killed(recovery_point=60).log_end_offset == 60
    flip(built, position - 20)
    # Damage right below the recovery point shows, so the start reads the whole segment.
    log = built.killed(recovery_point=60)
    assert (log.log_end_offset, log.recovery_point) == (2, 0)


def test_s_fl_2_as_much_is_claimed_with_batches_of_one_record() -> None:
    built = LogBuilder(index_interval_bytes=0)
    for _ in range(20):
        built.clock.advance(0.001)
        built.append()
    at_once(built.log.flush())
    for point in range(1, 21):
        assert built.killed(recovery_point=point).recovery_point == point


@pytest.mark.parametrize("interval", [100, 200, 400, 10_000])
def test_s_rec_3_nothing_is_counted_twice_in_a_segment_that_is_read_in_part(interval: int) -> None:
    """Transactions and batches below the recovery point, in what is read again to find its end."""
    built = LogBuilder(index_interval_bytes=interval)
    built.append(2, producer_id=7, producer_epoch=0, base_sequence=0)
    for producer in (1, 2):
        built.append(2, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
    built.end_transaction(2, replicated=False)
    built.end_transaction(1, replicated=False)
    built.append(2, producer_id=7, producer_epoch=0, base_sequence=2)
    at_once(built.log.flush())
    point = built.log.log_end_offset
    built.append(2, producer_id=7, producer_epoch=0, base_sequence=4)
    built.end_transaction(7, replicated=False)
    whole = state_of(built.killed())
    assert built.killed(recovery_point=point).recovery_point == point
    assert state_of(built.log) == whole
    known = built.log.producers.entry(7)
    assert known is not None
    first_sequences = [batch.first_sequence for batch in known.batches]
    assert first_sequences == sorted(set(first_sequences))
    built.log._check()


def test_s_rec_3_half_of_the_last_time_entry_is_not_believed() -> None:
    """An orderly stop, or a roll, writes it last; the power may have taken its second half."""
    built = LogBuilder(index_interval_bytes=10_000)
    for _ in range(5):
        built.clock.advance(0.001)
        built.append(2)
    built.stopped()
    whole = built.fs.read_bytes(path(0, "timeindex"))
    assert len(whole) == 12
    built.fs.write_bytes(path(0, "timeindex"), whole[:8] + bytes(4))
    log = built.killed(recovery_point=10)
    at_once(log.close())
    assert built.fs.read_bytes(path(0, "timeindex")) == whole


def test_s_rec_3_a_marker_that_says_nothing_ends_the_log() -> None:
    built = LogBuilder()
    built.append(2, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    built.end_transaction(7, replicated=False)
    good, size = built.log.size, built.log.log_end_offset
    marker = build_batch(
        [(built.clock.wall_ms(), b"\0", b"", ())],
        base_offset=size,
        producer_id=7,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    after = built.batch(base_offset=size + 1, leader_epoch=0)
    built.fs.write_bytes(path(0), built.fs.read_bytes(path(0)) + bytes(marker) + after)
    log = built.killed()
    assert (log.log_end_offset, log.size, built.fs.size(path(0))) == (size, good, good)
    assert log.segments.first.max_timestamp == built.clock.wall_ms()
    log._check()


def test_s_rec_3_what_was_lost_between_the_recovery_point_and_the_next_segment_ends_the_log() -> (
    None
):
    built = LogBuilder()
    built.append()
    at_once(built.log.flush())
    synced = built.log.size
    built.append()
    built.log.roll()
    built.fs = built.fs.crash(keep_unsynced=True)
    # The power took the second batch, and its entry, but not the names of the next segment's files.
    for kind, size in (("log", synced), ("index", 0), ("timeindex", 12)):
        built.fs.write_bytes(path(0, kind), built.fs.read_bytes(path(0, kind))[:size])
    log = built.open(clean=False, recovery_point=1)
    assert (log.log_end_offset, len(log.segments)) == (1, 1)


@pytest.mark.parametrize("interval", [0, 150, 1000])
@pytest.mark.parametrize("point", [2, 4, 38, 58, 60, 80])
def test_s_rec_3_a_segment_read_in_part_is_as_one_read_whole(interval: int, point: int) -> None:
    built = LogBuilder(index_interval_bytes=interval)
    now = built.clock.wall_ms()
    for at in range(40):
        stamp = now + at + 5 * (at % 7)  # they go back, too
        built.append_dated(stamp, stamp, producer_id=7, producer_epoch=0, base_sequence=2 * at)
    whole = state_of(built.killed())
    assert state_of(built.killed(recovery_point=point)) == whole
    built.fs.unlink(f"{DIRECTORY}/{80:020d}.snapshot")
    assert state_of(built.killed(recovery_point=point)) == whole
    built.log._check()


@pytest.mark.parametrize(
    "damage",
    [
        lambda index, times: (index[:100], times),  # fewer entries: more is read
        lambda index, times: (b"", times),
        lambda index, times: (index, times[:120]),
        lambda index, times: (index, b""),
        lambda index, times: (index[:80] + b"\xff" * 8 + index[88:], times),
        lambda index, times: (index[:-8] + b"\0\0\0\x3a\0\0\0\x11", times),
        lambda index, times: (index, times[:-24] + bytes(12) + times[-12:]),
        lambda index, times: (index, times[:-12] + times[-24:-12]),
        # Half an entry: it seems to be one of an earlier batch.
        lambda index, times: (index, times[: 12 * 20] + times[12 * 20 : 12 * 20 + 8] + bytes(4)),
    ],
)
def test_s_rec_3_indexes_that_cannot_be_believed_are_made_anew(
    damage: Callable[[bytes, bytes], tuple[bytes, bytes]],
) -> None:
    built, _ = tail()
    whole = state_of(built.killed())
    index, times = (built.fs.read_bytes(path(0, kind)) for kind in ("index", "timeindex"))
    index, times = damage(index, times)
    built.fs.write_bytes(path(0, "index"), index)
    built.fs.write_bytes(path(0, "timeindex"), times)
    assert state_of(built.killed(recovery_point=60)) == whole


def test_s_txn_6_an_aborted_transaction_below_the_recovery_point_stays_aborted() -> None:
    built = LogBuilder()
    built.append(2, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    at_once(built.log.flush())
    built.end_transaction(1, replicated=False)
    # The transaction index is a new file, whose name has to be synced as well.
    at_once(built.log.flush())
    built.fs = built.fs.crash(forget_names=True)
    log = built.open(clean=False, recovery_point=3)
    assert log.recovery_point == 3
    assert [txn.producer_id for txn in log.segments.first.aborted.index.all_aborted()] == [1]


@pytest.mark.parametrize("clean", [True, False])
def test_s_txn_6_a_transaction_that_is_open_since_the_first_offset_is_open_after_a_start(
    clean: bool,
) -> None:
    """Offset 0 is an offset; and an open transaction never expires (S-IDEM-2)."""
    built = LogBuilder()
    built.append(2, producer_id=0, producer_epoch=0, base_sequence=0, transactional=True)
    built.append(2)
    built.stopped()
    if not clean:
        built.killed(recovery_point=4)
    log = built.log
    log.update_high_watermark(4)
    assert (log.high_watermark, log.last_stable_offset) == (4, 0)
    assert at_once(log.producers.expire(built.clock.wall_ms() + 2**40)) == 0
    built.end_transaction(0, replicated=False)
    log.update_high_watermark(5)
    assert log.last_stable_offset == 5
    assert at_once(log.producers.expire(built.clock.wall_ms() + 2**40)) == 1


@pytest.mark.parametrize("point", [3, 6])
def test_s_txn_6_the_transaction_index_keeps_only_what_is_true_below_the_point(
    point: int,
) -> None:
    built = LogBuilder(index_interval_bytes=0)
    for producer in (1, 2):
        built.append(2, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
        built.end_transaction(producer, replicated=False)
    at_once(built.log.flush())
    good = built.fs.read_bytes(path(0, "txnindex"))
    size = len(good) // 2
    torn = {
        "none of the second": good[:size] + bytes(size),
        "half of the second": good[: size + 12],
        "its marker is another batch": good[:size] + good[size : size + 25] + b"\4" + good[-8:],
        "its marker is within a batch": good[:size] + good[size : size + 25] + b"\3" + good[-8:],
        "its marker is another's": good[:size] + good[size : size + 9] + b"\1" + good[size + 10 :],
    }
    for form, content in torn.items():
        if point == 3 or form.startswith("its"):  # below the point all was synced
            built.fs.write_bytes(path(0, "txnindex"), content)
            log = built.killed(recovery_point=point)
            log.release()
            assert built.fs.read_bytes(path(0, "txnindex")) == good, form


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("index", lambda good: good[:-3]),
        ("index", lambda good: good + bytes(8 * 40)),
        ("index", lambda good: good[:8] + bytes(8 * 40)),
        ("timeindex", lambda good: good[:-3]),
        ("timeindex", lambda good: good + bytes(12 * 40)),
        ("timeindex", lambda good: b""),
        ("txnindex", lambda good: bytes(20)),
    ],
)
def test_s_idx_8_below_the_recovery_point_sizes_tell_what_was_not_finished(
    kind: str, damage: Callable[[bytes], bytes]
) -> None:
    built = LogBuilder(index_interval_bytes=0)
    for at in range(12):
        if at in (4, 8):
            built.log.roll()
        built.clock.advance(0.01)
        built.append(2)
    built.stopped()
    good = {suffix: built.fs.read_bytes(path(0, suffix)) for suffix in ("index", "timeindex")}
    built.fs.write_bytes(path(0, kind), damage(good.get(kind, b"")))
    built.killed(recovery_point=24)
    assert {suffix: built.fs.read_bytes(path(0, suffix)) for suffix in good} == good
    if kind == "txnindex":
        assert built.fs.size(path(0, kind)) == 0


@pytest.mark.parametrize("interval", [0, 10**6])
def test_what_is_not_read_of_a_segment_is_not_known_of_its_aborted_transactions(
    interval: int,
) -> None:
    built = LogBuilder(index_interval_bytes=interval)
    built.append(2, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    built.end_transaction(1, replicated=False)
    for _ in range(3):
        built.append()
    at_once(built.log.flush())
    built.fs.write_bytes(path(0, "txnindex"), b"")
    log = built.killed(recovery_point=5)
    assert log.recovery_point == 5
    log.update_high_watermark(log.log_end_offset)
    assert log.segments.first.aborted.sum is None
    found = log.read(0, 1 << 20, FetchIsolation.TXN_COMMITTED)
    assert [txn.producer_id for txn in found.aborted or ()] == [1]
