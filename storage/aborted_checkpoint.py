"""The checksums of a log directory's transaction indexes, written beside the recovery points.

A transaction index that was emptied, cut or lost looks like one of a segment without aborted
transactions, and committed readers would get aborted records. So the checksums of the indexes are
written down, in a file that Kafka does not know and leaves alone:

    <log dir>/aborted-transactions-checkpoint

    1 <crc-32c of the lines>
    <topic> <partition> <topic id> <recovery point> <base>[:<bytes>:<crc-32c> | :?]...

A line names every segment that begins below the recovery point, and covers only markers below that
point: their index entries were synced, so no crash takes them. <bytes> and <crc-32c> are the size
and checksum of these entries; a segment without them has none; `?` means not known.

When a line is believed
  The file is a hint: a segment whose index does not agree with it, or that it does not know, is
  read from the log once, before a committed reader is answered (`storage.log.mending`). But an
  outdated line must not be believed, or an index that was emptied would look right.

  1. The line has the topic's id, and the recovery point on the disk is not above the line's. A line
     is durable before any higher recovery point is written (`storage.manager.checkpoints`), so a
     higher one was written by somebody else: an Apache Kafka has had the directory. After an
     orderly stop both are the log end offset, so they must be equal.
  2. The line counts only for markers below the recovery point on the disk. Below it the log has not
     changed, because that point is lowered on the disk before anything below it is cut off, and
     removed before a log of that name is made again. Above it a start reads the log itself.
  3. A segment must begin and end where the line says, so segments that were split or merged are not
     known. Compaction that keeps both ends only takes batches away, and with them aborted ones.
  4. The checksum in the first line is right. A file that is damaged, missing or of another version
     counts as empty.

`storage.log.aborted_sums` makes the lines of logs in service, `storage.manager.checkpoints` writes
them, `storage.log_loading` and `storage.recovery` use them at a start.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from crc32c import crc32c

from protocol.types import ZERO_UUID, TopicPartition, uuid_from_text, uuid_to_text
from storage.errors import CheckpointError
from storage.filesystem import FileSystem
from storage.index.transaction_index import NO_ABORTED, Checksum
from storage.paths import ABORTED_CHECKPOINT, join

VERSION: Final = 1

_NOT_KNOWN: Final = "?"
_NO_SEGMENT: Final[tuple[int, None]] = (-1, None)


NotedSegment = tuple[int, Checksum | None]
"""The base offset of the next segment, or the recovery point if that is lower; the checksum of the
index entries below the point, None if not known."""


class NotedAborted(NamedTuple):
    """One partition's line."""

    topic_id: bytes
    point: int
    """The recovery point that the line was written with."""
    segments: Mapping[int, NotedSegment]
    """The segments by base offset."""
    line: str
    """The line as it stands in the file."""

    def fits(self, topic_id: bytes, recovery_point: int, *, clean: bool) -> bool:
        """Whether the line may be believed for a log with this id and recovery point (rule 1)."""
        if topic_id != self.topic_id:
            return False
        return recovery_point == self.point if clean else recovery_point <= self.point

    def of(self, base_offset: int, ended_at: int) -> Checksum | None:
        """The checksum of the entries below `point` in the index of the segment [base_offset,
        ended_at); None if not known (rule 3)."""
        end, checksum = self.segments.get(base_offset, _NO_SEGMENT)
        return checksum if end == min(ended_at, self.point) else None


NOTHING_NOTED: Final = NotedAborted(ZERO_UUID, -1, {}, "")


def line_of(
    topic_partition: TopicPartition, topic_id: bytes, point: int, words: Iterable[str]
) -> str:
    """A partition's line."""
    topic, partition = topic_partition
    return " ".join([topic, str(partition), uuid_to_text(topic_id), str(point), *words])


def word_of(base_offset: int, checksum: Checksum | None) -> str:
    """The word of a line that describes one segment."""
    if checksum is None:
        return f"{base_offset}:{_NOT_KNOWN}"
    if checksum == NO_ABORTED:
        return str(base_offset)
    return f"{base_offset}:{checksum[0]}:{checksum[1]}"


def encode_aborted(lines: Iterable[str]) -> bytes:
    """The bytes of the file."""
    body = "".join(f"{line}\n" for line in lines).encode()
    return _head(body) + b"\n" + body


def _head(body: bytes) -> bytes:
    return b"%d %d" % (VERSION, crc32c(body))


def read_aborted(fs: FileSystem, log_dir: str) -> dict[TopicPartition, NotedAborted]:
    """The lines of the file in `log_dir`, parsed; empty without a file.

    Raises CheckpointError when the file is malformed, OSError.
    """
    path = join(log_dir, ABORTED_CHECKPOINT)
    try:
        raw = fs.read_bytes(path)
    except FileNotFoundError:
        return {}
    head, _, body = raw.partition(b"\n")
    if head != _head(body):
        raise CheckpointError(path, 1, f"damaged, or not of version {VERSION}")
    try:
        return dict(_parse(line) for line in body.decode().splitlines())
    except ValueError as error:
        raise CheckpointError(path, 0, str(error)) from error


def _parse(line: str) -> tuple[TopicPartition, NotedAborted]:
    topic, partition, topic_id, point, *words = line.split()
    # A start parses tens of thousands of words, nearly all of which are one number.
    bases: list[int] = []
    checksums: list[Checksum | None] = []
    for word in words:
        base, colon, rest = word.partition(":")
        bases.append(int(base))
        checksums.append(_checksum(rest) if colon else NO_ABORTED)
    ends = [*bases[1:], int(point)]
    segments = dict(zip(bases, zip(ends, checksums, strict=False), strict=True))
    noted = NotedAborted(uuid_from_text(topic_id), int(point), segments, line)
    return TopicPartition(topic, int(partition)), noted


def _checksum(text: str) -> Checksum | None:
    if text == _NOT_KNOWN:
        return None
    size, crc = text.split(":")
    return int(size), int(crc)
