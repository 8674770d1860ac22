"""Which log is cleaned next, and which may not be (Kafka's `LogCleanerManager`).

A cleaner takes the filthiest log, cleans it (`storage.cleaner.cleaning`), and reports how far it
came. This also knows which logs must not be cleaned now (`storage.cleaner.states`), which cannot be
cleaned at all until the next start, and the checkpoints.

Looking for the filthiest
  All compacted logs are judged (`storage.cleaner.planner`), and those that are due are queued, the
  dirtiest first. A log taken from the queue is judged again, because it may have
  changed. With forty thousand logs, judging all of them takes a tenth of a second on the event
  loop, so a queue is used until it is empty or `FRESH_S` old. (Kafka judges all of them each time.)
  Files are opened only where a compaction lag needs timestamps.

When a log is cut, deleted, moved or no longer compacted during its cleaning, nobody waits: the
cleaner sees it at its next step (`is_wanted`), and what it has written is not installed, because
the log's generation has changed or its segments are gone.

Belongs to the event loop. `storage.log_manager` makes it and reports what happens to logs;
`broker.cleaner.log_cleaner` drives it.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Final

from protocol.errors import KafkaError
from protocol.types import TopicPartition
from storage.cleaner.checkpoints import CleanerCheckpoints
from storage.cleaner.log_facts import facts_of
from storage.cleaner.planner import (
    Due,
    LogFacts,
    NotDue,
    ResetReason,
    Verdict,
    judge,
)
from storage.cleaner.states import (
    CleaningStates,
    LogCleaningAborted,
    LogCleaningInProgress,
    LogCleaningPaused,
    LogCleaningState,
)
from storage.clock import Clock
from storage.errors import BeingRepaired, StorageError
from storage.log.log import Log
from storage.manager.log_table import LogTable
from storage.paths import parent_dir
from storage.waits import PAUSE, at_once

_log = logging.getLogger(__name__)

FRESH_S: Final = 5.0
"""Seconds for which the queue of one look at all logs is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogToClean:
    """A log that a cleaner has taken. The partition is in progress until `done_cleaning`."""

    log: Log
    due: Due
    directory: str
    """The log's directory when it was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookStatistics:
    """The result of a look at all logs (Kafka's `PreCleanStats`)."""

    cleanable: int = 0
    """Logs that were due."""
    delayed: int = 0
    """Logs that were older than `max.compaction.lag.ms` allows."""
    max_delay_ms: int = 0
    dirtiest_ratio: float = 0.0
    """The greatest dirty ratio of all logs, due or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerManagerStatistics:
    """Gauges (`kafka.log:type=LogCleanerManager,name=…`)."""

    uncleanable_partitions: Mapping[str, int]
    """By log directory."""
    uncleanable_bytes: Mapping[str, int]
    """Bytes that would be cleaned, by log directory."""
    max_dirty_percent: int
    time_since_last_run_ms: int
    in_progress: int
    look: LookStatistics


@dataclass(slots=True)
class _Look:
    """The candidates of one look at all logs."""

    began: float
    queue: list[tuple[float, int, Log]] = field(default_factory=list)
    """A heap, the dirtiest first; of equals the one that was judged first."""
    cleanable: int = 0
    delayed: int = 0
    max_delay_ms: int = 0
    dirtiest: float = 0.0

    def note(self, log: Log, verdict: Verdict) -> None:
        if verdict.delay_ms > 0:
            self.delayed += 1
            self.max_delay_ms = max(self.max_delay_ms, verdict.delay_ms)
        if verdict.extent is not None:
            self.dirtiest = max(self.dirtiest, verdict.extent.ratio)
        if isinstance(verdict, Due):
            self.cleanable += 1
            heappush(self.queue, (-verdict.ratio, self.cleanable, log))

    def statistics(self) -> LookStatistics:
        return LookStatistics(
            cleanable=self.cleanable,
            delayed=self.delayed,
            max_delay_ms=self.max_delay_ms,
            dirtiest_ratio=self.dirtiest,
        )


class LogCleanerManager:
    """Chooses which log is cleaned next, knows which must not be, and keeps the checkpoints."""

    def __init__(self, table: LogTable, clock: Clock, checkpoints: CleanerCheckpoints) -> None:
        self._table = table
        self._clock = clock
        self._states = CleaningStates()
        self._uncleanable: dict[str, dict[TopicPartition, str]] = {}
        self._copied_below: dict[TopicPartition, int] = {}
        """For partitions that are being moved: how far the log was cleaned when the copy began."""
        self._look: _Look | None = None
        self._found = LookStatistics()
        self._last_run_ms = clock.wall_ms()
        self.checkpoints = checkpoints
        """How far logs were cleaned."""
        self.is_enabled = True
        """Whether cleaners run."""

    # ---- choosing a log

    async def look(self) -> None:
        """Judge all logs, and queue those that are due."""
        self._last_run_ms = self._clock.wall_ms()
        look = _Look(self._clock.monotonic())
        for log in self._table.logs.copy().values():
            await PAUSE
            if self.is_candidate(log):
                verdict = await self._judged(log)
                if verdict is not None:
                    look.note(log, verdict)
        self._look, self._found = look, look.statistics()

    def is_candidate(self, log: Log) -> bool:
        """Whether the log may be cleaned, by cheap checks only, or cleaners apply retention to it.

        Without `delete` in the policy, retention deletes only segments below the log start.
        """
        partition = log.topic_partition
        return (
            log.config.compact
            and self._table.logs.get(partition) is log
            and self._states.get(partition) is None
            and self.why_uncleanable(log) is None
        )

    def grab_filthiest(self) -> LogToClean | None:
        """The dirtiest log of the last look that is still due; its cleaning is in progress now.

        None: there is none left, or the look is too old; `look` again.
        """
        look = self._look
        if look is None or self._clock.monotonic() - look.began > FRESH_S:
            self._look = None
            return None
        while look.queue:
            *_, log = heappop(look.queue)
            if self.is_candidate(log):
                verdict = at_once(self._judged(log))
                if isinstance(verdict, Due):
                    self._states.begin(log.topic_partition)
                    return LogToClean(log=log, due=verdict, directory=log.dir)
        self._look = None
        return None

    async def _judged(self, log: Log) -> Verdict | None:
        """The planner's verdict; None for a log without anything new, or that cannot be read."""
        if self._has_nothing_new(log):
            return None
        try:
            verdict = await judge(self.facts_of(log))
        except (BeingRepaired, StorageError) as error:
            _log.debug("%s is not looked at now: %s", log.topic_partition, error)
            return None
        except KafkaError as error:
            self.mark_uncleanable(log, f"its segments cannot be read: {error}")
            return None
        if verdict.extent is not None and verdict.extent.reset is not None:
            self._correct(log, verdict.extent.first_dirty_offset, verdict.extent.reset)
        return verdict

    def _has_nothing_new(self, log: Log) -> bool:
        """Whether everything below the active segment was cleaned, or nothing is below it, as is
        mostly so."""
        known = self.checkpoints.get(log)
        if known is None:
            return len(log.segments) == 1
        return known == log.segments.active.base_offset

    def _correct(self, log: Log, offset: int, reason: ResetReason) -> None:
        # With `delete` in the policy retention often moves the log start past the checkpoint.
        expected = reason is ResetReason.BELOW_LOG_START and log.config.delete
        _log.log(
            logging.DEBUG if expected else logging.WARNING,
            "Resetting first dirty offset of %s to log start offset %d since the checkpointed "
            "offset %s is invalid: %s",
            log.topic_partition,
            offset,
            self.checkpoints.get(log),
            reason.value,
        )
        self.checkpoints.set(log, offset)

    def facts_of(self, log: Log) -> LogFacts:
        """The facts that the planner needs."""
        return replace(
            facts_of(
                log,
                checkpointed=self.checkpoints.get(log),
                now_ms=self._clock.wall_ms(),
                cleaner_enabled=self.is_enabled,
            ),
            state=self._states.get(log.topic_partition),
            uncleanable=self.why_uncleanable(log),
            largest_timestamp_of=log.times.largest_timestamp_of,
            first_timestamp_of=log.times.first_timestamp_of,
        )

    def verdict_of(self, log: Log) -> Verdict:
        """Whether it is due, and all reasons why not. Raises StorageError, BeingRepaired."""
        return at_once(judge(self.facts_of(log)))

    # ---- while it is cleaned

    def is_wanted(self, work: LogToClean) -> bool:
        """Whether the cleaning is to go on; called between its steps."""
        log = work.log
        return (
            isinstance(self._states.get(log.topic_partition), LogCleaningInProgress)
            and self._table.logs.get(log.topic_partition) is log
            and log.dir == work.directory
            and log.config.compact
        )

    def done_cleaning(self, work: LogToClean, end_offset: int | None) -> None:
        """Note that the cleaning is over: the log is clean below `end_offset`; None: no further."""
        if end_offset is not None and self.is_wanted(work):
            self.checkpoints.set(work.log, end_offset)
        self._states.end(work.log.topic_partition)

    def mark_uncleanable(self, log: Log, why: str) -> None:
        """Leave the partition alone until the broker starts again (S-CMP-11)."""
        partitions = self._uncleanable.setdefault(parent_dir(log.dir), {})
        partitions[log.topic_partition] = why
        _log.warning("Marking partition %s as uncleanable: %s", log.topic_partition, why)

    def why_uncleanable(self, log: Log) -> str | None:
        """Why the log was marked uncleanable; None if it was not."""
        if not self._uncleanable:
            return None
        return self._uncleanable.get(parent_dir(log.dir), {}).get(log.topic_partition)

    def state_of(self, partition: TopicPartition) -> LogCleaningState | None:
        """The partition's state; None if it is neither being cleaned nor paused."""
        return self._states.get(partition)

    # ---- events of logs

    def pause(self, partition: TopicPartition) -> None:
        """End a running cleaning at its next step; none begins until `resume`."""
        self._states.pause(partition)

    def resume(self, partition: TopicPartition) -> None:
        """Undo one `pause`, unless the partition was forgotten meanwhile."""
        state = self._states.get(partition)
        if isinstance(state, LogCleaningPaused) or (
            isinstance(state, LogCleaningAborted) and state.pauses
        ):
            self._states.resume(partition)

    def truncated(self, log: Log) -> bool:
        """Note that the log was cut, so that its active segment is dirty; True when its checkpoint
        was lowered, which the caller then writes."""
        partition, offset = log.topic_partition, log.segments.active.base_offset
        self._states.abort(partition)
        if partition in self._copied_below:
            self._copied_below[partition] = min(self._copied_below[partition], offset)
        return self.checkpoints.truncate(log, offset)

    def gone(self, log_dir: str, partition: TopicPartition) -> None:
        """Forget a partition that was deleted."""
        self._states.forget(partition)
        self._forget(log_dir, partition)
        self._copied_below.pop(partition, None)
        self.checkpoints.remove(log_dir, partition)

    def copy_begun(self, log: Log) -> None:
        """Note that a move begins, whose copy reads the log from now on."""
        self._copied_below[log.topic_partition] = self.checkpoints.get(log) or 0

    def moved(self, source: Log, target: Log) -> None:
        """Note that `target`, in another directory, is the partition's log now (S-CMP-14).

        The part that had been cleaned when the copy began is clean in the copy. The part cleaned
        since may have been copied before, and is cleaned again (decision 59). (Kafka takes the
        checkpoint over, and leaves old values of keys there.)
        """
        partition = target.topic_partition
        from_dir, to_dir = parent_dir(source.dir), parent_dir(target.dir)
        known = self.checkpoints.remove(from_dir, partition)
        copied_below = self._copied_below.pop(partition, 0)
        if known is not None and copied_below:
            self.checkpoints.set(target, min(known, copied_below))
        given_up = self._forget(from_dir, partition)
        if given_up is not None:
            self._uncleanable.setdefault(to_dir, {})[partition] = given_up

    def directory_failed(self, log_dir: str, lost: Iterable[TopicPartition]) -> None:
        """Forget the partitions of a directory that has failed."""
        _log.warning("Stopping cleaning logs in dir %s", log_dir)
        for partition in lost:
            self._states.forget(partition)
        self._uncleanable.pop(log_dir, None)
        self.checkpoints.drop_dir(log_dir)

    def _forget(self, log_dir: str, partition: TopicPartition) -> str | None:
        partitions = self._uncleanable.get(log_dir, {})
        found = partitions.pop(partition, None)
        if not partitions:
            self._uncleanable.pop(log_dir, None)
        return found

    # ---- statistics

    def statistics(self, log_dirs: Iterable[str]) -> CleanerManagerStatistics:
        """For metrics. May read files of uncleanable partitions, of which there are few."""
        given_up = {log_dir: self._uncleanable.get(log_dir, {}) for log_dir in log_dirs}
        return CleanerManagerStatistics(
            uncleanable_partitions={log_dir: len(some) for log_dir, some in given_up.items()},
            uncleanable_bytes={
                log_dir: sum(map(self._cleanable_bytes, some)) for log_dir, some in given_up.items()
            },
            max_dirty_percent=int(100 * self._found.dirtiest_ratio),
            time_since_last_run_ms=self._clock.wall_ms() - self._last_run_ms,
            in_progress=sum(
                isinstance(self._states.get(p), LogCleaningInProgress) for p in self._states
            ),
            look=self._found,
        )

    def _cleanable_bytes(self, partition: TopicPartition) -> int:
        log = self._table.logs.get(partition)
        if log is None:
            return 0
        try:
            verdict = self.verdict_of(log)
        except KafkaError:
            return 0
        if isinstance(verdict, NotDue) and verdict.extent is not None:
            return verdict.extent.cleanable_bytes
        return 0
