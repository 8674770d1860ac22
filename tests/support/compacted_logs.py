"""Logs of a `LogManager` on a disk in memory, for tests of when they are cleaned."""

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.checkpoint import OffsetCheckpoint
from storage.cleaner.manager import LogCleanerManager, LogToClean
from storage.log.log import Log
from storage.paths import CLEANER_CHECKPOINT, join
from storage.waits import at_once
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.manual_clock import ManualClock

ID = bytes(range(16))


def compacted(*more: str, **config: object) -> TopicConfig:
    """Return a config with the policies compact and `more`, and segments of five small batches."""
    return TopicConfig(
        **{  # type: ignore[arg-type]
            "cleanup_policy": frozenset({"compact", *more}),
            "segment_bytes": 400,
            **config,
        }
    )


class CompactedLogs:
    """A manager that can be stopped, killed and started again; two directories."""

    def __init__(self, config: TopicConfig | None = None, **settings: str) -> None:
        self.config = config or compacted()
        self.fs = FaultyFileSystem()
        self.clock = ManualClock()
        self.settings = {"log.dirs": "/a,/b", **settings}
        self.offline: list[str] = []
        self.start()

    def start(self) -> None:
        self.manager = log_manager(
            BrokerConfig.parse(self.settings),
            self.clock,
            self.fs,
            on_offline=self.offline.append,
        )
        self.manager.startup(lambda topic: self.config)
        for log in self.manager.all_logs():
            log.update_high_watermark(log.log_end_offset)

    def restart(self) -> None:
        at_once(self.manager.shutdown())
        self.start()

    def kill(self) -> None:
        self.fs = self.fs.crash(keep_unsynced=True)
        self.start()

    @property
    def cleaner(self) -> LogCleanerManager:
        return self.manager.cleaner

    def log(self, topic: str = "t", config: TopicConfig | None = None) -> Log:
        """Return the log of partition 0, made if it does not exist."""
        partition = TopicPartition(topic, 0)
        return self.manager.get_or_create_log(partition, ID, config or self.config, is_new=True)

    def filled(self, topic: str = "t", segments: int = 4, config: TopicConfig | None = None) -> Log:
        log = self.log(topic, config)
        self.fill(log, segments)
        return log

    def fill(self, log: Log, segments: int) -> None:
        """Append until the log has this many segments, the active one with one batch."""
        while len(log.segments) < segments:
            self.append(log)

    def append(self, log: Log) -> None:
        log.append_as_leader(
            build_batch([(self.clock.wall_ms(), b"key", b"value", ())]), leader_epoch=0
        )
        log.update_high_watermark(log.log_end_offset)

    def grab(self) -> LogToClean | None:
        """Look at all logs and take the filthiest."""
        at_once(self.cleaner.look())
        return self.cleaner.grab_filthiest()

    def clean(self, log: Log) -> int:
        """Report the log as cleaned as far as possible; return the offset."""
        work = self.grab()
        assert work is not None
        assert work.log is log
        end = work.due.extent.first_uncleanable_offset
        self.cleaner.done_cleaning(work, end)
        return end

    def written(self, directory: str = "/a") -> dict[TopicPartition, int]:
        """Return the content of the cleaner's checkpoint file, after its task has run."""
        return OffsetCheckpoint(self.fs, join(directory, CLEANER_CHECKPOINT)).read()
