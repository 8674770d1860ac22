"""A LogManager over memory, with directories that fail when told to."""

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.log.log import Log
from storage.waits import at_once
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.manual_clock import ManualClock

ID = bytes(range(16))


CONFIG = TopicConfig(segment_bytes=300, retention_ms=3_600_000, file_delete_delay_ms=60_000)


class Managed:
    """A manager over an in-memory disk that can be stopped, killed and started again."""

    def __init__(self, dirs: str = "/a,/b", **config: str) -> None:
        self.fs = FaultyFileSystem()
        self.clock = ManualClock()
        self.properties = {"log.dirs": dirs, **config}
        self.offline: list[str] = []
        self.start()

    def start(self) -> None:
        config = BrokerConfig.parse(self.properties)
        self.manager = log_manager(config, self.clock, self.fs, on_offline=self.offline.append)
        self.manager.startup(lambda topic: CONFIG)

    def restart(self) -> None:
        at_once(self.manager.shutdown())
        self.start()

    def kill(self) -> None:
        self.fs = self.fs.crash(keep_unsynced=True)
        self.start()

    def log(self, topic: str = "t", partition: int = 0, config: TopicConfig = CONFIG) -> Log:
        tp = TopicPartition(topic, partition)
        return self.manager.get_or_create_log(tp, ID, config, is_new=True)

    def fill(self, log: Log, batches: int = 8) -> None:
        for _ in range(batches):
            now = self.clock.wall_ms()
            log.append_as_leader(build_batch([(now, b"k", b"v" * 50, ())] * 2), leader_epoch=0)
        log.update_high_watermark(log.log_end_offset)
