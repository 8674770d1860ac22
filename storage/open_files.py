"""Bounds how many segments have their files open.

A segment opens its files when it is first used, and keeps them: reopening one for each request
would cost more than the request. With thousands of partitions these are more files than a process
may have. So each segment that opens files is noted here, and when there are too many, the segment
that was noted longest ago lets go of its files; it opens them again when it is used. (The segment
least recently used would be the better choice, but then every append and read would have to note
its segment. An active segment that has grown since it was noted is spared instead.)

Letting go drops references and closes no file that somebody still holds: slices on their way to a
client, a write that is in a thread. Belongs to the thread that owns the logs.
"""

import logging
from typing import Final

from storage.log.segment_files import OpenSegment

_log = logging.getLogger(__name__)

FILES_OF_A_SEGMENT: Final = 3
"""The record file and two mappings, each with a descriptor of its own."""

_AT_LEAST: Final = 4


class OpenFiles:
    """The segments that have files open, in the order in which they opened them."""

    __slots__ = ("_segments", "closed", "most_segments")

    def __init__(self, most_files: int) -> None:
        self.most_segments = max(most_files // FILES_OF_A_SEGMENT, 2)
        """Segments that may have their files open; never fewer than a roll needs."""
        self.closed = 0
        """Segments that had to let go of their files since the start."""
        self._segments: dict[OpenSegment, int] = {}
        """In the order in which they were noted, with the size in bytes that each had then. Whoever
        takes a segment out of a log releases it, and so it is forgotten here."""

    def __len__(self) -> int:
        return len(self._segments)

    def note(self, segment: OpenSegment) -> None:
        """Note that `segment` opens files; if too many have, others let go. Never raises."""
        known = self._segments
        known[segment] = segment.size
        spared = 0
        while len(known) > self.most_segments:
            oldest = next(iter(known))
            size = known.pop(oldest)
            if oldest is segment or (oldest.size != size and spared < self.most_segments):
                spared += 1
                known[oldest] = oldest.size
            else:
                self._close(oldest)

    def make_room(self) -> None:
        """Have a quarter of the segments let go of their files, as no descriptor is left.

        The caller then tries again.
        """
        for _ in range(max(len(self._segments) // 4, min(_AT_LEAST, len(self._segments)))):
            oldest = next(iter(self._segments))
            del self._segments[oldest]
            self._close(oldest)

    def _close(self, segment: OpenSegment) -> None:
        self.closed += 1
        try:
            segment.let_go()
        except OSError as error:
            # The segment being opened must not fail for this; the next use of this one will.
            _log.warning("Could not trim the indexes of %s: %s", segment, error)
            segment.release()

    def forget(self, segment: OpenSegment) -> None:
        """Note that `segment` has no files open any more."""
        self._segments.pop(segment, None)
