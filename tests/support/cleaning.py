"""Rewrites segments without some of their batches, as a cleaner does."""

from collections.abc import Callable, Sequence

from storage.log.log import Log
from storage.log.results import Deleted
from storage.log.scan import Walk
from storage.log.segment import LogSegment

Keep = Callable[[int], bool]
"""Says whether the batch with a base offset stays."""


def keep_all(_: int) -> bool:
    return True


def cleaned(
    log: Log, old: Sequence[LogSegment], keep: Keep = keep_all, base_offset: int | None = None
) -> LogSegment:
    """Write the batches of `old` that stay into one segment of synced `.cleaned` files."""
    new = log.replacer.open_cleaned(old[0].base_offset if base_offset is None else base_offset)
    new.ensure_files()
    for segment in old:
        for position, header, _, _ in Walk(segment.file, 0, segment.size):
            if keep(header.base_offset):
                new.write(segment.file.pread(header.size, position))
                new.note_batch(header.size, header.last_offset, header.max_timestamp)
        for aborted in segment.aborted.index.all_aborted() if new.size else ():
            new.aborted.index.append(aborted)
    new.become_inactive()
    new.flush()
    return new


def replace(log: Log, old: Sequence[LogSegment], keep: Keep = keep_all) -> list[Deleted]:
    """Let one segment with the batches that stay take the place of `old`."""
    return log.replacer.replace([cleaned(log, old, keep)], old, generation=log.store.generation)
