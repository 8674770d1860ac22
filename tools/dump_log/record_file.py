"""Prints files of batches: a line per batch and, with `Options.deep`, one per record.

It works in bulk: a megabyte of log becomes columns (`storage.reader.columns`), the columns become
lines (`batch_lines`, `record_lines`), and the lines one write. Only old formats are read message by
message (`legacy_lines`).
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.log_dir import LogDir
from storage.os_filesystem import OsFileSystem
from storage.reader import Frames, PartitionView, RecordFileView, SegmentView, parse_segment_file
from tools.dump_log.options import Options
from tools.dump_log.output import Output
from tools.dump_log.problems import Heading

if TYPE_CHECKING:
    from storage.reader.columns import Columns, RecordChunk

CHUNK = 1024 * 1024
"""Bytes of log read at a time: enough for numpy, and little enough to inflate in memory."""

_GAPS = 100_000
"""The most gaps that are shown one by one; the others are counted."""


def segment_of(file: Path) -> SegmentView:
    """Return the segment that the file belongs to."""
    parsed = parse_segment_file(file.name)
    assert parsed is not None
    return PartitionView.holding(str(file.absolute())).segment(parsed.base_offset, parsed.state)


def is_being_written(file: Path) -> bool:
    """Whether the file is of an active segment in a directory that a broker has locked.

    Its indexes have their pre-sized length, and its last batch may be half written.
    """
    parsed = parse_segment_file(file.name)
    bases = [one.base_offset for one in PartitionView.holding(str(file.absolute())).segments()]
    if parsed is None or parsed.state or [parsed.base_offset] != bases[-1:]:
        return False
    try:
        return LogDir(OsFileSystem(), str(file.absolute().parent.parent)).is_in_use()
    except OSError:  # This user may not lock it; the output shows the file as it was read.
        return False


def print_segment(file: Path, options: Options, output: Output) -> None:
    """Print `.log`: the records of a segment."""
    segment = segment_of(file)
    if output.is_json:
        output.rows(("logStartingOffset",), [(segment.base_offset,)])
    else:
        output.say(f"Log starting offset: {segment.base_offset}")
    _print_batches(file, segment, options, output, first_offset=segment.base_offset)


def print_kraft_snapshot(file: Path, options: Options, output: Output) -> None:
    """Print `<offset>-<epoch>.checkpoint` or `bootstrap.checkpoint`: KRaft metadata up to there."""
    name = re.match(r"(\d{20})-(\d{10})", file.name)
    if name is None:
        output.say("KRaft bootstrap snapshot")
    else:
        output.say(f"Snapshot end offset: {int(name[1])}, epoch: {int(name[2])}")
    view = RecordFileView.at(str(file.absolute()))
    _print_batches(file, view, options, output, first_offset=None)


def _print_batches(
    file: Path, view: RecordFileView, options: Options, output: Output, *, first_offset: int | None
) -> None:
    gaps = _Gaps(file, output, first_offset)
    for frames in view.frames(options.max_bytes, chunk=CHUNK):
        if frames.legacy:
            from tools.dump_log import legacy_lines

            output.lines(legacy_lines.lines_of(file, frames, options, output))
            continue
        for lines in _lines(file, frames, options, output, gaps):
            output.lines(lines)
    if options.deep:
        gaps.tell()
    left = view.size - view.valid_bytes
    if left > 0 and options.max_bytes is None and not is_being_written(file):
        output.say(f"Found {left} invalid bytes at the end of {file.name}")
        why = "unread" if view.ended is None else view.ended.value
        output.problems.add(Heading.TAIL, file, f"position: {view.valid_bytes}: {why}")


def _lines(
    file: Path, frames: Frames, options: Options, output: Output, gaps: "_Gaps"
) -> Iterator[list[str]]:
    """Yield the lines of one chunk, each batch followed by its records, some at a time."""
    from storage.reader.columns import batch_columns, checksums_hold, record_columns
    from tools.dump_log import batch_lines, record_lines

    batches = batch_columns(frames)
    valid = checksums_hold(frames, batches)
    for at in (~valid).nonzero()[0].tolist():
        first, last = batches["base_offset"][at], batches["last_offset"][at]
        line = f"position: {batches['position'][at]} offsets: {first} to {last}"
        output.problems.add(Heading.CHECKSUM, file, line)
    lines = batch_lines.lines_of(batches, valid, as_json=output.is_json)
    told = 0
    for chunk in record_columns(frames, batches) if options.deep else ():
        for position, why in chunk.unreadable:
            output.problems.add(Heading.RECORDS, file, f"position: {position}: {why}")
        gaps.look_at(chunk)
        records = record_lines.lines_of(chunk, batches, options, as_json=output.is_json)
        merged, told = _merged(lines, told, records, batches, chunk)
        yield merged
    yield lines[told:]


def _merged(
    lines: list[str], told: int, records: list[str], batches: "Columns", chunk: "RecordChunk"
) -> tuple[list[str], int]:
    """Return the records' lines, each batch's line before its first record's, and the number of
    batches whose lines have been given by then; `told` is that number before.
    """
    import numpy as np

    merged: list[str] = []
    owners = np.searchsorted(batches["position"], chunk.columns["batch_position"])
    begin = 0
    some, counts = np.unique(owners, return_counts=True)
    for owner, count in zip(some.tolist(), counts.tolist(), strict=True):
        merged += lines[told : owner + 1]
        told = owner + 1
        merged += records[begin : begin + count]
        begin += count
    return merged, told


class _Gaps:
    """Finds offsets that do not follow one another."""

    def __init__(self, file: Path, output: Output, first_offset: int | None) -> None:
        self._file = file
        self._output = output
        self._last: int | None = None if first_offset is None else first_offset - 1
        self._found: dict[int, int] = {}
        self._left_out = 0

    def look_at(self, chunk: "RecordChunk") -> None:
        """Check the offsets of the next records."""
        import numpy as np

        offsets: Any = chunk.columns["offset"]
        if not len(offsets):
            return
        before = np.empty_like(offsets)
        before[1:] = offsets[:-1]
        before[0] = offsets[0] - 1 if self._last is None else self._last
        wrong = (offsets != before + 1).nonzero()[0]
        pairs = zip(before[wrong].tolist(), offsets[wrong].tolist(), strict=True)
        self._found.update(islice(pairs, max(_GAPS - len(self._found), 0)))
        self._left_out += sum(1 for _ in pairs)
        self._last = int(offsets[-1])

    def tell(self) -> None:
        """Add the gaps to the problems, sorted as in Kafka's tool."""
        for before, after in sorted(self._found.items()):
            line = f"{before} is followed by {after}"
            self._output.problems.add(Heading.GAP, self._file, line)
        if self._left_out:
            line = f"and {self._left_out} more"
            self._output.problems.add(Heading.GAP, self._file, line)
