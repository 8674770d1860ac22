"""Which segments are written into one (S-CMP-4); cases of Kafka's LogCleanerTest."""

from storage.cleaner.grouping import group_segments
from storage.cleaner.request import SourceSegment


def segments(*bases: int, size: int = 100, index: int = 8, times: int = 12) -> list[SourceSegment]:
    return [
        SourceSegment(
            base_offset=base,
            size=size,
            last_modified_ms=0,
            offset_index_size=index,
            time_index_size=times,
        )
        for base in bases
    ]


def bases(
    found: list[SourceSegment], *, end: int, size: int = 10**6, index: int = 10**6
) -> list[list[int]]:
    groups = group_segments(
        found, segment_bytes=size, segment_index_bytes=index, first_uncleanable_offset=end
    )
    assert [one for group in groups for one in group] == found
    return [[one.base_offset for one in group] for group in groups]


def test_s_cmp_4_all_that_fit_are_one_group() -> None:
    assert bases(segments(0, 10, 20), end=30) == [[0, 10, 20]]
    assert bases([], end=0) == []


def test_s_cmp_4_a_group_is_no_larger_than_a_segment_may_be() -> None:
    assert bases(segments(0, 10, 20, 30, 40), end=50, size=299) == [[0, 10], [20, 30], [40]]
    assert bases(segments(0, 10, 20, 30, 40), end=50, size=300) == [[0, 10, 20], [30, 40]]
    assert bases(segments(0, 10), end=20, size=1) == [[0], [10]]


def test_s_cmp_4_nor_are_its_indexes_larger_than_an_index() -> None:
    assert bases(segments(0, 10, 20, index=8, times=0), end=30, index=16) == [[0, 10], [20]]
    assert bases(segments(0, 10, 20, index=0, times=12), end=30, index=24) == [[0, 10], [20]]
    assert bases(segments(0, 10, 20, index=8, times=12), end=30, index=35) == [[0, 10], [20]]
    assert bases(segments(0, 10, 20, index=8, times=12), end=30, index=36) == [[0, 10, 20]]


def test_s_cmp_4_its_last_offset_fits_the_relative_offsets_of_its_base() -> None:
    most = 2**31 - 1
    # A segment ends at the next one's base, the last one at the uncleanable offset.
    assert bases(segments(0, 1, most + 1), end=most + 10) == [[0, 1], [most + 1]]
    assert bases(segments(0, 1, most + 2), end=most + 10) == [[0], [1], [most + 2]]
    assert bases(segments(0, 1), end=most + 1) == [[0, 1]]
    assert bases(segments(0, 1), end=most + 2) == [[0], [1]]


def test_s_cmp_4_an_empty_segment_goes_with_its_neighbour_however_far() -> None:
    far = 2**31 + 5
    found = [*segments(0), *segments(far, size=0), *segments(far + 1)]
    assert bases(found, end=far + 10) == [[0, far], [far + 1]]


def test_s_cmp_4_putting_a_group_in_its_place_is_bounded_work() -> None:
    many = segments(*range(0, 1000, 10), size=1)
    assert [len(group) for group in bases(many, end=1000)] == [64, 36]
