"""Segments whose offsets lie too far apart for their indexes are cut in pieces (KAFKA-6264)."""

import errno

import pytest

from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.records.message_set import build_message_set
from storage.index.mapped_index import MAX_RELATIVE_OFFSET
from storage.log.results import FetchIsolation
from tests.support.log_builder import LogBuilder
from tests.support.recovering import path

FAR = 2**31 + 5


def offsets(built: LogBuilder) -> list[int]:
    return [record.offset for record in built.records(built.log.log_start_offset)]


def overflown(*bases: int, name: int = 0, **config: object) -> LogBuilder:
    """One segment with a batch of two records at each of these offsets, without indexes."""
    built = LogBuilder(index_interval_bytes=0, **config)
    data = b"".join(built.batch(2, base_offset=base, leader_epoch=0) for base in bases)
    for kind in ("log", "index", "timeindex"):
        built.fs.unlink(path(0, kind))
    built.fs.write_bytes(path(name), data)
    return built


def check(built: LogBuilder, *bases: int) -> None:
    """It is split there, every record is found, and every batch but the first ones is indexed."""
    log = built.log
    assert log.segments.base_offsets == list(bases)
    assert not [name for name in built.names() if name.endswith((".swap", ".cleaned"))]
    log._check()
    for segment in log.segments:
        end, whole = segment.read_end()
        assert whole
        assert end - 1 - segment.base_offset <= MAX_RELATIVE_OFFSET
        batches = len([o for o in offsets(built) if segment.base_offset <= o < end]) // 2
        assert segment.indexes.offset.entries == max(batches - 1, 0)
    for offset in offsets(built):
        assert log.read(offset, 10, FetchIsolation.LOG_END).records


@pytest.mark.parametrize("clean", [False, True])
def test_s_idx_4_a_segment_is_split_before_the_batch_that_its_index_cannot_hold(
    clean: bool,
) -> None:
    built = overflown(0, 2, FAR, FAR + 2, 2 * FAR)
    log = built.open(clean=clean)
    check(built, 0, FAR, 2 * FAR)
    assert offsets(built) == [0, 1, 2, 3, FAR, FAR + 1, FAR + 2, FAR + 3, 2 * FAR, 2 * FAR + 1]
    assert log.log_end_offset == 2 * FAR + 2
    assert built.append(2).first_offset == 2 * FAR + 2
    built.stopped()
    check(built, 0, FAR, 2 * FAR)


def test_s_idx_4_the_last_offset_of_a_batch_decides() -> None:
    fits = 2**31 - 2  # its second record is at the greatest distance that there is
    built = overflown(0, fits)
    built.open(clean=False)
    assert built.log.segments.base_offsets == [0]
    assert built.log.segments.active.indexes.offset.last_offset == MAX_RELATIVE_OFFSET
    built = overflown(0, fits + 1)
    built.open(clean=False)
    check(built, 0, fits + 1)


def test_s_idx_4_a_first_batch_that_is_too_far_leaves_an_empty_segment_in_front() -> None:
    built = overflown(FAR, name=0)
    built.open(clean=False)
    check(built, 0, FAR)
    assert built.fs.size(path(0)) == 0
    assert built.killed().segments.base_offsets == [0, FAR]
    assert offsets(built) == [FAR, FAR + 1]


@pytest.mark.parametrize(
    ("clean", "recovery_point"), [(True, 0), (False, 0), (False, FAR), (False, 2 * FAR)]
)
def test_s_idx_4_a_segment_with_others_behind_it(clean: bool, recovery_point: int) -> None:
    built = overflown(0, FAR)
    batch = built.batch(2, base_offset=FAR + 2, leader_epoch=0)
    built.fs.write_bytes(path(FAR + 2), bytes(batch))
    for base in (0, FAR + 2):
        # Sound as far as they go, so that only the offsets tell.
        built.fs.write_bytes(path(base, "index"), b"")
        stamp = built.clock.wall_ms().to_bytes(8, "big")
        built.fs.write_bytes(path(base, "timeindex"), stamp + bytes([0, 0, 0, 1]))
    built.open(clean=clean, recovery_point=recovery_point)
    check(built, 0, FAR, FAR + 2)
    # The holes between the pieces are no loss, whatever the next start believes.
    for point in (0, FAR, FAR + 4):
        assert built.killed(recovery_point=point).log_end_offset == FAR + 4
        check(built, 0, FAR, FAR + 2)


