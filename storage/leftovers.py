"""Files that a process left in the middle of replacing segments: passes 1 and 2 of a start.

Compaction and splits replace segments in steps: they write `.cleaned` files, rename them to `.swap`
when all are synced, the last segment first, remove the old segments and take the suffix off. After
an interruption at any moment the names tell the next start what to do (S-REC-2):

  1. `.deleted` files are removed, and the temporary files of interrupted small replacements.
     `.cleaned` files are unfinished and are removed, and so is a `.swap` file at or above one of
     them, because not all files of its replacement were renamed.
  2. Every other `.swap` file is finished: the segments that it replaces are removed, then its
     suffix is taken off.

Each step may be interrupted again. `storage.recovery` calls this. Raises OSError.
"""

import logging
from collections.abc import Iterable

from storage.filesystem import FileSystem
from storage.log.scan import Walk
from storage.paths import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    SegmentFile,
    is_temporary,
    join,
    parse_segment_file,
)

_log = logging.getLogger(__name__)


def segment_files(names: Iterable[str]) -> list[tuple[str, SegmentFile]]:
    """Those of `names` that belong to segments, parsed; producer snapshots are left out."""
    found = []
    for name in names:
        file = parse_segment_file(name)
        if file is not None and file.suffix != SNAPSHOT_SUFFIX:
            found.append((name, file))
    return found


def remove_leftovers(fs: FileSystem, directory: str) -> None:
    """Pass 1: remove deleted, unfinished and temporary files. Raises OSError."""
    names = list(fs.sizes(directory))
    files = segment_files(names)
    cleaned = [file.base_offset for _, file in files if file.state == CLEANED_SUFFIX]
    doomed = [name for name in names if name.endswith(DELETED_SUFFIX) or is_temporary(name)]
    if cleaned:
        # `.swap` before `.cleaned` files: without the latter the former would look finished.
        doomed += [
            name
            for name, file in files
            if file.state == SWAP_SUFFIX and file.base_offset >= min(cleaned)
        ]
        doomed += [name for name, file in files if file.state == CLEANED_SUFFIX]
    for name in doomed:
        _unlink(fs, directory, name)


def finish_swaps(fs: FileSystem, directory: str) -> None:
    """Pass 2: replace segments by the `.swap` files that hold their offsets. Raises OSError."""
    files = segment_files(fs.sizes(directory))
    swaps = [(name, file) for name, file in files if file.state == SWAP_SUFFIX]
    first, after = 2**63 - 1, -1
    for name, file in swaps:
        if file.suffix == LOG_SUFFIX:
            first = min(first, file.base_offset)
            # A segment without batches, after cleaning, still replaces the one at its base.
            end = _end_of(fs, join(directory, name), file.base_offset)
            after = max(after, end, file.base_offset + 1)
    for name, file in files:
        if file.state == "" and first <= file.base_offset < after:
            _unlink(fs, directory, name)
    for name, _ in swaps:
        path = join(directory, name)
        _log.info("Recovering file %s by renaming", path)
        fs.rename(path, path.removesuffix(SWAP_SUFFIX))


def _end_of(fs: FileSystem, path: str, base_offset: int) -> int:
    """The offset after the last batch, without trusting an index."""
    after = base_offset
    file = fs.open(path, writable=False)
    try:
        for _, header, _, _ in Walk(file, 0, file.size()):
            after = header.last_offset + 1
    finally:
        file.close()
    return after


def _unlink(fs: FileSystem, directory: str, name: str) -> None:
    _log.debug("Deleting left over file %s", join(directory, name))
    fs.unlink(join(directory, name), missing_ok=True)
