"""One directory of `log.dirs`, read only: its partitions, its checkpoints, its owner."""

from pathlib import PurePath

from protocol.types import TopicPartition
from storage.checkpoint import OffsetCheckpoint
from storage.filesystem import FileSystem
from storage.log_dir import LogDir, MetaProperties, read_meta_properties
from storage.os_filesystem import OsFileSystem
from storage.paths import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    join,
    parse_partition_dir,
)
from storage.reader.partition import PartitionView
from storage.reader.read_only import ReadOnlyFileSystem

OFFSET_CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)


class LogDirView:
    """A log directory. `fs` is only read (`ReadOnlyFileSystem`)."""

    def __init__(self, directory: str | PurePath, fs: FileSystem | None = None) -> None:
        self._base = OsFileSystem() if fs is None else fs
        self._fs = ReadOnlyFileSystem(self._base)
        self.directory = str(directory).rstrip("/") or "/"

    def names(self) -> list[str]:
        """Everything in the directory, sorted. Raises OSError."""
        return self._fs.list_dir(self.directory)

    def partitions(self) -> list[PartitionView]:
        """Every partition directory; `state` tells those to be deleted, moved, or stray."""
        paths = [join(self.directory, n) for n in self.names() if parse_partition_dir(n)]
        return [PartitionView(path, self._base) for path in paths if self._fs.is_dir(path)]

    def offsets(self, name: str) -> dict[TopicPartition, int]:
        """One of OFFSET_CHECKPOINTS; empty when absent. Raises CheckpointError, OSError."""
        return OffsetCheckpoint(self._fs, join(self.directory, name)).read()

    def meta_properties(self) -> MetaProperties | None:
        """The directory's owner; None for a new one. Raises InconsistentMetaProperties, OSError."""
        return read_meta_properties(self._fs, self.directory)

    @property
    def is_log_dir(self) -> bool:
        """Whether it looks like one: it has meta.properties, a checkpoint, or partitions."""
        names = set(self.names())
        return (
            META_PROPERTIES in names
            or any(name in names for name in OFFSET_CHECKPOINTS)
            or any(parse_partition_dir(name) for name in names)
        )

    @property
    def was_cleanly_shut_down(self) -> bool:
        """Whether the clean-shutdown marker exists."""
        return LogDir(self._fs, self.directory).was_cleanly_shut_down()
