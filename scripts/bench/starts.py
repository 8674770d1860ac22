"""Measures the time to serve after kill -9, with much data on the disk and few recent writes.

    .venv/bin/python scripts/bench/starts.py [--setups segments,one-log,tails] [--idle 10]

Three log directories, whose files the storage engine itself writes:

    segments   2,000 partitions with 25,700 segments
    one-log    one partition with 5,000 segments
    tails      2,000 partitions with one segment each, 3.8 GB in all

Each directory goes through four lives of the real daemon, each ended by kill -9. They start

    unknown    without checkpoints, so that all has to be read (the price of a directory that lost
               its checkpoints, paid once)
    at once    after a life that was killed as soon as it served
    idle       after a life that was killed when it had served for `--idle` seconds, without traffic
    tail       the same, but every 20th partition got one record at the last moment

`wall` is from the start of the process until it serves, `cpu` its processor seconds until then,
`loaded` its log line about the logs. Target: `at once`, `idle` and `tail` within 3 s, however much
data there is. The page cache is warm: the files were written shortly before.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from broker.world.clock import SystemClock
from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.log_manager import LogManager
from storage.os_filesystem import OsFileSystem
from storage.waits import at_once
from tests.support.broker_process import BrokerProcess
from tests.support.log_managers import log_manager

TARGET_S = 3.0
PER_TOPIC = 500


@dataclass(frozen=True, slots=True)
class Setup:
    """The contents of a directory."""

    partitions: int
    segments: int
    """Segments of all partitions together."""
    batches: int
    """Batches of each segment."""
    batch_bytes: int


SETUPS = {
    "segments": Setup(2_000, 25_700, 4, 1_000),
    "one-log": Setup(1, 5_000, 2, 10_000),
    "tails": Setup(2_000, 2_000, 116, 16_384),
}


def partitions_of(setup: Setup) -> Iterator[TopicPartition]:
    for at in range(setup.partitions):
        yield TopicPartition(f"many-{at // PER_TOPIC}", at % PER_TOPIC)


def topic_id(topic: str) -> bytes:
    return Random(topic).randbytes(16)


def open_manager(log_dir: Path) -> LogManager:
    config = BrokerConfig.parse({"log.dirs": str(log_dir)})
    manager = log_manager(config, SystemClock(), OsFileSystem(), on_offline=fail)
    manager.startup(lambda topic: TopicConfig())
    return manager


def fail(lost: object) -> None:
    raise SystemExit(f"a disk error: {lost}")


def make(setup: Setup, broker: BrokerProcess) -> None:
    """Make partitions that the broker adopts, then write their records and remove checkpoints."""
    manager = open_manager(broker.log_dir)
    for tp in partitions_of(setup):
        manager.get_or_create_log(tp, topic_id(tp.topic), TopicConfig(), is_new=True)
    at_once(manager.shutdown())
    broker.start(timeout_s=120)
    broker.stop(timeout_s=120)
    manager = open_manager(broker.log_dir)
    now = int(time.time() * 1000)
    batch = build_batch([(now, None, Random(2).randbytes(setup.batch_bytes - 80), ())])
    for at, tp in enumerate(partitions_of(setup)):
        log = manager.get_log(tp)
        assert log is not None
        share = setup.segments // setup.partitions
        share += at < setup.segments % setup.partitions
        for segment in range(share):
            if segment:
                log.roll()
            for _ in range(setup.batches):
                log.append_as_leader(bytearray(batch), leader_epoch=0)
        log.release()
    manager.directories.unlock_all()
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        (broker.log_dir / name).unlink(missing_ok=True)


def start(broker: BrokerProcess) -> tuple[float, float, float]:
    """Start; return wall seconds, processor seconds, and the seconds it logs for loading."""
    begin = time.perf_counter()
    broker.start(timeout_s=300)
    wall = time.perf_counter() - begin
    cpu = broker.cpu_seconds()
    told = re.findall(r"Loaded \d+ logs in (\d+)ms", broker.output(1_000_000))
    return wall, cpu, int(told[-1]) / 1000


def write_tails(setup: Setup, broker: BrokerProcess) -> None:
    """Produce one record to every 20th partition."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50})
    for tp in list(partitions_of(setup))[::20]:
        producer.produce(tp.topic, b"value", partition=tp.partition)
    producer.flush(60)


def measure(name: str, setup: Setup, idle_s: float) -> bool:
    """Run the lives of one directory; return whether those with a target keep it."""
    with tempfile.TemporaryDirectory(prefix="starts-") as where:
        broker = BrokerProcess(Path(where), {"log.initial.task.delay.ms": "30000"})
        begin = time.perf_counter()
        make(setup, broker)
        held = sum(f.stat().st_size for f in broker.log_dir.glob("*/*.log")) / 1e6
        print(
            f"{name}: {setup.partitions} partitions, {setup.segments} segments, {held:.0f} MB, "
            f"made in {time.perf_counter() - begin:.0f} s"
        )
        print(f"  {'life':8} {'wall s':>7} {'cpu s':>7} {'loaded s':>9}", flush=True)
        worst = 0.0
        for life in ("unknown", "at once", "idle", "tail"):
            if life == "idle":
                time.sleep(idle_s)
            elif life == "tail":
                time.sleep(idle_s)
                write_tails(setup, broker)
            broker.kill()
            wall, cpu, loaded = start(broker)
            print(f"  {life:8} {wall:7.2f} {cpu:7.2f} {loaded:9.2f}", flush=True)
            if life != "unknown":
                worst = max(worst, wall)
        broker.kill()
        return worst <= TARGET_S


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--setups", default=",".join(SETUPS))
    parser.add_argument("--idle", type=float, default=10.0, help="seconds")
    args = parser.parse_args()
    verdicts = [measure(name, SETUPS[name], args.idle) for name in args.setups.split(",")]
    print(f"{'within' if all(verdicts) else 'MISSES'} the target of {TARGET_S:.0f} s")


if __name__ == "__main__":
    main()
