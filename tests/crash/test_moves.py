"""A partition moves to another log directory, and the power goes at any operation of it.

A start finds the partition once, in one of the two directories, with all that was flushed before;
if the move was finished, with all that it had then.
"""

from random import Random

import trio

from broker.replication.log_mover import LogMover
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage.log.results import FetchIsolation
from storage.log_manager import LogManager
from storage.paths import parent_dir
from storage.waits import at_once
from tests.support.broker_bench import batch
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.manual_clock import ManualClock
from tests.support.real_bench import RealBench, records_of
from tests.support.recording_filesystem import PowerLoss, RecordingFileSystem

TP = TopicPartition("t", 0)
CONFIG = TopicConfig(segment_bytes=400, index_interval_bytes=0, segment_index_bytes=480)
FLUSHED, ALL = 9, 14


def started(fs: FaultyFileSystem) -> LogManager:
    failed: list[object] = []
    manager = log_manager(
        BrokerConfig.parse({"log.dirs": "/a,/b"}),
        ManualClock(),
        fs,
        random=Random(2),
        on_offline=failed.append,
    )
    manager.startup(lambda topic: CONFIG)
    assert failed == []
    return manager


def values(manager: LogManager) -> list[bytes]:
    log = manager.get_log(TP)
    assert log is not None
    found: list[bytes] = []
    while len(found) < log.log_end_offset:
        data = log.read(len(found), 1 << 20, FetchIsolation.LOG_END).records
        assert not isinstance(data, bytes)
        found += [bytes(record.value) for record in records_of(data.read())]
    return found


def moved() -> tuple[RecordingFileSystem, int]:
    """The disk after a move from /a to /b, and the operation it began with."""
    before = FaultyFileSystem()
    for directory in ("/a", "/b"):
        before.make_dirs(directory)
    fs = RecordingFileSystem(before)
    bench = RealBench("/a,/b", fs)
    (partition,) = bench.topic(config=CONFIG)
    for number in range(ALL):
        if number == FLUSHED:
            at_once(partition.log.flush())
        partition.append_as_leader_nowait(batch([b"%d" % number]))
    begin = fs.now
    mover = LogMover(bench.replicas, bench.logs, Driver(InlineWorkers(), bench.clock))
    mover.move(TP, "/b")

    async def main() -> None:
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(mover.run)
                while mover._moving:
                    await trio.sleep(0)
                nursery.cancel_scope.cancel()

    trio.run(main)
    assert bench.logs.dir_of(TP) == "/b"
    return fs, begin


def test_a_move_is_finished_or_undone() -> None:
    fs, begin = moved()
    loss, random, found = PowerLoss(fs), Random(1), set()
    wanted = [b"%d" % number for number in range(ALL)]
    for at in range(begin, loss.last + 1):
        for state in (loss.kept(at), loss.names(at), loss.lost(at), loss.state(at, random)):
            manager = started(state)
            log = manager.get_log(TP)
            assert log is not None, at
            log._check()
            assert FLUSHED <= log.log_end_offset <= ALL
            assert values(manager) == wanted[: log.log_end_offset]
            found.add((parent_dir(log.dir), manager.future_log(TP) is not None))
            if at == loss.last:
                assert log.log_end_offset == ALL
            manager.directories.unlock_all()
    assert found == {("/a", False), ("/a", True), ("/b", False)}
