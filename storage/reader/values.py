"""Records as Python values by way of columns, in about half the time of decoding one by one.

A chunk that holds a batch which cannot be read is decoded one by one instead, so that what is good
before it comes out and the error is raised where it belongs. So are formats 0 and 1.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from protocol.records.batch import read_header
from protocol.records.record import Record, iter_records
from storage.reader.columns import record_columns
from storage.reader.frames import Frames

VALUES_CHUNK: Final = 1024 * 1024
"""Of log at a time: its records are all in memory as objects."""

_make = Record._make


def iter_values(chunks: Iterable[Frames], start_offset: int = 0) -> Iterator[Record]:
    """The records of each chunk, control records included, chunks that end below `start_offset`
    left out. Raises the records errors.
    """
    for frames in chunks:
        if read_header(frames.chunk, frames.starts[-1]).last_offset < start_offset:
            continue
        if frames.legacy:
            for at in frames.starts:
                yield from iter_records(frames.chunk, at)
            continue
        chunk = record_columns(frames)
        if chunk.unreadable:
            for at in frames.starts:
                yield from iter_records(frames.chunk, at)
            continue
        columns = chunk.columns
        offsets = columns["offset"].tolist()
        yield from map(
            _make,
            zip(
                offsets,
                columns["timestamp"].tolist(),
                chunk.keys(),
                chunk.values(),
                chunk.headers(),
                [0] * len(offsets),  # the record's own attributes mean nothing in format 2
                strict=True,
            ),
        )
