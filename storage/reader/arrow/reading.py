"""Reads one task: its segment from the start position on, a few megabytes at a time."""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from protocol.records.batch import read_header
from storage.filesystem import FileSystem
from storage.log.scan import Ended
from storage.os_filesystem import OsFileSystem
from storage.reader.arrow.batches import Assembler
from storage.reader.arrow.chunks import found_in
from storage.reader.arrow.legacy import legacy_batch
from storage.reader.arrow.opened import FileRange, opened
from storage.reader.frames import FrameWalk
from storage.reader.read_only import ReadOnlyFileSystem
from storage.reader.scan import CorruptLog, ScanTask

CHUNK: Final = 4 * 1024 * 1024
"""Bytes of log read at a time; they and the arrays made of them stay in the processor's cache."""
_OFFSET: Final = 8
"""Bytes of a batch's base offset, which it begins with."""


def read_task(
    task: ScanTask,
    columns: Sequence[str] | None = None,
    *,
    batch_rows: int | None = None,
    fs: FileSystem | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task in the order of offsets, as batches of `schema_of(columns)`.

    Only the requested columns are made. Control records are left out, and so are records of aborted
    transactions that the task names. A batch has at most `batch_rows` rows, or by default the
    records of a few megabytes of log; no batch is empty.

    Raises CorruptLog at a batch that cannot be read or has a wrong checksum (after the records
    before it were yielded), TimestampOutOfRange if the column `timestamp` is requested and cannot
    hold that of a record (`timestampMs` can), RecordsGone if retention has removed records (unless
    the task is lenient), ValueError for an unknown column, OSError.
    """
    reader = _TaskReader(ReadOnlyFileSystem(OsFileSystem() if fs is None else fs), task, columns)
    for batch in reader.batches():
        if not batch_rows or batch.num_rows <= batch_rows:
            yield batch
            continue
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)


class _TaskReader:
    def __init__(self, fs: FileSystem, task: ScanTask, columns: Sequence[str] | None) -> None:
        self._fs = fs
        self._task = task
        self._columns = columns
        self._assembler = Assembler(task, columns)

    def batches(self) -> Iterator[pa.RecordBatch]:
        task = self._task
        at = task.start_offset
        while at < task.end_offset:
            with opened(self._fs, task, at) as place:
                if place is None:
                    return
                for batch in self._read(place):
                    if batch.num_rows:
                        yield batch
                at = place.until

    def _read(self, place: FileRange) -> Iterator[pa.RecordBatch]:
        task = self._task
        path = place.file.path

        def complain(offset: int, position: int, why: str) -> CorruptLog:
            return CorruptLog(task.topic_partition, offset, path, position, why)

        position, following = place.start, task.start_offset
        for end in (place.likely_end, place.end):
            walk = FrameWalk(place.file, position, end, chunk=CHUNK)
            for frames in walk:
                following = read_header(frames.chunk, frames.starts[-1]).next_offset
                if frames.legacy:
                    yield legacy_batch(frames, task, self._columns, complain)
                else:
                    for found in found_in(frames, task, complain):
                        yield self._assembler.batch(found)
                if following >= place.until:
                    return
            position = walk.position
        if walk.ended is Ended.AT_END or self._is_behind(place, position):
            return
        assert walk.ended is not None
        raise complain(following, position, walk.ended.value)

    def _is_behind(self, place: FileRange, position: int) -> bool:
        """Whether the incomplete batch at the end of the file is beyond the task's range."""
        head = place.file.pread(_OFFSET, position)
        return len(head) == _OFFSET and int.from_bytes(head, "big", signed=True) >= place.until
