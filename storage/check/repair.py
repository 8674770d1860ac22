"""Does what a start would do, after a backup of everything that it is going to cut.

The order: lock; remove the clean-shutdown marker (a crash during the repair must be followed by a
full recovery); per partition copy what the rehearsal has changed, remove index files that are
wrong, run the recovery on the disk, sync; then write the checkpoints, the marker last. So after an
interruption at any point the next start recovers, and everything cut is in the backup.
"""

from dataclasses import dataclass, field
from typing import Final

from protocol.types import TopicPartition
from storage.check.findings import Action
from storage.check.plan import Plan, load
from storage.check.rehearsal import Change, ChangeKind
from storage.filesystem import FileSystem
from storage.log_loading import LoadJob
from storage.paths import SWAP_SUFFIX, file_name, join
from storage.waits import at_once

_CHUNK: Final = 4 * 1024 * 1024


class Backup:
    """A directory for everything that is cut, by partition; made with its first file."""

    def __init__(self, fs: FileSystem, directory: str) -> None:
        self._fs = fs
        self.directory = directory
        self.files: list[str] = []
        """Paths of the copies."""

    def keep(self, path: str, owner: str, start: int = 0) -> None:
        """Copy `path` from byte `start` on, durably; a tail is named `<file>.from-<start>`.

        `owner` is the partition directory's name, "" for files of the log directory. A tail of
        zeros (the pre-sized rest of an index) is not worth a copy. Raises OSError.
        """
        source = self._fs.open(path, writable=False)
        try:
            size = source.size()
            if start and not any(source.pread(size - start, start)):
                return
            directory = join(self.directory, owner) if owner else self.directory
            self._fs.make_dirs(directory)
            name = file_name(path) + (f".from-{start}" if start else "")
            target = join(directory, name)
            copy = self._fs.open(target, create=True)
            try:
                for position in range(start, size, _CHUNK):
                    data = source.pread(min(_CHUNK, size - position), position)
                    copy.pwrite(data, position - start)
                copy.fsync()
            finally:
                copy.close()
            self._fs.fsync_dir(directory)
        finally:
            source.close()
        self.files.append(target)


@dataclass(slots=True)
class Repaired:
    """The result of a repair."""

    actions: list[Action] = field(default_factory=list)
    backups: list[str] = field(default_factory=list)
    """Paths of the copies."""


def keep_changed(backup: Backup, plan: Plan, partition: str) -> None:
    """Copy every byte that the plan removes from the disk. Raises OSError."""
    for change in plan.changes:
        if change.before is None or _is_kept(change):
            continue
        start = change.after or 0 if change.kind is ChangeKind.CUT else 0
        backup.keep(change.path, partition, start)


def _is_kept(change: Change) -> bool:
    """Whether the change is a finished compaction's, in which only the name changes."""
    return change.kind is ChangeKind.RENAMED and change.path.endswith(SWAP_SUFFIX)


def repair_partition(
    fs: FileSystem, job: LoadJob, backup: Backup, plan: Plan, bad_indexes: tuple[str, ...]
) -> tuple[TopicPartition, int, int]:
    """Repair one partition; returns (partition, log start offset, log end offset).

    Raises OSError, StorageError.
    """
    keep_changed(backup, plan, file_name(job.directory))
    for path in bad_indexes:
        fs.unlink(path, missing_ok=True)
    log = load(job)
    at_once(log.flush())
    at_once(log.close())
    for gone in log.store.take_pending():
        fs.unlink(gone.path, missing_ok=True)
    fs.fsync_dir(job.directory)
    return log.topic_partition, log.log_start_offset, log.log_end_offset
