"""The offsets between which a partition can be read, from its checkpoints and the end of its log.

The high watermark is the one in `replication-offset-checkpoint`, which a broker writes every few
seconds: records appended since are above it. If the file is absent (a copy of partition
directories) the log end is used, and `is_known` is False. A partition that the file does not name
has a high watermark of 0, as in Kafka.
"""

from dataclasses import dataclass

from protocol.types import TopicPartition
from storage.filesystem import FileSystem
from storage.log.scan import Ended, Walk
from storage.paths import HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, join, parent_dir
from storage.reader.log_dir import LogDirView
from storage.reader.scan.errors import CorruptLog
from storage.reader.scan.seek import SegmentSeeker
from storage.reader.scan.segments import SegmentPlace


@dataclass(frozen=True, slots=True)
class Bounds:
    """Offsets of a partition; ends are exclusive. `is_known`: of the high watermark."""

    log_start_offset: int
    high_watermark: int
    is_known: bool
    log_end_offset: int


class CheckpointReader:
    """The checkpoints of log directories, each read once."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._read: dict[str, dict[str, dict[TopicPartition, int] | None]] = {}

    def log_start(self, partition_directory: str, where: TopicPartition) -> int:
        """Return the checkpointed log start offset; 0 if none. Raises CheckpointError, OSError."""
        known = self._of(partition_directory, LOG_START_OFFSET_CHECKPOINT)
        return (known or {}).get(where, 0)

    def high_watermark(self, partition_directory: str, where: TopicPartition) -> int | None:
        """Return the high watermark; None without a checkpoint. Raises CheckpointError, OSError."""
        known = self._of(partition_directory, HIGH_WATERMARK_CHECKPOINT)
        return None if known is None else known.get(where, 0)

    def _of(self, partition_directory: str, name: str) -> dict[TopicPartition, int] | None:
        log_dir = parent_dir(partition_directory)
        files = self._read.setdefault(log_dir, {})
        if name not in files:
            there = self._fs.exists(join(log_dir, name))
            files[name] = LogDirView(log_dir, self._fs).offsets(name) if there else None
        return files[name]


def bounds_of(
    fs: FileSystem,
    directory: str,
    where: TopicPartition,
    segments: list[SegmentPlace],
    checkpoints: CheckpointReader,
) -> Bounds:
    """Return the bounds of a partition. Raises CorruptLog, CheckpointError, OSError.

    Reads the checkpoints before the log, so that the log can only be ahead of them.
    """
    start = checkpoints.log_start(directory, where)
    high_watermark = checkpoints.high_watermark(directory, where)
    if not segments:
        return Bounds(start, start, high_watermark is not None, start)
    start = max(start, segments[0].base_offset)
    end = max(_log_end(fs, directory, where, segments[-1], high_watermark), start)
    limit = end if high_watermark is None else min(max(high_watermark, start), end)
    return Bounds(start, limit, high_watermark is not None, end)


def _log_end(
    fs: FileSystem,
    directory: str,
    where: TopicPartition,
    last: SegmentPlace,
    high_watermark: int | None,
) -> int:
    view = last.view(fs, directory)
    file = fs.open(view.path, writable=False)
    try:
        seeker = SegmentSeeker(where, last, view, file)
        walk = Walk(file, seeker.last_indexed(), seeker.size)
        end = last.base_offset
        for _, header, _, _ in walk:
            end = header.next_offset
        if walk.ended is Ended.NONSENSE:
            if high_watermark is None:
                raise CorruptLog(where, end, view.path, walk.position, "no batch begins here")
            return max(end, high_watermark)  # a reader that gets there reports the damage
        return end
    finally:
        file.close()
