"""What the transaction indexes of a log directory have to hold: noted at an orderly stop.

A transaction index that was emptied, cut or lost looks like one of a segment without aborted
transactions, and its readers would be shown records that were taken back. So the stop writes down,
per partition, the checksum of each index that holds anything, and from where on nothing is known:

    <log dir>/aborted-transactions-checkpoint     (Kafka leaves files alone that it does not know)

    0
    <n>
    <topic> <partition> <end> [<base>:<bytes>:<crc> | <base>:?]...

Segments that begin below `end` and are not named have no aborted transaction; `?` was not looked
at in that life. It is a hint only: what does not agree with it, and what it does not know, is read
from the log once, before a committed reader is answered (`storage.log.mending`). So nothing depends
on the file being new, or being there.

Used by `storage.manager.closing` and `storage.log_loading`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from protocol.types import TopicPartition
from storage.checkpoint import encode_entries, read_entries
from storage.filesystem import FileSystem
from storage.index.transaction_index import NO_ABORTED
from storage.log.log import Log
from storage.paths import ABORTED_CHECKPOINT, join

Checksum = tuple[int, int]

_NOT_KNOWN: Final = "?"


@dataclass(frozen=True, slots=True)
class NotedAborted:
    """One partition's line."""

    end: int = 0
    sums: Mapping[int, Checksum | None] = field(default_factory=dict)
    """By base offset; None: not known."""

    def of(self, base_offset: int, *, ended_at: int) -> Checksum | None:
        """What the index of that segment has to hold, None if nobody knows.

        A segment that ended above what was noted may have grown since.
        """
        if base_offset >= self.end or ended_at > self.end:
            return None
        return self.sums.get(base_offset, NO_ABORTED)


NOTHING_NOTED: Final = NotedAborted()


def encode_aborted(logs: Iterable[Log]) -> bytes:
    """The file's bytes for logs that were closed."""
    return encode_entries(_line(log) for log in logs)


def _line(log: Log) -> str:
    words = [log.topic_partition.topic, str(log.topic_partition.partition), str(log.log_end_offset)]
    for segment in log.segments:
        known = segment.aborted_sum
        if known is None:
            words.append(f"{segment.base_offset}:{_NOT_KNOWN}")
        elif known != NO_ABORTED:
            words.append(f"{segment.base_offset}:{known[0]}:{known[1]}")
    return " ".join(words)


def read_aborted(fs: FileSystem, log_dir: str) -> dict[TopicPartition, NotedAborted]:
    """What the last orderly stop has noted; empty without one.

    Raises CheckpointError when the content is malformed, OSError.
    """
    return dict(read_entries(fs, join(log_dir, ABORTED_CHECKPOINT), _parse))


def _parse(words: list[str]) -> tuple[TopicPartition, NotedAborted]:
    topic, partition, end, *segments = words
    sums: dict[int, Checksum | None] = {}
    for segment in segments:
        base, *numbers = segment.split(":")
        if numbers == [_NOT_KNOWN]:
            sums[int(base)] = None
        else:
            size, crc = numbers
            sums[int(base)] = int(size), int(crc)
    return TopicPartition(topic, int(partition)), NotedAborted(int(end), sums)
