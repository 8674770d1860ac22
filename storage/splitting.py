"""Splitting a segment whose offsets lie too far apart for its indexes (S-IDX-4, KAFKA-6264).

An index entry holds an offset as the distance from the segment's base, in 31 bits. The cleaner of
old Kafka versions could merge segments further apart than that. Batches beyond cannot be indexed,
so when such a segment is loaded it is cut into several, between two batches.

States after a crash (Kafka's `splitOverflowedSegment`, `replaceSegments`)
  1. The pieces are written as `.cleaned` files and synced. A start that finds one of those removes
     it: the old segment is still whole.
  2. They are renamed to `.swap`, the last piece first. As long as one `.cleaned` is left, the
     `.swap` files lie above it, and a start removes those, too (S-REC-2).
  3. Once all are `.swap` files, they replace the old segment: in the loader (`put_in_place`), or at
     any later start (`storage.leftovers.finish_swaps`).

A segment that reaches beyond the base of the next one is not split: no checksum covers the base
offset of a batch, so one flipped bit makes an overflow, and later segments would look replaced.

A piece is a record file only; the loader rebuilds its missing indexes.

The first piece bears the name of the old segment, and is empty if even the first batch is too far
away. (Kafka names it after its first batch. When records before that were compacted away, an
interrupted split would find the old segment beside the pieces.)

`storage.recovery` calls this. Raises OSError. If writing the pieces fails, they are removed as far
as the disk allows, and the old segment is as it was.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from storage.filesystem import File, FileSystem
from storage.index.mapped_index import MAX_RELATIVE_OFFSET
from storage.log.scan import CHUNK, HEADERS, Walk
from storage.log.segment import LogSegment
from storage.paths import CLEANED_SUFFIX, SWAP_SUFFIX, log_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bytes [start, end) of an overflowed segment's record file, to become a segment."""

    base_offset: int
    start: int
    end: int


def overflows(last_offset: int, base_offset: int) -> bool:
    """Whether a segment with this base cannot index a batch that ends at `last_offset`."""
    return last_offset - base_offset > MAX_RELATIVE_OFFSET


def is_forced(segment: LogSegment, following: LogSegment) -> bool:
    """Whether the first batch of `following` could not have been a batch of `segment`."""
    for _, header, _, _ in Walk(following.file, 0, following.size, chunk=HEADERS):
        return overflows(header.last_offset, segment.base_offset)
    return False


def pieces_of(segment: LogSegment) -> list[Piece]:
    """The pieces to cut the segment into; one if it has no overflow. It ends with a whole batch."""
    pieces: list[Piece] = []
    base, start, last = segment.base_offset, 0, segment.base_offset - 1
    for position, header, _, _ in Walk(segment.file, 0, segment.size, chunk=HEADERS):
        if overflows(header.last_offset, base):
            pieces.append(Piece(base_offset=base, start=start, end=position))
            base, start = max(header.base_offset, last + 1), position
        last = header.last_offset
    pieces.append(Piece(base_offset=base, start=start, end=segment.size))
    return pieces


def split(fs: FileSystem, directory: str, segment: LogSegment) -> Sequence[Piece]:
    """Write the pieces and rename them to `.swap`: steps 1 and 2. Raises OSError."""
    pieces = pieces_of(segment)
    written = fs.mtime_ms(segment.files.path)
    try:
        for piece in pieces:
            path = log_file(directory, piece.base_offset, CLEANED_SUFFIX)
            _write(fs, path, segment.file, piece)
            # Retention uses the modification time when the records have no timestamps (S-TS-4).
            fs.set_mtime_ms(path, written)
    except OSError:
        for piece in pieces:
            with suppress(OSError):
                fs.unlink(log_file(directory, piece.base_offset, CLEANED_SUFFIX), missing_ok=True)
        raise
    for piece in reversed(pieces):
        fs.rename(
            log_file(directory, piece.base_offset, CLEANED_SUFFIX),
            log_file(directory, piece.base_offset, SWAP_SUFFIX),
        )
    return pieces


def put_in_place(
    fs: FileSystem, directory: str, segment: LogSegment, pieces: Sequence[Piece]
) -> None:
    """Let the pieces replace the segment, and no other file: step 3. Raises OSError."""
    for path in segment.files.paths:
        fs.unlink(path, missing_ok=True)
    for piece in pieces:
        path = log_file(directory, piece.base_offset)
        fs.rename(path + SWAP_SUFFIX, path)
    fs.fsync_dir(directory)


def _write(fs: FileSystem, path: str, source: File, piece: Piece) -> None:
    file = fs.open(path, create=True)
    try:
        file.truncate(0)
        for position in range(piece.start, piece.end, CHUNK):
            data = source.pread(min(CHUNK, piece.end - position), position)
            file.pwrite(data, position - piece.start)
        file.fsync()
    finally:
        file.close()
