"""Which record files hold a partition's offsets now, even in the middle of a replacement.

A cleaning replaces segments by renaming (`storage.log.replacing`): the new ones are `.swap`, the
old ones become `.deleted`, `.swap` becomes final. A start would make a `.swap` final, so here it
counts as the segment of its base offset, and no moment of a replacement lacks a segment. Old and
new hold the same records, except those that compaction removed.
"""

from dataclasses import dataclass

from storage.filesystem import FileSystem
from storage.paths import LOG_SUFFIX, SWAP_SUFFIX, parse_segment_file
from storage.reader.segment import SegmentView


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """One segment: base offset and state of its files, and the offsets that it covers."""

    base_offset: int
    state: str
    size: int
    """Bytes of the record file when it was listed."""
    until: int | None
    """Base offset of the next segment; None for the last one."""

    def view(self, fs: FileSystem, directory: str) -> SegmentView:
        """Return the view of its files."""
        return SegmentView(fs, directory, self.base_offset, self.state)


def segments_of(fs: FileSystem, directory: str) -> list[SegmentPlace]:
    """Return the segments of a partition, ascending. Raises OSError."""
    found: dict[int, tuple[str, int]] = {}
    for name, size in fs.sizes(directory).items():
        file = parse_segment_file(name)
        if file is None or file.suffix != LOG_SUFFIX or file.state not in ("", SWAP_SUFFIX):
            continue
        if file.state or file.base_offset not in found:
            found[file.base_offset] = (file.state, size)
    bases = sorted(found)
    return [
        SegmentPlace(base, *found[base], until)
        for base, until in zip(bases, [*bases[1:], None], strict=True)
    ]


def holding(segments: list[SegmentPlace], offset: int) -> SegmentPlace | None:
    """Return the segment that covers `offset`; None if it is below the first one."""
    below = [segment for segment in segments if segment.base_offset <= offset]
    return below[-1] if below else None
