"""The ends of logs are synced in the background, and what is synced is written down."""

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage import log_tasks
from storage.log.log import Log
from storage.manager.background_sync import IDLE_S, OLD_S
from storage.waits import at_once
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.log_tasks import run_task
from tests.support.manual_clock import ManualClock

CONFIG = TopicConfig()
POINTS = "/a/recovery-point-offset-checkpoint"


class Broker:
    def __init__(self, fs: FaultyFileSystem | None = None) -> None:
        self.fs = fs or FaultyFileSystem()
        self.clock = ManualClock()
        self.failed: list[object] = []
        config = BrokerConfig.parse({"log.dirs": "/a"})
        self.manager = log_manager(config, self.clock, self.fs, on_offline=self.failed.append)
        self.manager.startup(lambda topic: CONFIG)

    def log(self, topic: str = "t") -> Log:
        return self.manager.get_or_create_log(
            TopicPartition(topic, 0), bytes(16), CONFIG, is_new=True
        )

    def append(self, topic: str = "t", **fields: int) -> None:
        now = self.clock.wall_ms()
        self.log(topic).append_as_leader(
            build_batch([(now, b"k", b"v", ())], **fields), leader_epoch=0
        )

    def look(self, after_s: float = IDLE_S) -> None:
        self.clock.advance(after_s)
        run_task(self.manager, log_tasks.FLUSH_ROLLED)

    def names(self, topic: str = "t") -> list[str]:
        return [name for name in self.fs.list_dir(f"/a/{topic}-0") if name.endswith(".snapshot")]

    def killed(self) -> "Broker":
        return Broker(self.fs.crash(keep_unsynced=True))


def test_the_end_of_an_idle_log_is_synced_and_written_down() -> None:
    broker = Broker()
    broker.append()
    broker.look()
    assert broker.log().recovery_point == 0  # it may go on any moment
    broker.look()
    assert broker.log().recovery_point == 1
    broker.look()
    assert broker.fs.read_bytes(POINTS) == b"0\n1\nt 0 1\n"
    broker.fs.operations.clear()
    for _ in range(5):
        broker.look()
    assert broker.fs.operations == []
    assert broker.killed().log().recovery_point == 1


def test_nothing_is_looked_at_twice_in_a_moment() -> None:
    broker = Broker()
    broker.append()
    broker.look()
    broker.look(IDLE_S / 2)
    assert broker.log().recovery_point == 0


def test_a_log_that_is_never_idle_is_synced_after_a_while() -> None:
    broker = Broker()
    passed = 0.0
    while broker.log().recovery_point == 0:
        broker.append()
        broker.look()
        passed += IDLE_S
    assert OLD_S <= passed - IDLE_S <= OLD_S + IDLE_S
    # Its producers may send again what is on its way: no snapshot stands for their last batches.
    assert broker.names() == []


def test_a_start_does_not_read_what_was_synced() -> None:
    broker = Broker()
    for sequence in range(3):
        broker.append(producer_id=5, producer_epoch=0, base_sequence=sequence)
    broker.look()
    broker.look()
    broker.look()
    assert broker.names() == [f"{3:020d}.snapshot"]
    again = broker.killed()
    log = again.log()
    entry = log.producers.entry(5)
    assert entry is not None
    assert (log.recovery_point, log.log_end_offset, entry.last_sequence) == (3, 3, 2)
    again.fs.operations.clear()
    again.look()
    again.look()
    assert not [op for op, path in again.fs.operations if op == "fsync" and "t-0" in path]


def test_snapshots_between_segments_do_not_pile_up() -> None:
    broker = Broker()
    for _ in range(4):
        broker.append()
        broker.look()
        broker.look()
    # That of the recovery point on the disk, and that of the next.
    assert broker.names() == [f"{at:020d}.snapshot" for at in (3, 4)]
    broker.log().roll()
    broker.append()
    at_once(broker.manager.shutdown())
    assert broker.names() == [f"{at:020d}.snapshot" for at in (4, 5)]


def test_what_was_recovered_is_synced_in_steps_and_nobody_has_to_append() -> None:
    broker = Broker()
    for _ in range(200):
        broker.append()
        broker.log().roll()
    again = broker.killed()
    assert again.log().recovery_point == 0
    again.look()
    again.look()
    again.look()
    assert again.fs.read_bytes(POINTS) == b"0\n1\nt 0 200\n"


def test_a_disk_that_fails_takes_its_directory_offline_and_nothing_else() -> None:
    broker = Broker()
    broker.append()
    broker.append("u")
    broker.fs.fail("fsync", "/a/t-0/*.log")
    broker.look()
    broker.look()
    assert len(broker.failed) == 1
