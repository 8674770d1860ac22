"""All logs by partition: those in service, and the copies of those that are being moved."""

from collections.abc import Callable
from dataclasses import dataclass, field

from protocol.types import TopicPartition
from storage.errors import StorageError
from storage.log.log import Log
from storage.paths import parent_dir


@dataclass(slots=True)
class LogTable:
    """The logs of a broker by partition. Any part of the manager may read both dicts."""

    connect: Callable[[Log], None]
    """Sets a log's callbacks; called before the log is in the table."""
    logs: dict[TopicPartition, Log] = field(default_factory=dict)
    future: dict[TopicPartition, Log] = field(default_factory=dict)

    def adopt(self, log: Log) -> None:
        """Add a log to be served. Raises StorageError when there is one of that name."""
        self._add(self.logs, log)

    def adopt_future(self, log: Log) -> None:
        """Add a copy to be filled. Raises StorageError when there is one of that name."""
        self._add(self.future, log)

    def _add(self, where: dict[TopicPartition, Log], log: Log) -> None:
        previous = where.get(log.topic_partition)
        if previous is not None:
            raise StorageError(
                log.dir,
                f"Duplicate log directories for {log.topic_partition} are found in both {log.dir} "
                f"and {previous.dir}. Recover broker from this failure by manually deleting one of "
                "the two directories for this partition.",
            )
        self.connect(log)
        where[log.topic_partition] = log

    def everything(self) -> list[Log]:
        """Every log in service, and the copies of those that are being moved."""
        return [*self.logs.values(), *self.future.values()]

    def holds(self, log: Log) -> bool:
        """Whether `log` is still in the table, not deleted or replaced."""
        name = log.topic_partition
        return self.logs.get(name) is log or self.future.get(name) is log

    def in_dir(self, log_dir: str) -> list[Log]:
        """Logs of one log directory, those that are being moved there included."""
        return [log for log in self.everything() if parent_dir(log.dir) == log_dir]

    def take_offline(self, log_dir: str, error: OSError) -> list[TopicPartition]:
        """Take the logs of a failed directory offline; returns the partitions lost with it."""
        lost = [tp for tp, log in self.logs.items() if parent_dir(log.dir) == log_dir]
        copies = [tp for tp, log in self.future.items() if parent_dir(log.dir) == log_dir]
        for topic_partition in lost:
            self.logs.pop(topic_partition).take_offline(error)
        for topic_partition in copies:
            self.future.pop(topic_partition).take_offline(error)
        return lost

    def clear(self) -> None:
        """Remove all logs."""
        self.logs.clear()
        self.future.clear()
