"""Logs of a `LogManager` on a disk in memory, for tests of when they are cleaned."""

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage.checkpoint import OffsetCheckpoint
from storage.cleaner.manager import LogCleanerManager, LogToClean
from storage.log.log import Log
from storage.paths import CLEANER_CHECKPOINT, join
from storage.waits import at_once
from tests.support.managed_logs import Managed


def compacted(*more: str, **config: object) -> TopicConfig:
    """Return a config with the policies compact and `more`, and segments of five small batches."""
    return TopicConfig(
        **{  # type: ignore[arg-type]
            "cleanup_policy": frozenset({"compact", *more}),
            "segment_bytes": 400,
            **config,
        }
    )


class CompactedLogs(Managed):
    """Two directories; the logs are replicated to their ends."""

    def __init__(self, config: TopicConfig | None = None) -> None:
        super().__init__(config=config or compacted())

    def start(self) -> None:
        super().start()
        for log in self.manager.all_logs():
            log.update_high_watermark(log.log_end_offset)

    @property
    def cleaner(self) -> LogCleanerManager:
        return self.manager.cleaner

    def filled(self, topic: str = "t", segments: int = 4, config: TopicConfig | None = None) -> Log:
        log = self.log(topic, config=config)
        self.extend(log, segments)
        return log

    def extend(self, log: Log, segments: int) -> None:
        """Append until the log has this many segments, the active one with one batch."""
        while len(log.segments) < segments:
            self.append(log, value=b"value!!")

    def grab(self) -> LogToClean | None:
        """Look at all logs and take the filthiest."""
        at_once(self.cleaner.look())
        return self.cleaner.grab_filthiest()

    def grabbed(self) -> LogToClean:
        """Look at all logs and take the filthiest, which there must be."""
        work = self.grab()
        assert work is not None
        return work

    def clean(self, log: Log) -> int:
        """Report the log as cleaned as far as possible; return the offset."""
        work = self.grabbed()
        assert work.log is log
        end = work.due.extent.first_uncleanable_offset
        self.cleaner.done_cleaning(work, end)
        return end

    def written(self, directory: str = "/a") -> dict[TopicPartition, int]:
        """Return the content of the cleaner's checkpoint file, after its task has run."""
        return OffsetCheckpoint(self.fs, join(directory, CLEANER_CHECKPOINT)).read()
