"""Which neighbouring segments are written into one (S-CMP-4; Kafka's `groupSegmentsBySize`).

So that segments which lost most of their records do not stay small for ever. A group's record
files together are no larger than `segment.bytes`, its offset indexes and its time indexes no larger
than `segment.index.bytes`, and its last offset fits the relative offsets of its first segment.
"""

from collections.abc import Sequence
from typing import Final

from storage.cleaner.request import SourceSegment
from storage.log.segment import MAX_RELATIVE_OFFSET

Group = tuple[SourceSegment, ...]

MOST_SEGMENTS: Final = 64
"""Of a group. Its segments are put aside on the event loop, which takes a tenth of a millisecond
each; thousands of small ones are merged by and by. (Kafka has no limit.)"""


def group_segments(
    segments: Sequence[SourceSegment],
    *,
    segment_bytes: int,
    segment_index_bytes: int,
    first_uncleanable_offset: int,
) -> list[Group]:
    """The segments in their order, in groups; a segment that is too large is alone.

    Where a segment ends is taken from where the next one begins.
    """
    groups: list[Group] = []
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
            # An empty one holds no offset: else one would be left each 2^31 offsets.
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
