"""Checking and repairing a whole log directory, or one partition directory of it.

    check = LogDirCheck(fs, clock, random, [directory])
    for verdict in check.partitions(): ...
    check.findings                         # of the directories themselves, complete afterwards
    check.repair(verdict, backup)          # after `lock()`

A directory that a broker has locked can be checked, not repaired. A restart follows a clean stop
then: what that stop settles is no problem, and neither is what is gone at a second look, as the
broker rolls, cleans and deletes segments meanwhile.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage.check.findings import (
    BLOCKS_START,
    LOSES_RECORDS,
    Finding,
    PartitionVerdict,
    Problem,
    Severity,
    reason_of,
)
from storage.check.inspect import Inspection, Progress, inspect_partition
from storage.check.plan import Plan, rehearse
from storage.check.repair import Backup, Repaired, repair_partition
from storage.checkpoint import OffsetCheckpoint
from storage.clock import Clock
from storage.errors import CheckpointError, InconsistentMetaProperties
from storage.filesystem import FileSystem
from storage.log_dir import LogDir, MetaProperties
from storage.log_loading import METADATA_TOPIC, LoadJob
from storage.paths import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOCK_FILE,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    DirState,
    file_name,
    join,
    parent_dir,
    parse_partition_dir,
)
from storage.producers.state import DEFAULT_EXPIRATION_MS
from storage.reader import OFFSET_CHECKPOINTS, LogDirView, PartitionView

_ENDS: Final = (RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, CLEANER_CHECKPOINT)
"""Checkpoints whose offsets must not be above a log's end."""

_ANY_TOPIC: Final = TopicConfig(cleanup_policy=frozenset({"compact", "delete"}))
"""The configuration of every topic here, where nobody knows the topics' own. Compaction leaves
holes between segments, so none may end a log (decision 15). Beside the policy, recovery needs only
the density of the indexes."""


@dataclass(slots=True)
class _Directory:
    """The facts about one log directory."""

    view: LogDirView
    lock: LogDir
    clean: bool = False
    in_use: bool = False
    checkpoints: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    only: str | None = None
    """Check this partition directory and nothing else."""


