"""Syncing by path, for work that is handed names and no open files.

A missing file is skipped: whoever removed or renamed it accounts for that. Raises OSError.
"""

from collections.abc import Iterable

from storage.filesystem import FileSystem


def sync_files(fs: FileSystem, paths: Iterable[str]) -> None:
    """Sync those of the files that exist. May block for long. Raises OSError."""
    for path in paths:
        try:
            file = fs.open(path)
        except FileNotFoundError:
            continue
        try:
            file.fsync()
        finally:
            file.close()
