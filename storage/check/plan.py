"""The actions of a start on one partition directory: recovery, rehearsed.

This runs the recovery of a start, with the recovery point, log start offset and clean-shutdown
marker that a start would find, in a `RehearsalFileSystem`, and translates the changed files into
actions on logs.
"""

from dataclasses import dataclass, replace
from typing import Final

from storage.check.findings import Action, ActionKind
from storage.check.rehearsal import Change, ChangeKind, RehearsalFileSystem
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log_loading import LoadJob
from storage.paths import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
    is_temporary,
    parse_segment_file,
)

_DERIVED: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The outcome of a rehearsal."""

    actions: tuple[Action, ...]
    changes: tuple[Change, ...]
    log_start_offset: int
    log_end_offset: int


def rehearse(fs: FileSystem, job: LoadJob, without: tuple[str, ...] = ()) -> Plan:
    """Plan what loading `job` does, `without` these files. Raises OSError if it cannot be loaded.

    The files in `without` count as changed.
    """
    scratch = RehearsalFileSystem(fs)
    for path in without:
        scratch.unlink(path, missing_ok=True)
    log = load(replace(job, fs=scratch, log=None, error=None))
    changes = scratch.changes()
    return Plan(
        actions=tuple(_with_splits([action_of(change) for change in changes])),
        changes=tuple(changes),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
    )


def load(job: LoadJob) -> Log:
    """Run the job and return its log. Raises OSError."""
    job.complete(job.run())
    if job.log is None:
        raise job.error or OSError(f"{job.directory} could not be loaded")
    return job.log


def action_of(change: Change) -> Action:
    """The action that a change of a file stands for."""
    return Action(
        kind=_kind_of(change), path=change.path, before=change.before, after=_size_after(change)
    )


def _with_splits(actions: list[Action]) -> list[Action]:
    """Recognise splits: a record file that is cut, followed by new ones that hold the rest.

    Actions are in the order of paths, so pieces follow theirs. No other new segment holds anything.
    """
    named: list[Action] = []
    cut: int | None = None
    for action in actions:
        if action.path.endswith(LOG_SUFFIX):
            if action.kind is ActionKind.CUT_LOG:
                cut = len(named)
            elif action.kind is ActionKind.NEW_SEGMENT and action.after and cut is not None:
                split = named[cut]
                given = (split.after or 0) + action.after
                named[cut] = replace(split, kind=ActionKind.SPLIT_SEGMENT, after=given)
            else:
                cut = None
        named.append(action)
    return [
        # Bytes that are in none of the pieces were cut off before the split.
        replace(action, kind=ActionKind.CUT_LOG)
        if action.kind is ActionKind.SPLIT_SEGMENT and action.after != action.before
        else action
        for action in named
    ]


def _size_after(change: Change) -> int | None:
    if change.kind is ChangeKind.RENAMED and (change.renamed_to or "").endswith(DELETED_SUFFIX):
        return None
    return change.after


def _kind_of(change: Change) -> ActionKind:
    name = file_name(change.path)
    file = parse_segment_file(name)
    if is_temporary(name):
        return ActionKind.REMOVE_LEFTOVER
    if file is None:
        epochs = name == LEADER_EPOCH_CHECKPOINT
        return ActionKind.REWRITE_EPOCHS if epochs else ActionKind.OTHER
    if file.state == SWAP_SUFFIX and change.kind is ChangeKind.RENAMED:
        return ActionKind.FINISH_SWAP
    if file.state:
        return ActionKind.REMOVE_LEFTOVER
    if change.kind is ChangeKind.REPLACED:
        return ActionKind.REPLACE
    if _size_after(change) is None:
        return _GONE.get(file.suffix, ActionKind.REMOVE_INDEX)
    if file.suffix == LOG_SUFFIX:
        return ActionKind.NEW_SEGMENT if change.before is None else ActionKind.CUT_LOG
    if file.suffix == SNAPSHOT_SUFFIX:
        return ActionKind.WRITE_SNAPSHOT
    if file.suffix in _DERIVED and change.kind is ChangeKind.CUT:
        return ActionKind.TRIM_INDEX
    return ActionKind.REBUILD_INDEX


_GONE: Final = {
    LOG_SUFFIX: ActionKind.DROP_SEGMENT,
    SNAPSHOT_SUFFIX: ActionKind.REMOVE_SNAPSHOT,
}
