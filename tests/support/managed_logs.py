"""A LogManager over memory, with directories that fail when told to."""

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.log.log import Log
from storage.log_loading import LoadJob
from storage.log_manager import LogManager
from storage.waits import at_once
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.manual_clock import ManualClock

ID = bytes(range(16))


CONFIG = TopicConfig(segment_bytes=300, retention_ms=3_600_000, file_delete_delay_ms=60_000)


class Managed:
    """A manager over an in-memory disk that can be stopped, killed and started again."""

    def __init__(
        self, dirs: str = "/a,/b", config: TopicConfig = CONFIG, **properties: str
    ) -> None:
        self.config = config
        self.fs = FaultyFileSystem()
        self.clock = ManualClock()
        self.properties = {"log.dirs": dirs, **properties}
        self.offline: list[str] = []
        self.start()

    def unloaded(self) -> LogManager:
        """Return another manager over the disk, which has not locked its directories."""
        config = BrokerConfig.parse(self.properties)
        return log_manager(config, self.clock, self.fs, on_offline=self.offline.append)

    def loading(self) -> tuple[LogManager, list[LoadJob]]:
        """Return another manager over the disk, with the jobs that load its logs."""
        manager = self.unloaded()
        manager.directories.lock_and_check()
        return manager, manager.load_jobs(lambda topic: self.config)

    def start(self) -> None:
        self.manager = self.unloaded()
        self.manager.startup(lambda topic: self.config)

    def restart(self) -> None:
        at_once(self.manager.shutdown())
        self.start()

    def kill(self) -> None:
        self.fs = self.fs.crash(keep_unsynced=True)
        self.start()

    def log(self, topic: str = "t", partition: int = 0, config: TopicConfig | None = None) -> Log:
        """Return the log, made if it does not exist."""
        tp = TopicPartition(topic, partition)
        return self.manager.get_or_create_log(tp, ID, config or self.config, is_new=True)

    def append(self, log: Log, count: int = 1, *, value: bytes = b"v", **fields: int) -> None:
        """Append one batch of equal records with the current time and replicate it."""
        now = self.clock.wall_ms()
        batch = build_batch([(now, b"k", value, ())] * count, **fields)
        log.append_as_leader(batch, leader_epoch=0)
        log.update_high_watermark(log.log_end_offset)

    def fill(self, log: Log, batches: int = 8) -> None:
        for _ in range(batches):
            self.append(log, 2, value=b"v" * 50)
