"""Whether a directory is Kafka's, for programs that write into directories that a person names.

A log directory has `meta.properties`, a checkpoint, the clean-shutdown marker, or a partition
directory in it; a partition directory has a segment's file, `partition.metadata` or a leader epoch
checkpoint. A name like `node-20` alone proves nothing, and a program that believed it would make
files in a foreign directory.
"""

from enum import Enum

from storage.filesystem import FileSystem
from storage.paths import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOCK_FILE,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    join,
    parse_partition_dir,
    parse_segment_file,
)

_OF_A_LOG_DIR = frozenset(
    (
        META_PROPERTIES,
        CLEAN_SHUTDOWN_FILE,
        RECOVERY_POINT_CHECKPOINT,
        LOG_START_OFFSET_CHECKPOINT,
        HIGH_WATERMARK_CHECKPOINT,
        CLEANER_CHECKPOINT,
    )
)
_OF_A_PARTITION = frozenset((PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT))
_OF_A_DISK = frozenset((LOCK_FILE, "lost+found"))
"""Names in a new log directory: a released lock file, and `lost+found` of a mounted volume."""


class DirectoryKind(Enum):
    """The kind of a directory, for Kafka."""

    LOG_DIR = "a log directory"
    PARTITION = "a partition's directory"
    EMPTY = "an empty directory"
    FOREIGN = "a directory that is not Kafka's"


def directory_kind(fs: FileSystem, path: str) -> DirectoryKind:
    """Return the kind of the directory at `path`, judged by the names in it. Raises OSError."""
    names = fs.list_dir(path)
    if not set(names) - _OF_A_DISK:
        return DirectoryKind.EMPTY
    if not _OF_A_LOG_DIR.isdisjoint(names):
        return DirectoryKind.LOG_DIR
    if is_partition(names):
        return DirectoryKind.PARTITION
    for name in names:
        if parse_partition_dir(name) is not None:
            within = join(path, name)
            if fs.is_dir(within) and is_partition(fs.list_dir(within)):
                return DirectoryKind.LOG_DIR
    return DirectoryKind.FOREIGN


def is_partition(names: list[str]) -> bool:
    """Tell whether a directory with these files is a partition's."""
    return not _OF_A_PARTITION.isdisjoint(names) or any(
        parse_segment_file(name) is not None for name in names
    )
