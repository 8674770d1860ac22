"""`SegmentSeeker` over indexes that are right, cut, or of another log."""

import struct
from pathlib import Path

from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.os_filesystem import OsFileSystem
from storage.reader.scan.seek import SegmentSeeker
from storage.reader.scan.segments import SegmentPlace

BASE = 100
BATCHES = [
    build_batch([(10 * number, b"k", b"v" * 40, ())], base_offset=BASE + number)
    for number in range(1, 9)
]
"""One record each: offset 101 dated 10, 102 dated 20, …"""
POSITIONS = [sum(map(len, BATCHES[:number])) for number in range(9)]


def seeker(
    directory: Path,
    *,
    entries: list[tuple[int, int]] | None = None,
    times: list[tuple[int, int]] | None = None,
    padding: int = 0,
    until: int | None = BASE + 50,
) -> SegmentSeeker:
    """A seeker of the eight batches; `entries`: (offset, position), `times`: (ms, offset)."""
    name = f"{BASE:020}"
    (directory / f"{name}.log").write_bytes(b"".join(BATCHES))
    if entries is not None:
        packed = [struct.pack(">ii", offset - BASE, position) for offset, position in entries]
        (directory / f"{name}.index").write_bytes(b"".join(packed))
    if times is not None:
        packed = [struct.pack(">qi", timestamp, offset - BASE) for timestamp, offset in times]
        (directory / f"{name}.timeindex").write_bytes(b"".join(packed) + bytes(padding))
    place = SegmentPlace(BASE, "", POSITIONS[-1], until)
    return SegmentSeeker.opened(OsFileSystem(), TopicPartition("t", 0), str(directory), place)


def test_the_first_offset_that_a_time_can_have(tmp_path: Path) -> None:
    """Entry (ms, offset): no record up to that offset is dated later than that."""
    with seeker(tmp_path, times=[(20, 102), (50, 105), (80, 108)]) as found:
        assert found.first_after(20) == BASE
        assert found.first_after(21) == 103
        assert found.first_after(50) == 103
        assert found.first_after(51) == 106
        assert found.first_after(999) == 109


def test_a_record_that_a_time_is_reached_at(tmp_path: Path) -> None:
    with seeker(tmp_path, times=[(20, 102), (50, 105), (80, 108)]) as found:
        assert found.reached(20) == 103
        assert found.reached(21) == 106
        assert found.reached(81) is None
        # From the present on, times are not believed; and no index has one beyond 64 bits.
        assert found.reached(51, now=80) == 109
        assert found.reached(51, now=79) is None
        assert found.reached(2**63 + 1) is None


def test_the_first_record_dated_at_least(tmp_path: Path) -> None:
    with seeker(tmp_path, times=[(20, 102), (50, 105), (80, 108)]) as found:
        dated = [found.offset_of(timestamp, BASE) for timestamp in (0, 20, 21, 50, 51, 80, 81)]
        assert dated == [101, 102, 103, 105, 106, 108, None]
        assert found.offset_of(20, 107) == 107


def test_newest_by_offsets(tmp_path: Path) -> None:
    with seeker(tmp_path, times=[(20, 102), (50, 105), (80, 108)]) as found:
        assert [found.newest_up_to(offset) for offset in (101, 102, 103, 105, 106, 108, 109)] == [
            *(20, 20, 50, 50, 80, 80),
            80,
        ]
        assert [found.newest_below(offset) for offset in (102, 103, 105, 106)] == [None, 20, 20, 50]
        assert [found.newest_below(109, now) for now in (19, 20, 79, 80)] == [None, 20, 50, 80]
        assert [found.newest_seen(now) for now in (19, 20, 79, 80)] == [None, 20, 50, 80]


def test_newest_is_not_known_while_a_segment_is_written_to(tmp_path: Path) -> None:
    """Zeros behind the entries, or no segment behind it: the last entry may come later."""
    times = [(20, 102), (80, 108)]
    with seeker(tmp_path, times=times) as closed:
        assert closed.newest_timestamp() == 80
        assert closed.newest_up_to(109) == 80
    with seeker(tmp_path, times=times, padding=120) as padded:
        assert padded.newest_timestamp() is None
        assert padded.newest_up_to(109) is None
        assert padded.newest_seen() == 80
    with seeker(tmp_path, times=times, until=None) as last:
        assert last.newest_timestamp() is None


def test_newest_is_not_known_of_a_time_index_that_lacks_its_last_entries(tmp_path: Path) -> None:
    """It was cut between two entries, or is older than the log: the next batch is newer."""
    with seeker(tmp_path, times=[(20, 102), (50, 105)]) as cut:
        assert cut.newest_seen() == 50
        assert cut.newest_timestamp() is None
        assert cut.newest_up_to(109) is None
        assert cut.offset_of(60, BASE) == 106
        assert cut.offset_of(81, BASE) is None


def test_times_that_the_log_contradicts_are_not_believed(tmp_path: Path) -> None:
    wrong_time, no_such_offset, wrong_batch = [(79, 108)], [(80, 120)], [(20, 103)]
    for times in (wrong_time, no_such_offset, wrong_batch):
        with seeker(tmp_path, times=times) as found:
            assert found.newest_seen() is None
            assert found.first_after(999) == BASE
            assert found.offset_of(50, BASE) == 105  # by a walk


def test_cuts_are_where_batches_of_the_entries_are(tmp_path: Path) -> None:
    """An entry whose batch is another, or that names no batch at all, is no cut."""
    right = [(102, POSITIONS[1]), (104, POSITIONS[3]), (106, POSITIONS[5]), (108, POSITIONS[7])]
    one = POSITIONS[1]
    with seeker(tmp_path, entries=right) as found:
        assert list(found.cuts(0, POSITIONS[8], 2 * one)) == [
            (104, POSITIONS[3]),
            (106, POSITIONS[5]),
            (108, POSITIONS[7]),
        ]
        assert found.last_indexed() == POSITIONS[7]
    shifted = [(offset + 1, position) for offset, position in right]
    inside = [(offset, position + 1) for offset, position in right]
    for entries in (shifted, inside):
        with seeker(tmp_path, entries=entries) as found:
            assert list(found.cuts(0, POSITIONS[8], 2 * one)) == []
            assert found.last_indexed() == 0
            places = [found.find(offset) for offset in range(101, 109)]
            assert [place and place.position for place in places] == POSITIONS[:8]


def test_an_entry_that_leads_too_far_is_not_followed(tmp_path: Path) -> None:
    """An index of another log: the batch there begins behind the offset that is looked for."""
    with seeker(tmp_path, entries=[(102, POSITIONS[3])]) as found:
        third = found.find(103)
        assert third is not None
        assert third.position == POSITIONS[2]


def test_offsets_without_an_index(tmp_path: Path) -> None:
    with seeker(tmp_path) as found:
        assert [found.end_of(offset) for offset in (101, 108, 109)] == [
            POSITIONS[1],
            POSITIONS[8],
            POSITIONS[8],
        ]
        assert found.find(109) is None