class LogDirCheck:
    """One run over some log directories (or single partition directories)."""

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        random: Random,
        paths: list[str],
        *,
        records: bool = False,
        from_start: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """`records`: decode every record. `from_start`: trust neither recovery points nor the
        clean-shutdown marker, so that a restart (and a repair) recovers every segment.

        Raises OSError.
        """
        self._fs = fs
        self._clock = clock
        self._random = random
        self._records = records
        self._from_start = from_start
        self._progress = progress
        self.findings: list[Finding] = []
        """Findings of the log directories; those of partitions are in their verdicts."""
        self._owner: tuple[str, MetaProperties] | None = None
        self._found: dict[TopicPartition, list[str]] | None = None
        self._plans: dict[str, Plan] = {}
        self._rebuilt: dict[str, tuple[str, ...]] = {}
        self._dirs = [self._open(path.rstrip("/") or "/") for path in paths]

    @property
    def in_use(self) -> bool:
        """Whether a broker uses one of the directories."""
        return any(directory.in_use for directory in self._dirs)

    def total_bytes(self) -> int:
        """Bytes of all record files, for a progress bar. Raises OSError."""
        total = 0
        for directory in self._dirs:
            for view in self._views(directory):
                with contextlib.suppress(OSError):  # reported with the partition
                    total += sum(segment.size for segment in view.segments())
        return total

    # The directories.

    def _open(self, path: str) -> _Directory:
        single = parse_partition_dir(file_name(path)) is not None
        view = LogDirView(parent_dir(path) if single else path, self._fs)
        names = set(view.names())
        directory = _Directory(
            view, LogDir(self._fs, view.directory), only=path if single else None
        )
        directory.clean = CLEAN_SHUTDOWN_FILE in names
        directory.in_use = self._is_in_use(directory.lock)
        for name in OFFSET_CHECKPOINTS:
            try:
                directory.checkpoints[name] = view.offsets(name)
            except CheckpointError as error:
                directory.checkpoints[name] = {}
                path = join(view.directory, name)
                self._find(Problem.CHECKPOINT_CORRUPT, path, reason_of(error))
            except OSError as error:
                directory.checkpoints[name] = {}
                path = join(view.directory, name)
                self._find(Problem.UNREADABLE, path, reason_of(error))
        if not single:
            self._look_at(directory)
        return directory

    def _is_in_use(self, log_dir: LogDir) -> bool:
        try:
            return log_dir.is_in_use()
        except OSError as error:
            self._find(Problem.LOCK_UNKNOWN, join(log_dir.path, LOCK_FILE), reason_of(error))
            return False

    def _look_at(self, directory: _Directory) -> None:
        view = directory.view
        self._look_at_owner(view)
        partitions = view.partitions()
        if not view.is_log_dir:
            kind = Problem.NOT_A_LOG_DIR if view.names() else Problem.EMPTY_DIR
            self._find(kind, view.directory)
            return
        for name in view.names():
            path = join(view.directory, name)
            if parse_partition_dir(name) is None and self._fs.is_dir(path):
                self._find(Problem.UNKNOWN_DIR, path)
        for partition in partitions:
            if partition.state is DirState.DELETE:
                self._find(Problem.TO_DELETE, partition.directory)
            elif partition.state is DirState.FUTURE:
                self._find(Problem.MOVING, partition.directory)
            elif partition.state is DirState.STRAY:
                self._find(Problem.STRAY, partition.directory)
        live = {p.topic_partition for p in partitions if p.state is DirState.LIVE}
        if live and not directory.clean and not directory.in_use:
            self._find(Problem.NOT_CLEAN, join(view.directory, CLEAN_SHUTDOWN_FILE))
        for name, offsets in directory.checkpoints.items():
            for topic_partition in offsets.keys() - live:
                path = join(view.directory, name)
                self._find(Problem.CHECKPOINT_STALE, path, f"{topic_partition}")

    def _look_at_owner(self, view: LogDirView) -> None:
        path = join(view.directory, META_PROPERTIES)
        try:
            meta = view.meta_properties()
        except InconsistentMetaProperties as error:
            self._find(Problem.META_CORRUPT, path, error)
            return
        except OSError as error:
            self._find(Problem.UNREADABLE, path, reason_of(error))
            return
        if meta is None:
            return
        first, known = self._owner or (path, meta)
        self._owner = (first, known)
        for name, ours, other in (
            ("cluster.id", meta.cluster_id, known.cluster_id),
            ("node.id", meta.node_id, known.node_id),
        ):
            if ours is not None and other is not None and ours != other:
                detail = f"{name} {ours}, in {first} {other}; a broker takes only one of them"
                self._find(Problem.META_FOREIGN, path, detail)

    def _find(self, problem: Problem, path: str, detail: object = "") -> None:
        text = str(detail).removeprefix(f"{path}: ")
        self.findings.append(Finding(problem=problem, path=path, detail=text))

    def _views(self, directory: _Directory) -> Iterator[PartitionView]:
        if directory.only is not None:
            yield PartitionView(directory.only, self._fs)
            return
        for view in directory.view.partitions():
            tp = view.topic_partition
            if view.state is DirState.LIVE and tp is not None and tp.topic != METADATA_TOPIC:
                yield view

    def _places(self) -> dict[TopicPartition, list[str]]:
        """The directories of each partition."""
        if self._found is None:
            self._found = {}
            for directory in self._dirs:
                for view in self._views(directory):
                    assert view.topic_partition is not None
                    self._found.setdefault(view.topic_partition, []).append(view.directory)
        return self._found

    # The partitions.

    def partitions(self) -> Iterator[PartitionVerdict]:
        """A verdict on each partition directory that a start would open. Raises OSError."""
        for directory in self._dirs:
            for view in self._views(directory):
                if not directory.in_use:
                    yield self._verdict(directory, view)
                    continue
                verdict = self._verdict_in_use(directory, view)
                if verdict is not None:
                    yield verdict

    def _verdict_in_use(
        self, directory: _Directory, view: PartitionView
    ) -> PartitionVerdict | None:
        """Return what two looks have both found; None if the partition was deleted meanwhile."""
        first = self._verdict(directory, view)
        if first.is_sound and not first.actions:
            return first
        second = self._verdict(directory, view)
        if not self._fs.is_dir(view.directory):
            return None
        found = {(finding.problem, finding.path) for finding in first.findings}
        planned = {(action.kind, action.path) for action in first.actions}
        return replace(
            second,
            findings=tuple(one for one in second.findings if (one.problem, one.path) in found),
            actions=tuple(one for one in second.actions if (one.kind, one.path) in planned),
        )

    def _verdict(self, directory: _Directory, view: PartitionView) -> PartitionVerdict:
        tp = view.topic_partition
        assert tp is not None
        try:
            seen = inspect_partition(
                view, in_use=directory.in_use, records=self._records, progress=self._progress
            )
        except OSError as error:
            path = str(error.filename or view.directory)
            unreadable = Finding(problem=Problem.UNREADABLE, path=path, detail=reason_of(error))
            return PartitionVerdict(
                directory=view.directory, topic_partition=tp, findings=(unreadable,), actions=()
            )
        findings = seen.findings + self._against_checkpoints(directory, tp, seen.end_offset)
        others = [path for path in self._places()[tp] if path != view.directory]
        if others:
            detail = f"also in {', '.join(others)}"
            findings.append(Finding(problem=Problem.DUPLICATE, path=view.directory, detail=detail))
        plan = self._plan(directory, view, seen, findings)
        self._rebuilt[view.directory] = tuple(seen.bad_indexes)
        self._plans[view.directory] = plan
        return PartitionVerdict(
            directory=view.directory,
            topic_partition=tp,
            findings=tuple(findings),
            actions=plan.actions,
            log_start_offset=plan.log_start_offset,
            log_end_offset=plan.log_end_offset,
            batches=seen.batches,
            bytes=seen.bytes,
        )

    def _plan(
        self, directory: _Directory, view: PartitionView, seen: Inspection, findings: list[Finding]
    ) -> Plan:
        if not directory.in_use or self._from_start:
            return rehearse(self._fs, self._job(directory, view))
        wrong = {one.path for one in findings if one.severity is Severity.PROBLEM}
        if wrong:
            with contextlib.suppress(OSError):  # the broker changed the files meanwhile
                plan = rehearse(self._fs, self._job(directory, view))
                # The stop trims the active indexes, writes snapshot and epochs.
                left = [
                    one for one in plan.actions if one.path in wrong or one.kind in LOSES_RECORDS
                ]
                return replace(plan, actions=tuple(left))
        assert view.topic_partition is not None
        starts = directory.checkpoints[LOG_START_OFFSET_CHECKPOINT]
        start = max(starts.get(view.topic_partition, 0), seen.first_offset)
        return Plan(actions=(), changes=(), log_start_offset=start, log_end_offset=seen.end_offset)

    def _against_checkpoints(
        self, directory: _Directory, tp: TopicPartition, end: int
    ) -> list[Finding]:
        found: list[Finding] = []
        if directory.in_use:
            return found
        checks = [(name, Problem.CHECKPOINT_BEYOND) for name in _ENDS]
        checks.append((LOG_START_OFFSET_CHECKPOINT, Problem.START_BEYOND))
        for name, problem in checks:
            offset = directory.checkpoints[name].get(tp)
            if offset is not None and offset > end:
                path = join(directory.view.directory, name)
                detail = f"{tp} {offset}, the log ends at {end}"
                found.append(Finding(problem=problem, path=path, detail=detail))
        return found

    def _job(self, directory: _Directory, view: PartitionView) -> LoadJob:
        tp = view.topic_partition
        assert tp is not None
        points = directory.checkpoints[RECOVERY_POINT_CHECKPOINT]
        return LoadJob(
            log_dir=directory.view.directory,
            directory=view.directory,
            topic_partition=tp,
            config=_ANY_TOPIC,
            clean=(directory.clean or directory.in_use) and not self._from_start,
            recovery_point=0 if self._from_start else points.get(tp, 0),
            log_start_offset=directory.checkpoints[LOG_START_OFFSET_CHECKPOINT].get(tp, 0),
            fs=self._fs,
            clock=self._clock,
            random=self._random,
            producer_expiration_ms=DEFAULT_EXPIRATION_MS,
        )

    # Repair.

    def lock(self) -> None:
        """Keep brokers out. Raises DirectoryLocked when one is in, OSError."""
        for directory in self._dirs:
            directory.lock.lock()

    def unlock(self) -> None:
        """Let brokers in again."""
        for directory in self._dirs:
            directory.lock.unlock()

    def repair(self, verdicts: list[PartitionVerdict], backup_of: Callable[[str], str]) -> Repaired:
        """Do what a restart would do, and rebuild indexes that are wrong; needs `lock()`.

        `backup_of` maps a log directory to the path of its backup. Raises OSError, StorageError.
        """
        by_directory = {verdict.directory: verdict for verdict in verdicts}
        repaired = Repaired()
        for directory in self._dirs:
            views = [v for v in self._views(directory) if v.directory in by_directory]
            todo = [v for v in views if self._needs_repair(directory, by_directory[v.directory])]
            if todo or self._wants_checkpoints(directory):
                backup = Backup(self._fs, backup_of(directory.view.directory))
                blocked = len(views) - len([v for v in views if _can(by_directory[v.directory])])
                self._repair(directory, todo, backup, repaired, all_good=not blocked)
        return repaired

    def _needs_repair(self, directory: _Directory, verdict: PartitionVerdict) -> bool:
        if not _can(verdict):
            return False
        return bool(verdict.actions or self._rebuilt[verdict.directory] or not directory.clean)

    def _wants_checkpoints(self, directory: _Directory) -> bool:
        where = directory.view.directory
        checkpoints = [f for f in self.findings if f.problem is Problem.CHECKPOINT_CORRUPT]
        return not directory.clean or any(parent_dir(f.path) == where for f in checkpoints)

    def _repair(
        self,
        directory: _Directory,
        views: list[PartitionView],
        backup: Backup,
        repaired: Repaired,
        *,
        all_good: bool,
    ) -> None:
        directory.lock.take_clean_shutdown_marker()
        ends: dict[TopicPartition, tuple[int, int]] = {}
        for view in views:
            job = self._job(directory, view)
            bad = self._rebuilt[view.directory]
            plan = rehearse(self._fs, job, bad) if bad else self._plans[view.directory]
            tp, start, end = repair_partition(self._fs, job, backup, plan, bad)
            ends[tp] = (start, end)
            repaired.actions += plan.actions
        self._write_checkpoints(directory, ends, backup)
        if all_good and (directory.clean or not self._leaves_unrecovered(directory)):
            directory.lock.write_clean_shutdown_marker()
        repaired.backups += backup.files

    def _leaves_unrecovered(self, directory: _Directory) -> bool:
        """Whether a start after a crash recovers more partitions there than a repair does."""
        if directory.only is not None:
            return True
        return any(view.state is DirState.FUTURE for view in directory.view.partitions())

    def _write_checkpoints(
        self, directory: _Directory, ends: dict[TopicPartition, tuple[int, int]], backup: Backup
    ) -> None:
        for name in OFFSET_CHECKPOINTS:
            path = join(directory.view.directory, name)
            before = directory.checkpoints[name]
            after = dict(before)
            for tp, (start, end) in ends.items():
                if name == RECOVERY_POINT_CHECKPOINT:
                    after[tp] = end
                elif name == LOG_START_OFFSET_CHECKPOINT:
                    if tp in after:
                        after[tp] = start
                elif after.get(tp, 0) > end:
                    after[tp] = end
            damaged = any(
                f.path == path for f in self.findings if f.problem is Problem.CHECKPOINT_CORRUPT
            )
            if damaged:
                backup.keep(path, "")
            if damaged or after != before:
                OffsetCheckpoint(self._fs, path).write(after)


def _can(verdict: PartitionVerdict) -> bool:
    """Whether a start would open the partition."""
    return not any(finding.problem in BLOCKS_START for finding in verdict.findings)
