"""Which neighbouring segments are written into one (S-CMP-4; Kafka's `groupSegmentsBySize`).

Merging keeps segments that lost most of their records from staying small for ever. A group's record
files together are no larger than `segment.bytes`, its offset indexes and its time indexes no larger
than `segment.index.bytes`, and its last offset fits the relative offsets of its first segment.
"""

from collections.abc import Sequence
from typing import Final

from storage.cleaner.request import CleanRequest, SourceSegment
from storage.index.mapped_index import MAX_RELATIVE_OFFSET

SegmentGroup = tuple[SourceSegment, ...]

MOST_SEGMENTS: Final = 64
"""The most segments of a group. They are renamed on the event loop, which takes a tenth of a
millisecond each; thousands of small ones take several cleanings. (Kafka has no limit.)"""


def groups_of(request: CleanRequest, end_offset: int) -> list[SegmentGroup]:
    """The groups of a cleaning whose map covers the log below `end_offset`."""
    return group_segments(
        [source for source in request.segments if source.base_offset < end_offset],
        segment_bytes=request.segment_bytes,
        segment_index_bytes=request.segment_index_bytes,
        first_uncleanable_offset=request.first_uncleanable_offset,
    )


def group_segments(
    segments: Sequence[SourceSegment],
    *,
    segment_bytes: int,
    segment_index_bytes: int,
    first_uncleanable_offset: int,
) -> list[SegmentGroup]:
    """The segments in groups, in their order; a segment that is too large is a group of its own.

    A segment is taken to end where the next one begins.
    """
    groups: list[SegmentGroup] = []
    group: list[SourceSegment] = []
    size = offset_index = time_index = 0
    ends = [*(segment.base_offset for segment in segments[1:]), first_uncleanable_offset]
    for segment, end in zip(segments, ends, strict=False):  # no end where there is no segment
        fits = (
            group
            and len(group) < MOST_SEGMENTS
            and size + segment.size <= segment_bytes
            and offset_index + segment.offset_index_size <= segment_index_bytes
            and time_index + segment.time_index_size <= segment_index_bytes
            # An empty segment has no offset to index, so it always fits: otherwise one would be
            # left for each 2^31 offsets.
            and (not segment.size or end - 1 - group[0].base_offset <= MAX_RELATIVE_OFFSET)
        )
        if not fits:
            if group:
                groups.append(tuple(group))
            group, size, offset_index, time_index = [], 0, 0, 0
        group.append(segment)
        size += segment.size
        offset_index += segment.offset_index_size
        time_index += segment.time_index_size
    if group:
        groups.append(tuple(group))
    return groups
