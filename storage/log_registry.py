"""Which log directories and logs are in service, and what happens when a directory fails.

The lowest layer of `LogManager` (see `storage.log_manager`, where the whole is explained); above it
are `LogUpkeep` and the manager itself. Nobody else derives from it.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from threading import Lock

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage.clock import Clock
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log.state import LogState
from storage.log_dir import LogDir
from storage.log_loading import Loading
from storage.paths import (
    parent_dir,
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineDir:
    """A log directory that failed."""

    path: str
    error: OSError
    partitions: tuple[TopicPartition, ...]
    """Whose logs were in it."""
    last: bool
    """No live directory is left: the broker cannot go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagerStatistics:
    """Gauges (`kafka.log:type=LogManager,name=…`)."""

    live_dirs: tuple[str, ...]
    offline_dirs: tuple[str, ...]
    logs: int
    logs_to_be_deleted: int
    logs_to_load: int
    """Partition directories that are not open yet, during start-up."""


@dataclass(slots=True)
class ManagedDir:
    """State of one directory of `log.dirs`."""

    log_dir: LogDir
    was_clean: bool = False
    loaded: bool = False
    """All its logs were opened, so a clean stop may be promised."""
    checkpointed: frozenset[TopicPartition] = frozenset()
    """Partitions named by the recovery point or log start checkpoint on the disk."""


def run_at_once(action: Callable[[], None]) -> None:
    """The `defer` of a manager that has one thread only."""
    action()


class LogRegistry:
    """Directories and logs by name."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        fs: FileSystem,
        *,
        on_offline: Callable[[OfflineDir], None],
        defer: Callable[[Callable[[], None]], None] = run_at_once,
        random: Random | None = None,
    ) -> None:
        """`defer` runs an action on the owner's thread soon; it may be called from any thread."""
        self._config = config
        self._clock = clock
        self._fs = fs
        self._on_offline = on_offline
        self._defer = defer
        self._random = random or Random()
        self._all_dirs = tuple(config.log_dirs)
        self._dirs: dict[str, ManagedDir] = {}
        self._offline: dict[str, OSError] = {}
        self._reported: set[str] = set()
        self._logs: dict[TopicPartition, Log] = {}
        self._future: dict[TopicPartition, Log] = {}
        self._initializing: dict[TopicPartition, TopicConfig | None] = {}
        self._to_delete: deque[tuple[int, str]] = deque()
        self._to_unlink: list[tuple[int, str]] = []
        self._rolled: deque[tuple[LogState, int]] = deque()
        self._loading: Loading | None = None
        # Threads and the owner write the same checkpoints: one after the other, newest values last.
        self._checkpointing = Lock()
        self._outdated: dict[str, object] = {}
        """Log directories whose recovery point checkpoint says too much; see `_log_rolling`."""

    # What there is.

    @property
    def live_dirs(self) -> tuple[str, ...]:
        """Log directories in service, in the order of `log.dirs`."""
        return tuple(self._dirs)

    @property
    def offline_dirs(self) -> tuple[str, ...]:
        """Log directories that failed."""
        return tuple(self._offline)

    def get_log(self, topic_partition: TopicPartition) -> Log | None:
        """The partition's log, if it is on a live directory."""
        return self._logs.get(topic_partition)

    def all_logs(self) -> list[Log]:
        """Every log in service."""
        return list(self._logs.values())

    def dir_of(self, topic_partition: TopicPartition) -> str | None:
        """The log directory that holds the partition."""
        log = self._logs.get(topic_partition)
        return None if log is None else parent_dir(log.dir)

    def latest_epoch(self, topic_partition: TopicPartition) -> int | None:
        """The last leader epoch in the partition's log; None when it is empty or not here."""
        log = self._logs.get(topic_partition)
        return None if log is None else log.leader_epochs.latest_epoch

    def _with_future_logs(self) -> list[Log]:
        """Every log in service, and the copies of those that are being moved."""
        return [*self._logs.values(), *self._future.values()]

    def logs_in(self, log_dir: str) -> list[Log]:
        """Logs of one log directory, those that are being moved there included."""
        return [log for log in self._with_future_logs() if parent_dir(log.dir) == log_dir]

    def statistics(self) -> LogManagerStatistics:
        """For metrics."""
        pending = self._loading.jobs if self._loading is not None else ()
        return LogManagerStatistics(
            live_dirs=self.live_dirs,
            offline_dirs=self.offline_dirs,
            logs=len(self._logs),
            logs_to_be_deleted=len(self._to_delete),
            logs_to_load=sum(job.log is None and job.error is None for job in pending),
        )

    # Disks fail.

    def _log_failed(self, directory: str, error: OSError) -> None:
        self.report_failure(parent_dir(directory), error)

    def report_failure(self, log_dir: str, error: OSError) -> None:
        """A disk error in `log_dir`, seen by any thread; the first one counts."""
        if log_dir in self._reported:
            return
        self._reported.add(log_dir)
        self._defer(lambda: self.handle_dir_failure(log_dir, error))

    def handle_dir_failure(self, log_dir: str, error: OSError) -> None:
        """Take a directory and its logs out of service and tell `on_offline`; once."""
        self._reported.add(log_dir)
        state = self._dirs.pop(log_dir, None)
        if state is None:
            return
        _log.error("Stopping serving logs in dir %s: %s", log_dir, error)
        self._offline[log_dir] = error
        lost = [tp for tp, log in self._logs.items() if parent_dir(log.dir) == log_dir]
        for topic_partition in lost:
            self._logs.pop(topic_partition).take_offline(error)
        for log in list(self._future.values()):
            if parent_dir(log.dir) == log_dir:
                self._future.pop(log.topic_partition).take_offline(error)
        state.log_dir.unlock()
        if not self._dirs:
            _log.critical("All log dirs in %s have failed", ", ".join(self._all_dirs))
        self._on_offline(
            OfflineDir(path=log_dir, error=error, partitions=tuple(lost), last=not self._dirs)
        )
