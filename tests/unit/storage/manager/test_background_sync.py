"""The ends of logs are synced in the background, and what is synced is written down."""

from config.topic_config import TopicConfig
from storage import log_tasks
from storage.manager.background_sync import IDLE_S, OLD_S
from storage.waits import at_once
from tests.support.log_tasks import run_task
from tests.support.managed_logs import Managed

POINTS = "/a/recovery-point-offset-checkpoint"


class Broker(Managed):
    """One directory, the logs as by default."""

    def __init__(self) -> None:
        super().__init__("/a", TopicConfig())

    def produce(self, topic: str = "t", **fields: int) -> None:
        self.append(self.log(topic), **fields)

    def look(self, after_s: float = IDLE_S) -> None:
        self.clock.advance(after_s)
        run_task(self.manager, log_tasks.FLUSH_ROLLED)

    def names(self) -> list[str]:
        return [name for name in self.fs.list_dir("/a/t-0") if name.endswith(".snapshot")]


def test_the_end_of_an_idle_log_is_synced_and_written_down() -> None:
    broker = Broker()
    broker.produce()
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
    broker.kill()
    assert broker.log().recovery_point == 1


def test_nothing_is_looked_at_twice_in_a_moment() -> None:
    broker = Broker()
    broker.produce()
    broker.look()
    broker.look(IDLE_S / 2)
    assert broker.log().recovery_point == 0


def test_a_log_that_is_never_idle_is_synced_after_a_while() -> None:
    broker = Broker()
    passed = 0.0
    while broker.log().recovery_point == 0:
        broker.produce()
        broker.look()
        passed += IDLE_S
    assert OLD_S <= passed - IDLE_S <= OLD_S + IDLE_S
    # Its producers may send again what is on its way: no snapshot stands for their last batches.
    assert broker.names() == []


def test_a_start_does_not_read_what_was_synced() -> None:
    broker = Broker()
    for sequence in range(3):
        broker.produce(producer_id=5, producer_epoch=0, base_sequence=sequence)
    for _ in range(3):
        broker.look()
    assert broker.names() == [f"{3:020d}.snapshot"]
    broker.kill()
    log = broker.log()
    entry = log.producers.entry(5)
    assert entry is not None
    assert (log.recovery_point, log.log_end_offset, entry.last_sequence) == (3, 3, 2)
    broker.fs.operations.clear()
    broker.look()
    broker.look()
    assert not [op for op, path in broker.fs.operations if op == "fsync" and "t-0" in path]


def test_snapshots_between_segments_do_not_pile_up() -> None:
    broker = Broker()
    for _ in range(4):
        broker.produce()
        broker.look()
        broker.look()
    # That of the recovery point on the disk, and that of the next.
    assert broker.names() == [f"{at:020d}.snapshot" for at in (3, 4)]
    broker.log().roll()
    broker.produce()
    at_once(broker.manager.shutdown())
    assert broker.names() == [f"{at:020d}.snapshot" for at in (4, 5)]


def test_what_was_recovered_is_synced_in_steps_and_nobody_has_to_append() -> None:
    broker = Broker()
    for _ in range(200):
        broker.produce()
        broker.log().roll()
    broker.kill()
    assert broker.log().recovery_point == 0
    for _ in range(3):
        broker.look()
    assert broker.fs.read_bytes(POINTS) == b"0\n1\nt 0 200\n"


def test_a_disk_that_fails_takes_its_directory_offline_and_nothing_else() -> None:
    broker = Broker()
    broker.produce()
    broker.produce("u")
    broker.fs.fail("fsync", "/a/t-0/*.log")
    broker.look()
    broker.look()
    assert len(broker.offline) == 1
