"""All logs by partition: those that are served, and the copies of those on their way (moves)."""

from collections.abc import Callable
from dataclasses import dataclass, field

from protocol.types import TopicPartition
from storage.errors import StorageError
from storage.log.log import Log
from storage.paths import parent_dir


@dataclass(slots=True)
class LogTable:
    """The logs of a broker by partition. Its parts are read freely."""

    connect: Callable[[Log], None]
    """Tells a log whom to tell; called before it is in the table."""
    logs: dict[TopicPartition, Log] = field(default_factory=dict)
    future: dict[TopicPartition, Log] = field(default_factory=dict)

    def adopt(self, log: Log) -> None:
        """A log that is to be served. Raises StorageError when there is one of that name."""
        self._add(self.logs, log)

    def adopt_future(self, log: Log) -> None:
        """A copy that is to be filled. Raises StorageError when there is one of that name."""
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
        """Whether it is still one of these, not deleted or replaced meanwhile."""
        name = log.topic_partition
        return self.logs.get(name) is log or self.future.get(name) is log

    def in_dir(self, log_dir: str) -> list[Log]:
        """Logs of one log directory, those that are being moved there included."""
        return [log for log in self.everything() if parent_dir(log.dir) == log_dir]

    def take_offline(self, log_dir: str, error: OSError) -> list[TopicPartition]:
        """The directory has failed: its logs are let go. The partitions that are lost by it."""
        lost = [tp for tp, log in self.logs.items() if parent_dir(log.dir) == log_dir]
        copies = [tp for tp, log in self.future.items() if parent_dir(log.dir) == log_dir]
        for topic_partition in lost:
            self.logs.pop(topic_partition).take_offline(error)
        for topic_partition in copies:
            self.future.pop(topic_partition).take_offline(error)
        return lost

    def clear(self) -> None:
        """Nothing is served any more."""
        self.logs.clear()
        self.future.clear()
