"""The results of a check: problems found, and actions that a start would take."""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from protocol.types import TopicPartition
from storage.errors import CheckpointError


class Severity(StrEnum):
    """How much a finding matters."""

    NOTE = "note"
    """Worth knowing; nothing is damaged."""
    PROBLEM = "problem"
    """Something differs from what an orderly stop leaves."""


class Problem(Enum):
    """The problems that a check finds: (text, severity)."""

    TORN_TAIL = "the log ends in the middle of a batch", Severity.PROBLEM
    GARBAGE = "bytes that are no batch", Severity.PROBLEM
    ZEROS = (
        "zeros behind the last batch: allocated beforehand (preallocate), or never written before a"
        " power cut",
        Severity.PROBLEM,
    )
    BAD_BATCH = "a damaged batch", Severity.PROBLEM
    BAD_RECORDS = "a batch whose records cannot be read", Severity.PROBLEM
    OVERLAP = "the segment begins below the end of the one before", Severity.PROBLEM
    INDEX_MISSING = "the index is missing", Severity.PROBLEM
    INDEX_CORRUPT = "the index contradicts itself", Severity.PROBLEM
    INDEX_MISMATCH = "the index says something else than the log", Severity.PROBLEM
    ORPHAN = "a file of a segment that has no record file", Severity.PROBLEM
    LEFTOVER = "left over from a deletion or compaction", Severity.PROBLEM
    SNAPSHOT_CORRUPT = "the producer snapshot cannot be read", Severity.PROBLEM
    SNAPSHOT_BEYOND = "the producer snapshot is of offsets the log does not have", Severity.PROBLEM
    EPOCHS_CORRUPT = "the leader epochs cannot be read", Severity.PROBLEM
    EPOCHS_WRONG = "the leader epochs disagree with the batches", Severity.PROBLEM
    METADATA_CORRUPT = "partition.metadata cannot be read", Severity.PROBLEM
    UNKNOWN_FILE = "not a file of a log", Severity.NOTE
    CHECKPOINT_CORRUPT = "the checkpoint cannot be read", Severity.PROBLEM
    CHECKPOINT_BEYOND = "the checkpoint is beyond the log's end", Severity.PROBLEM
    CHECKPOINT_STALE = "the checkpoint names a partition that is not here", Severity.NOTE
    START_BEYOND = "the log's start is beyond its end", Severity.PROBLEM
    DUPLICATE = "the partition is in two log directories", Severity.PROBLEM
    META_CORRUPT = "not valid; a broker refuses to start with it", Severity.PROBLEM
    META_FOREIGN = "of another owner than the first directory", Severity.PROBLEM
    NOT_A_LOG_DIR = (
        "no log directory: no partitions, checkpoints or meta.properties",
        Severity.PROBLEM,
    )
    EMPTY_DIR = "an empty directory: a broker would take it as a new one", Severity.NOTE
    NOT_CLEAN = "no clean-shutdown marker", Severity.PROBLEM
    TO_DELETE = "the topic was deleted, its files are still there", Severity.NOTE
    MOVING = "a partition that was on its way here; the move goes on after a start", Severity.NOTE
    STRAY = "a partition that its broker no longer knew; nothing reads it", Severity.NOTE
    LOCK_UNKNOWN = "not allowed to look whether a broker is running here", Severity.NOTE
    UNKNOWN_DIR = "not a partition's directory; Apache Kafka does not start with it", Severity.NOTE
    UNREADABLE = "cannot be read", Severity.PROBLEM

    def __init__(self, text: str, severity: Severity) -> None:
        self.text = text
        self.severity = severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong."""

    problem: Problem
    path: str
    detail: str = ""
    position: int | None = None
    """Position in the file in bytes, if known."""

    @property
    def severity(self) -> Severity:
        """The severity of the problem."""
        return self.problem.severity

    def __str__(self) -> str:
        where = "" if self.position is None else f" at byte {self.position}"
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.path}{where}: {self.problem.text}{detail}"


BLOCKS_START: Final = (Problem.DUPLICATE, Problem.UNREADABLE)
"""Problems with which a broker does not open a partition, and a repair leaves it alone."""

SETTLED_BY_START: Final = (
    Problem.CHECKPOINT_BEYOND,
    Problem.CHECKPOINT_CORRUPT,
    Problem.START_BEYOND,
    Problem.METADATA_CORRUPT,
)
"""Problems that a start corrects, though not at once in the files that the finding names."""


class Verdict(StrEnum):
    """The overall result for a partition."""

    SOUND = "sound"
    """Nothing worse than a note, and a restart changes nothing."""
    HEALS = "heals"
    """A restart corrects everything, or changes derived files only; no record is lost."""
    LOSES_RECORDS = "loses records"
    """A restart cuts or drops bytes of record files."""
    STAYS_DAMAGED = "stays damaged"
    """Something is wrong that a restart would not notice."""
    BLOCKED = "blocks the start"
    """A broker would not open it, see BLOCKS_START."""


class ActionKind(StrEnum):
    """The changes that a start makes to the files of a log."""

    CUT_LOG = "cut the log"
    DROP_SEGMENT = "drop the segment"
    SPLIT_SEGMENT = "split the segment, whose offsets lie too far apart for an index"
    NEW_SEGMENT = "start a new segment"
    FINISH_SWAP = "finish the compaction"
    REPLACE = "replace by the compacted one"
    REMOVE_LEFTOVER = "remove the leftover"
    REMOVE_INDEX = "remove the index"
    REBUILD_INDEX = "rebuild the index"
    TRIM_INDEX = "cut the index to its entries"
    WRITE_SNAPSHOT = "write the producer snapshot"
    REMOVE_SNAPSHOT = "remove the producer snapshot"
    REWRITE_EPOCHS = "rewrite the leader epochs"
    OTHER = "change"


LOSES_RECORDS = (ActionKind.CUT_LOG, ActionKind.DROP_SEGMENT)
"""Actions after which records that were in the files are no longer in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing a start does."""

    kind: ActionKind
    path: str
    before: int | None = None
    """Bytes; None: the file is not there."""
    after: int | None = None

    def __str__(self) -> str:
        if self.before is not None and self.after is not None and self.before != self.after:
            size = f" ({self.before} -> {self.after} bytes)"
        elif self.after is None and self.before:
            size = f" ({self.before} bytes)"
        else:
            size = ""
        return f"{self.kind}: {self.path}{size}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionVerdict:
    """The findings and actions for one partition directory."""

    directory: str
    topic_partition: TopicPartition | None
    findings: tuple[Finding, ...]
    actions: tuple[Action, ...]
    """Actions that a restart would take; after a repair, those that it took."""
    log_start_offset: int = 0
    log_end_offset: int = 0
    """The log end offset after a restart."""
    batches: int = 0
    bytes: int = 0
    """Bytes of record files, good or not."""

    @property
    def is_sound(self) -> bool:
        """Whether there is nothing worse than a note."""
        return all(finding.severity is Severity.NOTE for finding in self.findings)

    @property
    def verdict(self) -> Verdict:
        """The verdict by the worst of all findings and actions."""
        problems = [f for f in self.findings if f.severity is Severity.PROBLEM]
        if any(finding.problem in BLOCKS_START for finding in problems):
            return Verdict.BLOCKED
        touched = {action.path for action in self.actions}
        if any(f.path not in touched and f.problem not in SETTLED_BY_START for f in problems):
            return Verdict.STAYS_DAMAGED
        if self.loses:
            return Verdict.LOSES_RECORDS
        return Verdict.HEALS if problems or self.actions else Verdict.SOUND

    @property
    def loses(self) -> int:
        """Bytes of record files that a restart cuts or drops, without those that are zeros."""
        zeros = {finding.path for finding in self.findings if finding.problem is Problem.ZEROS}
        return sum(
            (action.before or 0) - (action.after or 0)
            for action in self.actions
            if action.kind in LOSES_RECORDS and action.path not in zeros
        )


def reason_of(error: Exception) -> str:
    """An error's message without the path, which the finding names already."""
    if isinstance(error, CheckpointError):
        return f"line {error.line}: {error.reason}" if error.line else error.reason
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
