"""Measures the log alone: microseconds per append and read, opening and recovering directories.

    .venv/bin/python scripts/bench/log_append.py [--partitions 2000] [--recover-mb 256]

User CPU is Python and checksums; system CPU is the page cache. Runs on the disk behind $TMPDIR.
"""

import argparse
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.types import ZERO_UUID, TopicPartition
from storage.log.log import Log
from storage.log_manager import LogManager
from storage.os_filesystem import OsFileSystem
from storage.waits import at_once


class Clock:
    """The machine's clock."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def manager(directory: str) -> LogManager:
    config = BrokerConfig.parse({"log.dirs": directory})
    made = LogManager(config, Clock(), OsFileSystem(), random=random.Random(), on_offline=print)
    made.startup(lambda topic: TopicConfig())
    return made


def measured(name: str, times: int, action: Callable[[], object]) -> None:
    """Print a line with user, system and wall microseconds per call."""
    cpu, wall = os.times(), time.perf_counter()
    action()
    wall, now = time.perf_counter() - wall, os.times()
    user, system = now.user - cpu.user, now.system - cpu.system
    print(
        f"{name:42} {user / times * 1e6:9.1f} {system / times * 1e6:9.1f} {wall / times * 1e6:9.1f}"
    )


def batch_of(size: int, *, idempotent: bool = False) -> bytearray:
    count = max(size // 1000, 1)
    now = Clock().wall_ms()
    records = [(now, None, os.urandom(max(size // count - 12, 1)), ())] * count
    fields = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0} if idempotent else {}
    return bytearray(build_batch(records, **fields))


def append_many(log: Log, batch: bytearray, times: int) -> None:
    view, unplaced = memoryview(batch), bytes(8)
    for _ in range(times):
        batch[:8] = unplaced
        log.append_as_leader(view, leader_epoch=0)
        log.update_high_watermark(log.log_end_offset)


def read_many(log: Log, offsets: list[int], max_bytes: int) -> None:
    for offset in offsets:
        log.read(offset, max_bytes)


def follow(log: Log, batch: bytearray, times: int) -> None:
    view, unplaced = memoryview(batch), bytes(8)
    for _ in range(times):
        offset = log.log_end_offset
        batch[:8] = unplaced
        log.append_as_leader(view, leader_epoch=0)
        log.update_high_watermark(log.log_end_offset)
        log.read(offset, 1 << 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--recover-mb", type=int, default=256)
    args = parser.parse_args()
    print(f"{'':42} {'user us':>9} {'system us':>9} {'wall us':>9}")
    with tempfile.TemporaryDirectory() as directory:
        logs = manager(directory)
        for size, times in ((1_000, 20_000), (16_384, 10_000), (262_144, 400)):
            tp = TopicPartition("append", size)
            log = logs.get_or_create_log(tp, ZERO_UUID, TopicConfig(), is_new=True)
            batch = batch_of(size)
            append_many(log, batch, 50)
            measured(f"append {len(batch)} B", times, partial(append_many, log, batch, times))
            offsets = [random.randrange(log.log_end_offset) for _ in range(5000)]
            measured("  read at a random offset", 5000, partial(read_many, log, offsets, 65_536))
            end = [log.log_end_offset] * 5000
            measured("  read at the end", 5000, partial(read_many, log, end, 65_536))
            measured("  append and read it", 500, partial(follow, log, batch, 500))
        at_once(logs.shutdown())
    opening(args.partitions)
    recovering(args.recover_mb)


def opening(partitions: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        logs = manager(directory)
        batch = batch_of(1000)

        def create() -> None:
            for at in range(partitions):
                tp = TopicPartition("many", at)
                log = logs.get_or_create_log(tp, ZERO_UUID, TopicConfig(), is_new=True)
                append_many(log, batch, 3)
                log.release()

        measured(f"make and fill, of {partitions}", partitions, create)
        measured("stop, per partition", partitions, lambda: at_once(logs.shutdown()))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        opened: list[LogManager] = []
        measured(
            "open after a clean stop, per partition",
            partitions,
            lambda: opened.append(manager(directory)),
        )
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"  {grown / 1024:.0f} MB more, {grown * 1024 / partitions:.0f} B per partition")


def recovering(megabytes: int) -> None:
    for size in (1_000, 16_384):
        with tempfile.TemporaryDirectory() as directory:
            logs = manager(directory)
            log = logs.get_or_create_log(TopicPartition("r", 0), ZERO_UUID, TopicConfig())
            batch = batch_of(size)
            append_many(log, batch, megabytes * 1_000_000 // len(batch))
            logs.release_locks()
            measured(
                f"recover, per MB of {len(batch)} B batches",
                megabytes,
                lambda: manager(directory),
            )


if __name__ == "__main__":
    main()
