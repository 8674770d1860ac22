"""Records as Python values, made from columns in about half the time of decoding one by one.

A chunk with a batch that cannot be read is decoded one by one instead, so that the good records
before it are yielded and the error is raised at the bad one. So are formats 0 and 1.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from protocol.records.batch import read_header
from protocol.records.record import Record, iter_records
from storage.reader.columns import record_columns
from storage.reader.frames import Frames

VALUES_CHUNK: Final = 1024 * 1024
"""Bytes of log at a time: all their records are in memory as objects."""

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
        done = 0
        for chunk in record_columns(frames):
            if chunk.unreadable:
                one_by_one = (iter_records(frames.chunk, at) for at in frames.starts)
                yield from islice(chain.from_iterable(one_by_one), done, None)
                break
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
                    [0] * len(offsets),  # record attributes have no meaning in format 2
                    strict=True,
                ),
            )
            done += len(offsets)
