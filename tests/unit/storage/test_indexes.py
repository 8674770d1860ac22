"""Offset and time index: the rules S-IDX-*, growing, trimming, full disks, damaged files."""

import errno
import os
from pathlib import Path

import pytest

from storage.errors import CorruptIndex, IndexOffsetOverflow, InvalidIndexAppend
from storage.index.mapped_index import MappedIndex
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from storage.os_filesystem import OsFileSystem
from tests.support.faulty_filesystem import FaultyFileSystem

MAX_SIZE = 10 * 1024 * 1024


@pytest.fixture
def offsets(fs: FaultyFileSystem) -> OffsetIndex:
    return OffsetIndex(fs, "/d/i", 100, MAX_SIZE)


@pytest.fixture
def times(fs: FaultyFileSystem) -> TimeIndex:
    return TimeIndex(fs, "/d/t", 100, MAX_SIZE)


def fill(index: OffsetIndex, entries: int, *, first: int = 1) -> None:
    for n in range(first, first + entries):
        index.append(index.base_offset + n * 10, n * 4100)


# --- searching


@pytest.mark.parametrize("entries", [1, 2, 1023, 1024, 1025, 1026, 3000])
def test_s_idx_3_the_warm_section_changes_no_answer(offsets: OffsetIndex, entries: int) -> None:
    fill(offsets, entries)
    for n in {1, 2, entries // 2, entries - 1025, entries - 1024, entries - 1, entries}:
        if 1 <= n <= entries:
            assert offsets.lookup(100 + n * 10) == (100 + n * 10, n * 4100)
            below = (90 + n * 10, (n - 1) * 4100) if n > 1 else (100, 0)
            assert offsets.lookup(99 + n * 10) == below


def test_s_idx_3_times_before_and_at_the_first_entry(times: TimeIndex) -> None:
    assert times.lookup(5) == times.last_entry == (-1, 100)
    times.maybe_append(1000, 110)
    times.maybe_append(2000, 120)
    assert [times.lookup(time) for time in (999, 1000)] == [(-1, 100), (1000, 110)]


# --- appending


def test_s_idx_1_offsets_must_rise(offsets: OffsetIndex) -> None:
    offsets.append(110, 50)
    with pytest.raises(InvalidIndexAppend, match="not larger than the last offset 110"):
        offsets.append(110, 60)
    assert offsets.entries == 1


def test_s_idx_2_time_entries_need_a_later_timestamp(times: TimeIndex) -> None:
    assert times.maybe_append(1000, 110)
    assert not times.maybe_append(1000, 115)
    assert times.maybe_append(1001, 110), "the same offset is allowed"
    assert times.entries == 2
    with pytest.raises(InvalidIndexAppend):
        times.maybe_append(2000, 109)
    with pytest.raises(InvalidIndexAppend):
        times.maybe_append(999, 120)


def test_s_idx_2_records_without_timestamps_make_no_entry(times: TimeIndex) -> None:
    assert not times.maybe_append(-1, 110)
    assert times.entries == 0


def test_s_idx_4_offsets_that_do_not_fit_31_bits(offsets: OffsetIndex, times: TimeIndex) -> None:
    largest = 100 + 2**31 - 1
    assert offsets.relative_offset(largest) == 2**31 - 1
    for bad in (99, largest + 1):
        with pytest.raises(IndexOffsetOverflow):
            offsets.append(bad, 1)
        with pytest.raises(IndexOffsetOverflow):
            times.maybe_append(5, bad)
    offsets.append(largest, 1)
    times.maybe_append(5, largest)
    assert offsets.lookup(largest) == (largest, 1)
    assert times.last_entry == (5, largest)


def test_s_roll_4_the_limit_is_rounded_down_to_whole_entries(fs: FaultyFileSystem) -> None:
    offsets = OffsetIndex(fs, "/d/i", 0, 10485766)
    times = TimeIndex(fs, "/d/t", 0, 10485760)
    offsets.append(1, 1)
    times.maybe_append(1, 1)
    assert fs.size("/d/i") == 10485760
    assert fs.size("/d/t") == 10485756


def test_s_roll_4_the_time_index_keeps_a_slot_for_the_roll(fs: FaultyFileSystem) -> None:
    times = TimeIndex(fs, "/d/t", 0, 12 * 3 + 5)
    assert times.maybe_append(1, 1)
    assert not times.is_full
    assert times.maybe_append(2, 2)
    assert times.is_full
    with pytest.raises(InvalidIndexAppend, match="full"):
        times.maybe_append(3, 3)
    assert times.maybe_append(3, 3, skip_full_check=True)
    assert times.entries == 3


def test_offset_index_is_full_at_its_limit(fs: FaultyFileSystem) -> None:
    offsets = OffsetIndex(fs, "/d/i", 0, 20)
    fill(offsets, 2)
    assert offsets.is_full
    with pytest.raises(InvalidIndexAppend, match="full"):
        offsets.append(1000, 1)
    with pytest.raises(ValueError, match="Invalid max index size"):
        OffsetIndex(fs, "/d/j", 0, 7)


# --- files


def test_s_idx_7_nothing_is_opened_before_the_first_question(fs: FaultyFileSystem) -> None:
    fs.operations.clear()
    index = OffsetIndex(fs, "/d/i", 0, MAX_SIZE)
    repr(index)
    index.close()
    assert fs.operations == []
    assert index.lookup(5) == (0, 0)
    assert not fs.exists("/d/i"), "asking makes no file"
    index.append(1, 1)
    assert fs.exists("/d/i")


def test_s_idx_7_deleting_and_renaming_are_safe_while_it_is_used(
    fs: FaultyFileSystem, offsets: OffsetIndex
) -> None:
    fill(offsets, 10)
    fs.rename("/d/i", "/d/i.deleted")
    assert offsets.lookup(155) == (150, 20500)
    fs.unlink("/d/i.deleted")
    assert offsets.lookup(155) == (150, 20500)


def test_s_roll_4_trim_cuts_the_file_and_appending_goes_on(offsets: OffsetIndex) -> None:
    fill(offsets, 5)
    offsets.trim_to_valid_size()
    assert offsets._fs.size("/d/i") == 40
    assert offsets.lookup(155) == (150, 20500)
    offsets.close()
    assert offsets.lookup(125) == (120, 8200)
    offsets.append(200, 30000)
    assert offsets._fs.size("/d/i") == MAX_SIZE
    offsets._check()
    offsets.close()
    assert offsets._fs.size("/d/i") == 48
    assert offsets.entries == 6


def test_closing_an_empty_index_leaves_an_empty_file(fs: FaultyFileSystem) -> None:
    index = OffsetIndex(fs, "/d/i", 0, MAX_SIZE)
    assert not index.is_full
    index.close()
    assert fs.size("/d/i") == 0
    assert index.entries == 0
    other = OffsetIndex(fs, "/d/j", 0, MAX_SIZE)
    other.ensure_exists()
    other.ensure_exists()
    assert fs.size("/d/j") == 0


def test_resize_to_kafkas_size_and_back(offsets: OffsetIndex) -> None:
    fill(offsets, 5)
    offsets.keep(5)  # drops nothing, so the file keeps its size
    assert not offsets.resize(MAX_SIZE)
    assert offsets.resize(100)
    assert offsets._fs.size("/d/i") == 96
    with pytest.raises(ValueError, match="do not hold 5 entries"):
        offsets.resize(39)
    assert offsets.entries == 5
    offsets._check()


def test_s_idx_5_cut_entries_do_not_come_back_after_a_crash(
    fs: FaultyFileSystem, offsets: OffsetIndex
) -> None:
    fill(offsets, 10)
    offsets.truncate_to(130)
    offsets.append(131, 20000)
    offsets.write_entries()
    after = OffsetIndex(fs.crash(keep_unsynced=True), "/d/i", 100, MAX_SIZE)
    assert [after.entry(n) for n in range(after.entries)] == [
        (110, 4100),
        (120, 8200),
        (131, 20000),
    ]


# --- disk space


def test_entries_are_written_some_dozens_at_a_time_where_zeros_were_before(
    fs: FaultyFileSystem,
) -> None:
    offsets = OffsetIndex(fs, "/d/i", 100, 8 * 400)
    for n in range(1, 400):
        offsets.append(100 + n, n)
        written = n - (n - 1) % 128 - 1
        raw = fs.read_bytes("/d/i")
        assert raw[: written * 8] == offsets.as_array()[:written].tobytes()
        assert not any(raw[written * 8 :])
        assert offsets.lookup(100 + n) == (100 + n, n)
        assert offsets.lookup(99 + n) == ((99 + n, n - 1) if n > 1 else (100, 0))
    offsets._check()


def test_entries_that_were_not_written_make_the_index_sparser_only(
    fs: FaultyFileSystem, offsets: OffsetIndex
) -> None:
    fill(offsets, 300)
    again = OffsetIndex(fs, "/d/i", 100, MAX_SIZE)
    assert again.entries == 256
    again.append(5000, 10**7)
    assert [again.lookup(n)[0] for n in (4999, 5000)] == [2660, 5000]
    again.close()
    again.sanity_check(full=True)


@pytest.mark.parametrize("size", [0, 1, 8, 1200, 2047])
def test_a_file_that_was_cut_under_an_open_index_is_corrupt_and_no_signal(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "i"
    index = OffsetIndex(OsFileSystem(), str(path), 100, MAX_SIZE)
    fill(index, 4000)
    index.trim_to_valid_size()
    with path.open("r+b") as file:
        file.truncate(size)
    for target in (110, 5000, 20000, 40000):
        with pytest.raises(CorruptIndex, match="was cut"):
            index.lookup(target)
    assert index.lookup(10**9) == (40100, 16400000), "its last entry is known"
    for ask in (
        index.as_array,
        lambda: index.entry(3999),
        lambda: index.upper_bound(0, 4100),
        lambda: index.append(50000, 16500000),
    ):
        with pytest.raises(CorruptIndex, match="was cut"):
            ask()
    assert index.entries == 4000


def test_a_file_that_was_lost_under_an_open_index_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "i"
    index = OffsetIndex(OsFileSystem(), str(path), 100, MAX_SIZE)
    fill(index, 4000)
    index.trim_to_valid_size()
    assert index.lookup(110) == (110, 4100)
    path.unlink()
    assert index.lookup(120) == (120, 8200), "it is still mapped"
    with pytest.raises(CorruptIndex, match="was cut"):
        index.append(50000, 16500000)


def descriptors(of: Path) -> int:
    """How many this process has of one file, mappings' own included."""
    links = [os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd")]
    return sum(os.path.exists(link) and os.path.samefile(link, of) for link in links)


def test_an_index_holds_one_descriptor_at_most(tmp_path: Path) -> None:
    path = tmp_path / "i"
    index = OffsetIndex(OsFileSystem(), str(path), 100, MAX_SIZE)
    index.append(110, 4100)
    assert descriptors(path) == 0
    fill(index, 600, first=2)
    assert descriptors(path) == 0
    assert index.lookup(115) == (110, 4100)
    assert descriptors(path) == 1
    fill(index, 200, first=700)
    assert index.lookup(7109) == (7100, 700 * 4100)
    assert descriptors(path) == 1
    index.trim_to_valid_size()
    assert descriptors(path) == 1
    index.close()
    assert descriptors(path) == 0


@pytest.mark.parametrize("operation", ["truncate", "pwrite", "open"])
def test_a_full_disk_is_an_error_and_not_a_signal(
    fs: FaultyFileSystem, operation: str, offsets: OffsetIndex, times: TimeIndex
) -> None:
    assert offsets.entries == times.entries == 0
    fs.fail(operation, errno=errno.ENOSPC, times=2)
    with pytest.raises(OSError, match="No space"):
        offsets.append(110, 1)
    with pytest.raises(OSError, match="No space"):
        times.maybe_append(1, 110)
    assert (offsets.entries, times.entries) == (0, 0)
    assert (offsets.last_offset, times.last_entry) == (100, (-1, 100))
    offsets._check()
    offsets.append(110, 1)
    assert times.maybe_append(1, 110)
    offsets._check()


def test_a_disk_that_fills_up_later_keeps_what_was_added(
    fs: FaultyFileSystem, offsets: OffsetIndex
) -> None:
    fill(offsets, 512)
    fs.fail("pwrite", times=1, errno=errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        offsets.append(10**6, 10**9)
    assert offsets.entries == 512
    offsets._check()
    offsets.close()
    assert fs.size("/d/i") == 512 * 8


def test_real_files_are_sparse(tmp_path: Path) -> None:
    fs = OsFileSystem()
    for kind in (OffsetIndex, TimeIndex):
        index = kind(fs, str(tmp_path / kind.__name__), 0, MAX_SIZE)
        if isinstance(index, OffsetIndex):
            index.append(1, 1)
        else:
            index.maybe_append(1, 1)
        stat = (tmp_path / kind.__name__).stat()
        assert stat.st_size > MAX_SIZE - 12
        assert stat.st_blocks * 512 <= 64 * 1024


# --- damage


def test_s_idx_8_a_presized_file_after_a_kill_shows_its_real_entries_but_is_not_trusted(
    fs: FaultyFileSystem, offsets: OffsetIndex, times: TimeIndex
) -> None:
    fill(offsets, 1000)
    for n in range(1, 500):
        times.maybe_append(n, 100 + n)
    offsets.write_entries()
    times.write_entries()
    after = fs.crash(keep_unsynced=True)
    offsets = OffsetIndex(after, "/d/i", 100, MAX_SIZE)
    times = TimeIndex(after, "/d/t", 100, MAX_SIZE)
    assert offsets.entries == 1000
    assert offsets.lookup(10**9) == (10100, 4100000)
    assert times.entries == 499
    assert times.last_entry == (499, 599)
    for index in (offsets, times):
        with pytest.raises(CorruptIndex, match="ends in zeros"):
            index.sanity_check()
        index.trim_to_valid_size()
        index.sanity_check()
        index._check()


def test_s_idx_8_a_file_of_zeros_only(fs: FaultyFileSystem) -> None:
    fs.write_bytes("/d/i", bytes(8000))
    fs.write_bytes("/d/t", bytes(1200))
    offsets = OffsetIndex(fs, "/d/i", 100, MAX_SIZE)
    assert offsets.entries == 0
    assert offsets.lookup(1000) == (100, 0)
    with pytest.raises(CorruptIndex):
        offsets.sanity_check()
    times = TimeIndex(fs, "/d/t", 100, MAX_SIZE)
    assert times.entries == 1, "a record dated 1970 at the base offset looks like that"
    with pytest.raises(CorruptIndex):
        times.sanity_check()


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (OffsetIndex, b"\0\0\0\5\0\0\0\7\0"),
        (OffsetIndex, b"\0\0\0\0\0\0\0\7"),
        (OffsetIndex, b"\xff\0\0\5\0\0\0\7"),
        (TimeIndex, bytes(11)),
        (TimeIndex, (9).to_bytes(8, "big") + bytes(4) + (8).to_bytes(8, "big") + bytes(4)),
        (TimeIndex, (9).to_bytes(8, "big") + b"\xff\0\0\0"),
    ],
)
def test_s_idx_6_contradictions_are_found(
    fs: FaultyFileSystem, kind: type[MappedIndex], content: bytes
) -> None:
    fs.write_bytes("/d/i", content)
    with pytest.raises(CorruptIndex, match="/d/i"):
        kind(fs, "/d/i", 100, MAX_SIZE).sanity_check()


def test_s_idx_6_a_full_check_looks_at_every_entry(fs: FaultyFileSystem) -> None:
    pairs = ((1, 10), (5, 20), (4, 30), (6, 40))
    raw = b"".join(o.to_bytes(4, "big") + p.to_bytes(4, "big") for o, p in pairs)
    fs.write_bytes("/d/i", raw)
    offsets = OffsetIndex(fs, "/d/i", 0, MAX_SIZE)
    offsets.sanity_check()
    with pytest.raises(CorruptIndex, match="relative_offset does not rise"):
        offsets.sanity_check(full=True)
    raw = b"".join(t.to_bytes(8, "big") + o.to_bytes(4, "big") for o, t in pairs)
    fs.write_bytes("/d/t", raw)
    times = TimeIndex(fs, "/d/t", 0, MAX_SIZE)
    times.sanity_check()
    with pytest.raises(CorruptIndex, match="offsets fall"):
        times.sanity_check(full=True)


def test_s_rec_9_an_index_that_points_beyond_its_log(offsets: OffsetIndex) -> None:
    fill(offsets, 3)
    offsets.sanity_check(log_size=12301)
    with pytest.raises(CorruptIndex, match="points to 12300 in a log of 12300 bytes"):
        offsets.sanity_check(log_size=12300)


def test_entries_as_a_numpy_array(offsets: OffsetIndex, times: TimeIndex) -> None:
    fill(offsets, 4)
    times.maybe_append(1700000000000, 107)
    table = offsets.as_array()
    assert table["position"].tolist() == [4100, 8200, 12300, 16400]
    assert (table["relative_offset"] + 100).tolist() == [110, 120, 130, 140]
    assert not table.flags.writeable
    assert times.as_array().tolist() == [(1700000000000, 7)]
    with pytest.raises(IndexError):
        offsets.entry(4)
    with pytest.raises(IndexError):
        times.entry(-1)
