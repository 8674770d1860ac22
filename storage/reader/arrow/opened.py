"""Opens the record file that holds a task's offsets now, and finds where to begin in it.

A task names a segment and positions as they were when it was planned. Since then retention may have
removed the segment, and compaction may have replaced its file, or merged it into one with a lower
base offset. An open file does not change when its name does, so finding it once is enough:

* If the file of the planned name has, at the planned position, a batch that holds the first offset
  of the task, or that position is 0, the file is used: everything before the position is below the
  task, whether or not the file is the planned one.
* Otherwise the directory is listed, and the index of the segment that covers the offset is
  searched. A file may vanish between the two, so this is retried some times.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from protocol.records.batch import BATCH_OVERHEAD, MAGIC_OFFSET, read_header
from protocol.records.errors import RecordsError
from storage.filesystem import File, FileSystem
from storage.paths import log_file
from storage.reader.scan import RecordsGone, ScanTask
from storage.reader.scan.seek import SegmentSeeker
from storage.reader.scan.segments import holding, segments_of

_ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class FileRange:
    """An open record file and the part of it that belongs to a task."""

    file: File
    start: int
    likely_end: int
    """The task's records usually end here."""
    end: int
    """Size of the file when it was opened; later bytes are not read."""
    until: int
    """The offset at which the next segment begins, or the task ends."""


@contextmanager
def opened(fs: FileSystem, task: ScanTask, start_offset: int) -> Iterator[FileRange | None]:
    """Open the place of the task's records from `start_offset` on; None if there are no more.

    Raises RecordsGone, CorruptLog, OSError.
    """
    place = _as_planned(fs, task) if start_offset == task.start_offset else None
    if place is None:
        place = _searched(fs, task, start_offset)
    try:
        yield place
    finally:
        if place is not None:
            place.file.close()


def _as_planned(fs: FileSystem, task: ScanTask) -> FileRange | None:
    try:
        file = fs.open(log_file(task.directory, task.base_offset), writable=False)
    except FileNotFoundError:
        return None
    size = file.size()
    if task.start_position and not _begins(file, task):
        file.close()
        return None
    return FileRange(file, task.start_position, min(task.end_position, size), size, task.end_offset)


def _begins(file: File, task: ScanTask) -> bool:
    head = file.pread(BATCH_OVERHEAD, task.start_position)
    if len(head) < BATCH_OVERHEAD or head[MAGIC_OFFSET] != 2:
        return False
    try:
        header = read_header(head)
    except RecordsError:
        return False
    return task.base_offset <= header.base_offset <= task.start_offset <= header.last_offset


def _searched(fs: FileSystem, task: ScanTask, start_offset: int) -> FileRange | None:
    where = task.topic_partition
    for _ in range(_ATTEMPTS):
        try:
            segments = segments_of(fs, task.directory)
        except FileNotFoundError:
            raise RecordsGone(where, start_offset, None) from None
        segment = holding(segments, start_offset)
        if segment is None:
            first = segments[0].base_offset if segments else None
            if not task.is_lenient or first is None or first >= task.end_offset:
                if task.is_lenient:
                    return None
                raise RecordsGone(where, start_offset, first)
            segment, start_offset = segments[0], segments[0].base_offset
        try:
            seeker = SegmentSeeker.opened(fs, where, task.directory, segment)
        except FileNotFoundError:
            continue  # renamed meanwhile: by a cleaning, or by retention
        found = seeker.find(start_offset)
        until = task.end_offset if segment.until is None else min(segment.until, task.end_offset)
        if found is None:
            # The segment ends below the offset: compaction removed the records of the range, or the
            # next segment has them.
            return FileRange(seeker.file, seeker.size, seeker.size, seeker.size, until)
        likely = seeker.end_of(until)
        return FileRange(seeker.file, found.position, likely, seeker.size, until)
    raise RecordsGone(where, start_offset, None)