@pytest.mark.parametrize("start", ["killed", "stopped", "stopped, without an index"])
@pytest.mark.parametrize(("bit", "second"), [(20, 6), (31, 6), (40, 6), (40, FAR)])
def test_one_damaged_offset_takes_no_later_segment(start: str, bit: int, second: int) -> None:
    """No checksum covers the base offset of a batch."""
    built = overflown(0, 2 ^ 1 << bit)
    later = (second, second + 2 * FAR)
    for base in later:
        data = built.batch(2, base_offset=base, leader_epoch=0)
        built.fs.write_bytes(path(base), bytes(data))
    for base in (0, *later) if start == "stopped" else later:
        built.fs.write_bytes(path(base, "index"), b"")
        stamp = built.clock.wall_ms().to_bytes(8, "big")
        built.fs.write_bytes(path(base, "timeindex"), stamp + bytes([0, 0, 0, 1]))
    before = {base: built.fs.read_bytes(path(base)) for base in (0, *later)}
    log = built.open(clean=start != "killed")
    assert log.segments.base_offsets == [0, *later]
    assert log.log_end_offset == later[-1] + 2
    assert {base: built.fs.read_bytes(path(base)) for base in before} == before


def test_a_torn_end_is_cut_off_before_the_split() -> None:
    built = overflown(0, FAR)
    data = built.fs.read_bytes(path(0))
    built.fs.write_bytes(path(0), data + data[-20:])
    built.open(clean=False)
    check(built, 0, FAR)
    assert built.log.size == len(data)


def test_s_txn_3_aborted_transactions_are_in_the_piece_of_their_marker() -> None:
    built = LogBuilder(index_interval_bytes=0)
    now = built.clock.wall_ms()
    data = b""
    for producer, base in ((1, 0), (2, FAR)):
        data += build_batch(
            [(now, b"k", b"v", ())],
            base_offset=base,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
            leader_epoch=0,
        )
        marker = bytearray(
            build_end_transaction_marker(
                ControlType.ABORT,
                producer_id=producer,
                producer_epoch=0,
                coordinator_epoch=0,
                timestamp=now,
            )
        )
        marker[:8] = (base + 1).to_bytes(8, "big")
        data += bytes(marker)
    built.fs.write_bytes(path(0), data)
    log = built.open(clean=False)
    assert log.segments.base_offsets == [0, FAR]
    assert [segment.aborted.index.last_offset for segment in log.segments] == [1, FAR + 1]
    assert log.producers.snapshots.offsets == (FAR, FAR + 2)


def test_pieces_are_as_old_as_the_segment() -> None:
    built = overflown(0, FAR)
    built.fs.set_mtime_ms(path(0), 12_345)
    log = built.open(clean=False)
    assert [segment.files.last_modified_ms() for segment in log.segments] == [12_345, 12_345]


@pytest.mark.parametrize("suffix", [".cleaned", ".swap"])
def test_a_split_that_fails_leaves_the_segment_as_it_was(suffix: str) -> None:
    built = overflown(0, FAR)
    before = built.fs.read_bytes(path(0))
    operation = "pwrite" if suffix == ".cleaned" else "rename"
    built.fs.fail(operation, "*.cleaned", nth=2, errno=errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        built.open(clean=False)
    assert built.fs.read_bytes(path(0)) == before
    if suffix == ".cleaned":
        assert not [name for name in built.names() if name.endswith(".cleaned")]
    built.fs.heal()
    built.killed()
    check(built, 0, FAR)


def test_s_rec_10_killed_at_any_moment_of_a_split_nothing_is_lost() -> None:
    built = overflown(0, 2, FAR, FAR + 2, 2 * FAR, segment_index_bytes=400)
    for killed_at in built.interrupted_starts(
        "open", "truncate", "pwrite", "fsync", "rename", "unlink"
    ):
        check(built, 0, FAR, 2 * FAR)
        assert len(offsets(built)) == 10, killed_at


def test_compressed_messages_of_format_1_are_split_between_wrappers() -> None:
    built = LogBuilder(index_interval_bytes=0)
    now = built.clock.wall_ms()
    data = b"".join(
        build_message_set(
            [(base, now, b"k", b"v"), (base + 1, now, b"k", b"v")],
            magic=1,
            codec=CompressionType.GZIP,
        )
        for base in (0, 2, FAR, FAR + 2)
    )
    built.fs.write_bytes(path(0), data)
    built.open(clean=False)
    check(built, 0, FAR)
    assert offsets(built) == [0, 1, 2, 3, FAR, FAR + 1, FAR + 2, FAR + 3]
